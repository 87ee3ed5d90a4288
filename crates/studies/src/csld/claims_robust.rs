//! Claims of sections 4.2.2 and 4.3 that have no figure: cluster sizes, HTTP/1.1, round trips, locality, deviations, predictions.

use super::cells::{
    CLUSTER_SIZES, CsldPart, HEAVY, deviating, low_locality, of_case, of_size, persistent, short_trips,
};
use super::explain;
use super::plan::{WebRun, WebStrategy as S};
use super::predictions::Predictions;
use super::results::CsldResults;
use super::rule::{Conditioned, CsldClaimSpec, by_case, unexplained};
use crate::judge::PaperReference::{self, Section};
use crate::judge::{AHEAD, BEHIND, CLEARLY_MORE, MATCHES, NEAR, Rule};

const ALL: [u32; 6] = [1, 2, 3, 4, 5, 6];
const OVER: &str = "4.2.2";
const DISCUSSION: &str = "4.3";

const fn section(
    id: &'static str,
    place: &'static str,
    (statement, paper_text): (&'static str, &'static str),
    rule: Rule,
    values: fn(&CsldResults) -> Vec<Conditioned>,
    explanation: fn(&[CsldResults]) -> String,
) -> CsldClaimSpec {
    let place: PaperReference = Section(place, None);
    let (part, paper, unit) = (CsldPart::Robustness, None, "×");
    CsldClaimSpec { id, part, place, statement, paper, paper_text, unit, rule, values, explanation }
}

/// Of each cluster size from `sizes`.
fn by_size(sizes: &[usize], value: impl Fn(usize) -> Option<f64>) -> Vec<Conditioned> {
    sizes.iter().map(|&nodes| (format!("{nodes} servers"), value(nodes))).collect()
}

/// How much of round robin's latency a strategy has with HTTP/1.1, over what it has without.
fn kept(r: &CsldResults, strategy: S, number: u32) -> Option<f64> {
    let with = r.ratio(persistent(strategy, number), persistent(S::RoundRobin, number))?;
    Some(with / r.ratio(of_case(strategy, number), of_case(S::RoundRobin, number))?)
}

pub(super) const SPECS: &[CsldClaimSpec] = &[
    section(
        "n1",
        OVER,
        ("in clusters of fewer than 12 WRR_a does not scale as CSLD does (over it)", "not as good"),
        AHEAD,
        |r| by_size(&CLUSTER_SIZES[..2], |n| r.ratio(of_size(S::WrrA, n), of_size(S::Csld, n))),
        unexplained,
    ),
    section(
        "n2",
        OVER,
        ("nor as WRR_i does (over it)", "not as good"),
        AHEAD,
        |r| by_size(&CLUSTER_SIZES[..2], |n| r.ratio(of_size(S::WrrA, n), of_size(S::WrrI, n))),
        unexplained,
    ),
    section(
        "n3",
        OVER,
        ("in large clusters CSLD scales better than RR (RR over it)", "always better"),
        AHEAD,
        |r| by_size(&CLUSTER_SIZES[3..], |n| r.ratio(of_size(S::RoundRobin, n), of_size(S::Csld, n))),
        unexplained,
    ),
    section(
        "h1",
        OVER,
        (
            "HTTP/1.1 decreases the effectiveness of CSLD (share of RR's latency, over that without)",
            "somewhat",
        ),
        AHEAD,
        |r| by_case(HEAVY, |n| kept(r, S::Csld, n)),
        explain::persistent_cases,
    ),
    section(
        "h2",
        OVER,
        ("and that of WRR_a", "somewhat"),
        AHEAD,
        |r| by_case(HEAVY, |n| kept(r, S::WrrA, n)),
        explain::persistent_cases,
    ),
    section(
        "h3",
        OVER,
        ("there adapting t_diff improves CSLD (fixed over adaptive)", "more improvement"),
        AHEAD,
        |r| by_case(HEAVY, |n| r.ratio(persistent(S::Csld, n), persistent(S::CsldAdaptive, n))),
        explain::persistent_cases,
    ),
    section(
        "h4",
        OVER,
        ("and WRR_a only a little (fixed over half of t_diff)", "only a little"),
        Rule::AtMost(1.0 + NEAR),
        |r| by_case(HEAVY, |n| r.ratio(persistent(S::WrrA, n), persistent(S::WrrAHalf, n))),
        unexplained,
    ),
    CsldClaimSpec {
        part: CsldPart::Table(4),
        paper: None,
        unit: "%",
        ..section(
            "m1",
            DISCUSSION,
            ("79 to 92 % of the predictions of misses are right", "79–92 %"),
            Rule::Between(79.0, 92.0),
            |r| by_case(ALL, |n| right_percent(r, of_case(S::Csld, n))),
            explain::predictions,
        )
    },
    section(
        "l1",
        DISCUSSION,
        (
            "with low locality the results are similar (CSLD's share of RR's latency, over that of the World Cup)",
            "similar",
        ),
        Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        |r| {
            by_case([1, 4], |n| {
                let low = r.ratio(low_locality(S::Csld, n), low_locality(S::RoundRobin, n))?;
                Some(low / r.ratio(of_case(S::Csld, n), of_case(S::RoundRobin, n))?)
            })
        },
        explain::locality,
    ),
    section(
        "d1",
        DISCUSSION,
        (
            "a standard deviation of 40 % does not significantly degrade CSLD (over 20 %)",
            "never significantly",
        ),
        Rule::LessThan(CLEARLY_MORE),
        |r| by_case(HEAVY, |n| r.ratio(deviating(S::Csld, n, 40), deviating(S::Csld, n, 20))),
        unexplained,
    ),
    section(
        "d2",
        DISCUSSION,
        ("there it is still ahead of WRR_a (WRR_a over it)", "better"),
        AHEAD,
        |r| by_case(HEAVY, |n| r.ratio(deviating(S::WrrA, n, 40), deviating(S::Csld, n, 40))),
        unexplained,
    ),
    section(
        "s1",
        DISCUSSION,
        (
            "with shorter round trips CSLD outperforms WRR_a even for light load (WRR_a over it)",
            "outperforms",
        ),
        AHEAD,
        |r| by_case([1], |n| r.ratio(short_trips(S::WrrA, n), short_trips(S::Csld, n))),
        explain::trips,
    ),
    section(
        "s2",
        DISCUSSION,
        ("and RR (RR over it)", "outperforms"),
        AHEAD,
        |r| by_case([1], |n| r.ratio(short_trips(S::RoundRobin, n), short_trips(S::Csld, n))),
        explain::trips,
    ),
    section(
        "s3",
        "4.2.1",
        ("with shorter round trips LC performs better (over that with long ones)", "better"),
        BEHIND,
        |r| {
            by_case([1, 4], |n| r.ratio(short_trips(S::LeastConnections, n), of_case(S::LeastConnections, n)))
        },
        unexplained,
    ),
];

