//! Claims of section 4.2.2: figures 7 to 11.

use super::cells::{CHEAP_MIXES, CsldPart, MIX_FIGURES};
use super::explain;
use super::mixes::{of_figure, shares};
use super::plan::{WebRun, WebStrategy as S};
use super::results::{CsldResults, least, most};
use super::rule::{Conditioned, CsldClaimSpec, once, unexplained};
use crate::judge::PaperReference::{Figure, Section};
use crate::judge::{AHEAD, EQUAL, GREATLY, NEAR, Rule, SLIGHTLY_MORE};

/// A ratio at a share of dynamic requests.
fn at(r: &CsldResults, number: u32, permille: u32, of: S, over: S) -> Option<f64> {
    r.ratio(of_figure(of, number, permille), of_figure(over, number, permille))
}

/// The share in per cent from which on CSLD is ahead of `WRR_a` up to where all are overloaded: between two points in proportion, and
/// the first point where it is ahead from there on. Beyond the last, where it never is.
pub(super) fn crossing_percent(r: &CsldResults, number: u32) -> Option<f64> {
    let points: Vec<(f64, f64)> = shares(r, number)
        .into_iter()
        .map(|permille| Some((f64::from(permille) / 10.0, at(r, number, permille, S::Csld, S::WrrA)?)))
        .collect::<Option<_>>()?;
    let ahead = |point: &(f64, f64)| point.1 < 1.0;
    let Some(behind) = points.iter().rposition(|point| !ahead(point)) else {
        return points.first().map(|point| point.0);
    };
    let (last, next) = (points[behind], points.get(behind + 1));
    Some(next.map_or(last.0, |next| last.0 + (next.0 - last.0) * (last.1 - 1.0) / (last.1 - next.1)))
}

/// Of each figure with runs.
fn by_figure(r: &CsldResults, value: impl Fn(u32, &[u32]) -> Option<f64>) -> Vec<Conditioned> {
    let figures = MIX_FIGURES.iter().map(|figure| (figure.number, shares(r, figure.number)));
    let some = figures.filter(|(_, shares)| !shares.is_empty());
    some.map(|(number, shares)| (format!("figure {number}"), value(number, &shares))).collect()
}

const fn figure(
    id: &'static str,
    number: u32,
    statement: &'static str,
    rule: Rule,
    values: fn(&CsldResults) -> Vec<Conditioned>,
) -> CsldClaimSpec {
    CsldClaimSpec {
        id,
        part: CsldPart::Figure(number),
        place: Figure(number),
        statement,
        paper: None,
        paper_text: "",
        unit: "×",
        rule,
        values,
        explanation: unexplained,
    }
}

