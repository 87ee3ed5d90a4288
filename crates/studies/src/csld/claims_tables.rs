//! Claims of section 4.2.1: tables 4 and 5, and figure 6.

use super::cells::{CsldPart, HEAVY, LIGHT, POLL_PERIODS_MS, case, of_case, of_rate};
use super::explain;
use super::plan::WebStrategy as S;
use super::published::{REJECTED_AT_PEAK, TABLE_4, TABLE_5};
use super::results::{CsldResults, least, most};
use super::rule::{Conditioned, CsldClaimSpec, by_case, once, unexplained};
use crate::judge::PaperReference::{Figure, Table};
use crate::judge::{AHEAD, BEHIND, EQUAL, GREATLY, NEAR, Rule, SLIGHTLY_MORE};

const ALL: [u32; 6] = [1, 2, 3, 4, 5, 6];

/// Our latency over the published one.
fn over_paper(r: &CsldResults, strategy: S) -> Vec<Conditioned> {
    by_case(ALL, |n| Some(r.latency_s(of_case(strategy, n))? / case(n).of(strategy)?.0))
}

fn ratio(r: &CsldResults, numbers: &[u32], of: S, over: S) -> Vec<Conditioned> {
    by_case(numbers.iter().copied(), |n| r.ratio(of_case(of, n), of_case(over, n)))
}

/// A column of table 4. What is near is within 15 %; the paper gives no intervals of its own.
const fn column(
    id: &'static str,
    statement: &'static str,
    values: fn(&CsldResults) -> Vec<Conditioned>,
    explanation: fn(&[CsldResults]) -> String,
) -> CsldClaimSpec {
    CsldClaimSpec {
        id,
        part: CsldPart::Table(4),
        place: Table(4),
        statement,
        paper: None,
        paper_text: "the cell",
        unit: "×",
        rule: Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        values,
        explanation,
    }
}

const fn order(
    id: &'static str,
    statement: &'static str,
    paper_text: &'static str,
    rule: Rule,
    values: fn(&CsldResults) -> Vec<Conditioned>,
    explanation: fn(&[CsldResults]) -> String,
) -> CsldClaimSpec {
    CsldClaimSpec {
        id,
        part: CsldPart::Table(4),
        place: Table(4),
        statement,
        paper: None,
        paper_text,
        unit: "×",
        rule,
        values,
        explanation,
    }
}

/// Whether some connections were lost in cells of table 4 with an asterisk, or without one.
fn losing(r: &CsldResults, rejecting: bool) -> Vec<Conditioned> {
    let cells = S::TABLE_4.into_iter().flat_map(|strategy| TABLE_4.iter().map(move |case| (strategy, case)));
    cells
        .filter(|(strategy, case)| case.of(*strategy).is_some_and(|cell| cell.1 == rejecting))
        .map(|(strategy, case)| {
            let lost = r.lost_percent(of_case(strategy, case.number));
            let condition = if rejecting {
                format!("{} in case {}", strategy.title(), case.number)
            } else {
                String::new()
            };
            (condition, lost)
        })
        .collect()
}