/// Predictions of misses that were right, in per cent.
pub(super) fn right_percent(r: &CsldResults, run: WebRun) -> Option<f64> {
    Some(100.0 * Predictions::of(r, run)?.accuracy())
}

/// Readings without which the paper's results do not come out: each must make them go.
pub(super) const CONTROLS: &[CsldClaimSpec] = &[
    section(
        "x1",
        "3.1",
        ("without a new turn at each update CSLD is no better than RR (RR over it)", "control"),
        Rule::AtMost(1.0 + MATCHES),
        |r| by_case(HEAVY, |n| r.ratio(of_case(S::RoundRobin, n), of_case(S::CsldRunsOn, n))),
        explain::controls,
    ),
    section(
        "x2",
        "3.3",
        ("with slots that are not cleared it is worse (over CSLD)", "control"),
        AHEAD,
        |r| by_case(HEAVY, |n| r.ratio(of_case(S::CsldUncleared, n), of_case(S::Csld, n))),
        explain::controls,
    ),
    section(
        "x3",
        "3.3",
        ("with weights that are too fine it is worse (over CSLD)", "control"),
        AHEAD,
        |r| by_case(HEAVY, |n| r.ratio(of_case(S::CsldFine, n), of_case(S::Csld, n))),
        explain::controls,
    ),
    section(
        "x4",
        "4.2.1",
        ("LC that counts from the SYN is as good as RR (over RR)", "control"),
        Rule::AtMost(1.0 + MATCHES),
        |r| by_case(HEAVY, |n| r.ratio(super::cells::counted_from_syn(n), of_case(S::RoundRobin, n))),
        explain::controls,
    ),
    section(
        "x9",
        "4.1",
        ("WRR_a' is hardly worse than WRR_a where overload delays its measurements (over WRR_a)", "control"),
        Rule::AtMost(1.0 + NEAR),
        |r| by_case([2, 6], |n| r.ratio(of_case(S::WrrDearLate, n), of_case(S::WrrA, n))),
        explain::controls,
    ),
    section(
        "x5",
        "4.3",
        ("always a hit in place of a prediction makes CSLD no worse (over CSLD)", "control"),
        Rule::AtMost(1.0 + MATCHES),
        |r| by_case(ALL, |n| r.ratio(of_case(S::CsldHits, n), of_case(S::Csld, n))),
        explain::controls,
    ),
    section(
        "x6",
        "4.3",
        ("future work: a cheaper predictor makes CSLD no worse (over CSLD)", "planned"),
        Rule::AtMost(1.0 + MATCHES),
        |r| by_case(ALL, |n| r.ratio(of_case(S::CsldStamped, n), of_case(S::Csld, n))),
        explain::controls,
    ),
    section(
        "x7",
        "4.2.2",
        ("future work: thresholds that adapt improve CSLD for light load (fixed over adaptive)", "better"),
        AHEAD,
        |r| by_case([1, 3, 5], |n| r.ratio(of_case(S::Csld, n), of_case(S::CsldAdaptive, n))),
        explain::adaptive,
    ),
    section(
        "x8",
        "4.2.2",
        ("and do not harm it for heavy load (adaptive over fixed)", "–"),
        Rule::AtMost(1.0 + MATCHES),
        |r| by_case(HEAVY, |n| r.ratio(of_case(S::CsldAdaptive, n), of_case(S::Csld, n))),
        explain::adaptive,
    ),
];
