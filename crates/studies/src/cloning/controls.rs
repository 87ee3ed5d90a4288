//! Readings of figure 9 that are changed one at a time, what the paper expects of later work, and what goes beyond it.

use super::explain;
use super::plan::{NodeReading, NodeRun, NodeStrategy as S};
use super::published::{MOST_NODES, TURNING_NODES};
use super::results::SiteResults;
use super::rule::{CloningClaimSpec, Conditioned, once};
use super::summary::least;
use crate::judge::PaperReference::Section;
use crate::judge::{AHEAD, EQUAL, MATCHES, Rule};

type Spec = CloningClaimSpec<SiteResults>;

const fn control(
    id: &'static str,
    (statement, paper_text): (&'static str, &'static str),
    rule: Rule,
    values: fn(&SiteResults) -> Vec<Conditioned>,
    explanation: fn(&[SiteResults]) -> String,
) -> Spec {
    let place = Section("4.2", Some(9));
    CloningClaimSpec { id, place, statement, paper: None, paper_text, unit: "×", rule, values, explanation }
}

/// Throughput of a strategy with twelve nodes when something is read otherwise, over that as it is read elsewhere.
fn changed(r: &SiteResults, strategy: S, reading: NodeReading) -> Option<f64> {
    let run = NodeRun::new(strategy, MOST_NODES);
    r.ratio(run.with(reading), run)
}

pub(super) const CONTROLS: &[Spec] = &[
    control(
        "p1",
        ("expected: LFU makes SC better (over SC, the least from two nodes on)", "higher"),
        AHEAD,
        |r| once(least(r.nodes().into_iter().filter(|&n| n > 1).map(|n| r.at(n, S::ScLfu, S::Sc)))),
        explain::replacement,
    ),
    control(
        "x3",
        (
            "where reads do not wait for the interface, RR does not increase from four to eight nodes",
            "control",
        ),
        Rule::AtMost(1.0 + MATCHES),
        |r| {
            let at = |nodes| NodeRun::new(S::RoundRobin, nodes).with(NodeReading::ReadsBeside);
            once(r.ratio(at(TURNING_NODES), at(4)))
        },
        explain::readings,
    ),
    control(
        "x4",
        ("SC is ahead of all the others however the rest is read (twelve nodes, over the best)", "control"),
        AHEAD,
        |r| {
            let lead = |reading: NodeReading| {
                let others = [S::RoundRobin, S::CfLru, S::CfLfu];
                let at = |s| NodeRun::new(s, MOST_NODES).with(reading);
                (reading.title().to_owned(), least(others.map(|s| r.ratio(at(S::Sc), at(s)))))
            };
            NodeReading::CHANGED.map(lead).to_vec()
        },
        explain::readings,
    ),
    control(
        "x5",
        ("fetches without messages do not make CF-LRU faster (twelve nodes, over that with them)", "control"),
        Rule::AtMost(1.0 + EQUAL),
        |r| once(changed(r, S::CfLru, NodeReading::FreeMessages)),
        explain::readings,
    ),
    control(
        "x7",
        ("LFU that forgets with the copy is as LRU (twelve nodes, CF-LFU over CF-LRU)", "control"),
        Rule::Between(1.0 - MATCHES, 1.0 + MATCHES),
        |r| {
            let of = NodeRun::new(S::CfLfu, MOST_NODES).with(NodeReading::CountsForgotten);
            once(r.ratio(of, NodeRun::new(S::CfLru, MOST_NODES)))
        },
        explain::readings,
    ),
    control(
        "x6",
        ("mapped by LARD/R instead of a hash SC is faster (twelve nodes, over SC)", "beyond the paper"),
        AHEAD,
        |r| once(r.at(MOST_NODES, S::ScLardR, S::Sc)),
        explain::mapping,
    ),
];
