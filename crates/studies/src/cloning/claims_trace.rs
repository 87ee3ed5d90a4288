//! Claims of section 4.2: figure 9.

use super::explain;
use super::plan::{NodeRun, NodeStrategy as S};
use super::published::{MOST_NODES, SC_OVER_CF_LFU, SC_OVER_CF_LRU, SC_OVER_RR, TURNING_NODES};
use super::results::SiteResults;
use super::rule::{CloningClaimSpec, Conditioned, once};
use super::summary::{least, median, most};
use crate::judge::PaperReference::{Figure, Section};
use crate::judge::{AHEAD, EQUAL, MATCHES, NEAR, Rule};

type Spec = CloningClaimSpec<SiteResults>;

const fn figure(
    id: &'static str,
    (statement, paper_text): (&'static str, &'static str),
    rule: Rule,
    values: fn(&SiteResults) -> Vec<Conditioned>,
    explanation: fn(&[SiteResults]) -> String,
) -> Spec {
    let place = Figure(9);
    CloningClaimSpec { id, place, statement, paper: None, paper_text, unit: "×", rule, values, explanation }
}

/// A printed ratio at twelve nodes. What is near is within 15 %; the paper gives no intervals.
const fn at_twelve(
    id: &'static str,
    paper: f64,
    (statement, paper_text): (&'static str, &'static str),
    values: fn(&SiteResults) -> Vec<Conditioned>,
    explanation: fn(&[SiteResults]) -> String,
) -> Spec {
    Spec {
        paper: Some(paper),
        ..figure(id, (statement, paper_text), Rule::Within(NEAR), values, explanation)
    }
}

/// Ratios of the numbers of nodes that `wanted` takes, of those that were run with cooperation: from two on.
fn by_nodes(
    r: &SiteResults,
    wanted: impl Fn(usize) -> bool,
    value: impl Fn(usize) -> Option<f64>,
) -> Vec<Option<f64>> {
    r.nodes().into_iter().filter(|&n| n > 1 && wanted(n)).map(value).collect()
}

/// RR's throughputs with up to eight nodes, each over that with the next smaller number that was run.
fn growths(r: &SiteResults) -> Vec<Option<f64>> {
    let at = |n| NodeRun::new(S::RoundRobin, n);
    let nodes: Vec<usize> = r.nodes().into_iter().filter(|&n| n <= TURNING_NODES).collect();
    nodes.windows(2).map(|pair| r.ratio(at(pair[1]), at(pair[0]))).collect()
}

const BOTH_CF: [S; 2] = [S::CfLru, S::CfLfu];

pub(super) const SPECS: &[Spec] = &[
    at_twelve(
        "t1",
        SC_OVER_RR,
        ("with twelve nodes SC outperforms RR by 96 % (over it)", "96 %"),
        |r| once(r.at(MOST_NODES, S::Sc, S::RoundRobin)),
        explain::at_twelve,
    ),
    at_twelve(
        "t2",
        SC_OVER_CF_LRU,
        ("and CF-LRU by 64 % (over it)", "64 %"),
        |r| once(r.at(MOST_NODES, S::Sc, S::CfLru)),
        explain::at_twelve,
    ),
    at_twelve(
        "t3",
        SC_OVER_CF_LFU,
        ("and CF-LFU by 30 % (over it)", "30 %"),
        |r| once(r.at(MOST_NODES, S::Sc, S::CfLfu)),
        explain::at_twelve,
    ),
    Spec {
        place: Section("4.2", Some(9)),
        ..figure(
            "t4",
            (
                "(abstract) SC outperforms all the others by more than 30 % with twelve nodes (over the best)",
                "more than 30 %",
            ),
            Rule::AtLeast(SC_OVER_CF_LFU),
            |r| once(least([S::RoundRobin, S::CfLru, S::CfLfu].map(|s| r.at(MOST_NODES, S::Sc, s)))),
            explain::at_twelve,
        )
    },
    figure(
        "t5",
        ("RR's throughput stops to increase beyond eight nodes (with twelve over that with eight)", "stops"),
        Rule::AtMost(1.0 + MATCHES),
        |r| {
            let at = |n| NodeRun::new(S::RoundRobin, n);
            once(r.ratio(at(MOST_NODES), at(TURNING_NODES)))
        },
        explain::round_robin,
    ),
    figure(
        "t6",
        ("and increases until then (with each number of nodes over the one before, the least)", "increases"),
        AHEAD,
        |r| once(least(growths(r))),
        explain::round_robin,
    ),
    figure(
        "t7",
        ("CF's throughput is not higher than RR's with up to eight nodes (over it, the most)", "not higher"),
        Rule::AtMost(1.0 + EQUAL),
        |r| {
            let value = |s| most(by_nodes(r, |n| n <= TURNING_NODES, |n| r.at(n, s, S::RoundRobin)));
            BOTH_CF.map(|s: S| (s.title().to_owned(), value(s))).to_vec()
        },
        explain::cooperative,
    ),
    figure(
        "t8",
        ("and is with more (over it, the least)", "higher"),
        AHEAD,
        |r| {
            let value = |s| least(by_nodes(r, |n| n > TURNING_NODES, |n| r.at(n, s, S::RoundRobin)));
            BOTH_CF.map(|s: S| (s.title().to_owned(), value(s))).to_vec()
        },
        explain::cooperative,
    ),
    figure(
        "t9",
        ("CF-LFU has a better performance than CF-LRU (over it, the least from two nodes on)", "better"),
        AHEAD,
        |r| once(least(by_nodes(r, |_| true, |n| r.at(n, S::CfLfu, S::CfLru)))),
        explain::replacement,
    ),
    figure(
        "t10",
        ("SC outperforms all the others (over the best, the least from two nodes on)", "outperforms"),
        AHEAD,
        |r| {
            let others = [S::RoundRobin, S::CfLru, S::CfLfu];
            once(least(by_nodes(r, |_| true, |n| least(others.map(|s| r.at(n, S::Sc, s))))))
        },
        explain::lead,
    ),
    at_twelve(
        "t11",
        2.0,
        (
            "SC has nearly twice the throughput of CF-LRU in most cases (over it, the median from two nodes on)",
            "nearly twice",
        ),
        |r| once(median(by_nodes(r, |_| true, |n| r.at(n, S::Sc, S::CfLru)))),
        explain::lead,
    ),
];