pub(super) const SPECS: &[CsldClaimSpec] = &[
    CsldClaimSpec {
        paper: Some(4.0),
        paper_text: "4 %",
        unit: "%",
        explanation: |seeds| explain::crossing(seeds, 7),
        // The figure's points, where they can be told, are about a quarter of this apart.
        ..figure("f3", 7, "CSLD starts to outperform WRR_a at P = 4 %", Rule::Within(0.25), |r| {
            once(crossing_percent(r, 7))
        })
    },
    CsldClaimSpec {
        paper: Some(2.0),
        paper_text: "2 %",
        unit: "%",
        explanation: |seeds| explain::crossing(seeds, 10),
        ..figure("f4", 10, "CSLD starts to outperform WRR_a at P = 2 %", Rule::Within(0.25), |r| {
            once(crossing_percent(r, 10))
        })
    },
    CsldClaimSpec {
        part: CsldPart::All,
        paper_text: "at lower P",
        ..figure(
            "f5",
            10,
            "with more variation CSLD outperforms WRR_a from a lower share on (figure 7's over figure 10's)",
            AHEAD,
            |r| once(crossing_percent(r, 7).zip(crossing_percent(r, 10)).map(|(seven, ten)| seven / ten)),
        )
    },
    CsldClaimSpec {
        part: CsldPart::All,
        place: Section("4.2.2", None),
        paper_text: "V shape",
        explanation: explain::valleys,
        ..figure(
            "f6",
            7,
            "every curve has a valley (CSLD over RR at the last share, over its least before)",
            AHEAD,
            |r| {
                by_figure(r, |number, shares| {
                    let (last, before) = shares.split_last()?;
                    let valley = least(before.iter().map(|&p| at(r, number, p, S::Csld, S::RoundRobin)))?;
                    Some(at(r, number, *last, S::Csld, S::RoundRobin)? / valley)
                })
            },
        )
    },
    CsldClaimSpec {
        part: CsldPart::All,
        place: Section("5", None),
        paper_text: "at least better",
        explanation: explain::light,
        ..figure(
            "f7",
            7,
            "CSLD performs at least better than RR for any workload (the least RR over it)",
            Rule::MoreThan(1.0 + EQUAL),
            |r| {
                by_figure(r, |number, shares| {
                    least(shares.iter().map(|&p| at(r, number, p, S::RoundRobin, S::Csld)))
                })
            },
        )
    },
    CsldClaimSpec {
        part: CsldPart::All,
        place: Section("4.2.2", None),
        paper_text: "outperforms or competes",
        explanation: explain::light,
        ..figure(
            "f8",
            7,
            "CSLD outperforms or competes with WRR_a (the most over it)",
            Rule::AtMost(1.0 + NEAR),
            |r| {
                by_figure(r, |number, shares| {
                    most(shares.iter().map(|&p| at(r, number, p, S::Csld, S::WrrA)))
                })
            },
        )
    },
    CsldClaimSpec {
        paper: Some(0.0),
        paper_text: "zero",
        unit: "",
        explanation: explain::peak_refusals,
        ..figure(
            "r5",
            7,
            "no connection is rejected by CSLD with {3} at 13.6 % (refused attempts)",
            Rule::AtMost(0.0),
            |r| once(r.refused(of_figure(S::Csld, 7, 136))),
        )
    },
    CsldClaimSpec {
        paper: Some(58_059.0),
        paper_text: "58,059",
        unit: "",
        explanation: explain::peak_refusals,
        ..figure(
            "r6",
            7,
            "there WRR_a rejects 58,059 connection requests (refused attempts)",
            Rule::Within(NEAR),
            |r| once(r.refused(of_figure(S::WrrA, 7, 136))),
        )
    },
    CsldClaimSpec {
        paper_text: "much more",
        explanation: explain::peak_refusals,
        ..figure(
            "r7",
            7,
            "RR and WRR_a reject much more than WRR_i and CSLD (the fewer of those over the more of these, one added to both)",
            Rule::AtLeast(GREATLY),
            |r| {
                let refused = |s| r.refused(of_figure(s, 7, 136));
                let high = least([refused(S::RoundRobin), refused(S::WrrA)]);
                let low = most([refused(S::WrrI), refused(S::Csld)]);
                once(high.zip(low).map(|(high, low)| (high + 1.0) / (low + 1.0)))
            },
        )
    },
    CsldClaimSpec {
        part: CsldPart::All,
        place: Section("4.2.2", None),
        paper_text: "slightly worse",
        explanation: explain::overhead,
        ..figure(
            "f9",
            7,
            "just after the valley WRR_a performs slightly worse than RR (over RR, the most)",
            SLIGHTLY_MORE,
            |r| {
                by_figure(r, |number, shares| {
                    most(shares.iter().map(|&p| at(r, number, p, S::WrrA, S::RoundRobin)))
                })
            },
        )
    },
    CsldClaimSpec {
        part: CsldPart::Robustness,
        place: Section("4.2.2", None),
        paper: Some(21.0),
        paper_text: "at most 21 %",
        unit: "%",
        explanation: explain::cheap_classes,
        ..figure(
            "f10",
            7,
            "with {1} or {2} WRR_i, WRR_a and CSLD gain at most 21 % over RR",
            Rule::AtMost(21.0),
            |r| {
                CHEAP_MIXES
                    .into_iter()
                    .map(|mix| {
                        let rr = WebRun::figure(S::RoundRobin, mix);
                        let gains = [S::WrrI, S::WrrA, S::Csld]
                            .map(|s| Some(100.0 - 100.0 * r.ratio(WebRun::figure(s, mix), rr)?));
                        (format!("{{{}}} {:.1} %", mix.0, f64::from(mix.1) / 10.0), most(gains))
                    })
                    .collect()
            },
        )
    },
];