pub(super) const SPECS: &[CsldClaimSpec] = &[
    column("t1", "RR's latency over table 4's", |r| over_paper(r, S::RoundRobin), explain::saturation),
    column("t2", "LC's", |r| over_paper(r, S::LeastConnections), unexplained),
    column("t3", "WRR_i's", |r| over_paper(r, S::WrrI), explain::ideal),
    column("t4", "WRR_a's", |r| over_paper(r, S::WrrA), explain::saturation),
    column("t5", "WRR_b's", |r| over_paper(r, S::WrrB), explain::saturation),
    column("t6", "WRR_a''s", |r| over_paper(r, S::WrrDearA), explain::saturation),
    column("t7", "WRR_b''s", |r| over_paper(r, S::WrrDearB), explain::saturation),
    column("t8", "WRR_p's", |r| over_paper(r, S::WRR_P), explain::polls),
    column("t9", "CSLD's", |r| over_paper(r, S::Csld), explain::saturation),
    order(
        "o1",
        "the most idealized WRR_i performs best of all for any case (the best of the others over it)",
        "best",
        AHEAD,
        |r| {
            by_case(ALL, |n| {
                let others = S::TABLE_4.into_iter().filter(|s| *s != S::WrrI);
                least(others.map(|other| r.ratio(of_case(other, n), of_case(S::WrrI, n))))
            })
        },
        explain::ideal,
    ),
    order(
        "o2",
        "CSLD always outperforms RR (RR over it)",
        "always",
        AHEAD,
        |r| ratio(r, &ALL, S::RoundRobin, S::Csld),
        explain::light,
    ),
    order(
        "o3",
        "with light load it is slightly worse than a few WRR variants (over WRR_a)",
        "1.03 to 1.09",
        SLIGHTLY_MORE,
        |r| ratio(r, &LIGHT, S::Csld, S::WrrA),
        explain::light,
    ),
    order(
        "o4",
        "with heavy load it is ahead of WRR_a (WRR_a over it)",
        "1.12 to 1.21",
        AHEAD,
        |r| ratio(r, &HEAVY, S::WrrA, S::Csld),
        unexplained,
    ),
    order(
        "o5",
        "with heavy load it comes close to WRR_i (over it)",
        "1.04 to 1.22",
        Rule::AtMost(1.0 + NEAR),
        |r| ratio(r, &HEAVY, S::Csld, S::WrrI),
        unexplained,
    ),
    order(
        "o6",
        "WRR_a outperforms WRR_b in all cases (WRR_b over it)",
        "1.03 to 1.18",
        AHEAD,
        |r| ratio(r, &ALL, S::WrrB, S::WrrA),
        unexplained,
    ),
    order(
        "o7",
        "WRR_b is sometimes worse than RR for light load with low variation (over RR)",
        "1.01, 1.02",
        Rule::MoreThan(1.0),
        |r| ratio(r, &[1, 3], S::WrrB, S::RoundRobin),
        unexplained,
    ),
    order(
        "o8",
        "twice the overhead significantly increases WRR_a's latency for heavy load (WRR_a' over WRR_a)",
        "8.5, 6.0",
        Rule::AtLeast(GREATLY),
        |r| ratio(r, &[2, 6], S::WrrDearA, S::WrrA),
        explain::overhead,
    ),
    order(
        "o9",
        "WRR_p is ahead of RR in case 2 only: there (RR over it)",
        "1.89",
        AHEAD,
        |r| ratio(r, &[2], S::RoundRobin, S::WRR_P),
        explain::polls,
    ),
    order(
        "o10",
        "and behind in the others (over RR)",
        "1.08 to 18.5",
        AHEAD,
        |r| ratio(r, &[1, 3, 4, 5, 6], S::WRR_P, S::RoundRobin),
        explain::polls,
    ),
    order(
        "o11",
        "LC is poor because of the long round trips (over RR, in cases 1 to 5)",
        "1.45 to 9.6",
        AHEAD,
        |r| ratio(r, &[1, 2, 3, 4, 5], S::LeastConnections, S::RoundRobin),
        unexplained,
    ),
    order(
        "o12",
        "and ahead of RR only with high variation (over RR, in case 6)",
        "0.61",
        BEHIND,
        |r| ratio(r, &[6], S::LeastConnections, S::RoundRobin),
        unexplained,
    ),
    CsldClaimSpec {
        id: "r1",
        part: CsldPart::Table(4),
        place: Table(4),
        statement: "connections are rejected in the seven cells with an asterisk (lost for good)",
        paper: None,
        paper_text: "not zero",
        unit: "%",
        rule: Rule::MoreThan(0.0),
        values: |r| losing(r, true),
        explanation: explain::polls,
    },
    CsldClaimSpec {
        id: "r2",
        part: CsldPart::Table(4),
        place: Table(4),
        statement: "and in no other cell",
        paper: Some(0.0),
        paper_text: "",
        unit: "%",
        rule: Rule::AtMost(0.0),
        values: |r| once(most(losing(r, false).into_iter().map(|(_, lost)| lost))),
        explanation: explain::lost_elsewhere,
    },
    CsldClaimSpec {
        id: "p1",
        part: CsldPart::Robustness,
        place: Table(4),
        statement: "with other periods WRR_p's results are similar (over 500 ms)",
        paper: None,
        paper_text: "similar",
        unit: "×",
        rule: Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        values: |r| {
            let periods = POLL_PERIODS_MS.into_iter().flat_map(|ms| HEAVY.map(|n| (ms, n)));
            let value = |(period_ms, n)| {
                let ratio = r.ratio(of_case(S::WrrPolls { period_ms }, n), of_case(S::WRR_P, n));
                (format!("{period_ms} ms, case {n}"), ratio)
            };
            periods.map(value).collect()
        },
        explanation: explain::poll_periods,
    },
    CsldClaimSpec {
        id: "t10",
        part: CsldPart::Table(5),
        place: Table(5),
        statement: "RR's latency over table 5's",
        paper: None,
        paper_text: "the cell",
        unit: "×",
        rule: Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        values: |r| {
            let rates = TABLE_5.into_iter();
            let value = |(rate, paper_s)| {
                let ours_s = r.latency_s(of_rate(S::RoundRobin, rate));
                (format!("{:.1} K/s", f64::from(rate) / 1000.0), ours_s.map(|ours_s| ours_s / paper_s))
            };
            rates.map(value).collect()
        },
        explanation: explain::saturation,
    },
    CsldClaimSpec {
        id: "f1",
        part: CsldPart::Figure(6),
        place: Figure(6),
        statement: "CSLD's improvement grows with the rate (RR over it at 6.2 K/s, over that at 3 K/s)",
        paper: None,
        paper_text: "higher",
        unit: "×",
        rule: AHEAD,
        values: |r| {
            let gain = |rate| r.ratio(of_rate(S::RoundRobin, rate), of_rate(S::Csld, rate));
            once(gain(6200).zip(gain(3000)).map(|(high, low)| high / low))
        },
        explanation: unexplained,
    },
    CsldClaimSpec {
        id: "f2",
        part: CsldPart::Figure(6),
        place: Figure(6),
        statement: "for heavy load it comes close to WRR_i (over it)",
        paper: None,
        paper_text: "close",
        unit: "×",
        rule: Rule::AtMost(1.0 + NEAR),
        values: |r| {
            let close = |rate| r.ratio(of_rate(S::Csld, rate), of_rate(S::WrrI, rate));
            [6000, 6200].map(|rate| (format!("{:.1} K/s", f64::from(rate) / 1000.0), close(rate))).to_vec()
        },
        explanation: unexplained,
    },
    CsldClaimSpec {
        id: "r3",
        part: CsldPart::Figure(6),
        place: Figure(6),
        statement: "rejections at 6.3 K/s over the paper's: RR 3.6 %, WRR_i 1.8 %, WRR_a 3.9 %, CSLD 2.1 % (refused attempts)",
        paper: None,
        paper_text: "the rate",
        unit: "×",
        rule: Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        values: |r| {
            let of = |(strategy, paper): (S, f64)| {
                (strategy.title(), r.refused_percent(of_rate(strategy, 6300)).map(|ours| ours / paper))
            };
            REJECTED_AT_PEAK.map(of).to_vec()
        },
        explanation: explain::rejections,
    },
    CsldClaimSpec {
        id: "r4",
        part: CsldPart::Figure(6),
        place: Figure(6),
        statement: "at 6.3 K/s WRR_i and CSLD reject less than RR and WRR_a (the less of these over the more of those, attempts)",
        paper: Some(1.7),
        paper_text: "1.7",
        unit: "×",
        rule: Rule::MoreThan(1.0 + EQUAL),
        values: |r| {
            let refused = |s| r.refused_percent(of_rate(s, 6300));
            let low = most([refused(S::WrrI), refused(S::Csld)]);
            let high = least([refused(S::RoundRobin), refused(S::WrrA)]);
            once(high.zip(low).map(|(high, low)| high / low))
        },
        explanation: explain::rejections,
    },
];
