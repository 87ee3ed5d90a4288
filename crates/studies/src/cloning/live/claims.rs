//! Claims of the paper, judged on what was measured live.

use super::super::micro::{LARGE_BYTES, MicroMechanism as M, SMALL_BYTES};
use super::super::plan::NodeStrategy as S;
use super::super::published::{CLONE_US, TURNING_NODES};
use super::super::rule::{CloningClaimSpec, Conditioned, once};
use super::super::summary::{least, median, most};
use super::explain;
use super::results::{LiveMicro, LiveSeed};
use super::scaled::SimulatedRun;
use crate::judge::PaperReference::{Figure, Section};
use crate::judge::{AHEAD, BEHIND, NEAR, Rule};

const fn figure<R>(
    (id, number): (&'static str, u32),
    (statement, paper_text): (&'static str, &'static str),
    rule: Rule,
    values: fn(&R) -> Vec<Conditioned>,
    explanation: fn(&[R]) -> String,
) -> CloningClaimSpec<R> {
    let place = Figure(number);
    CloningClaimSpec { id, place, statement, paper: None, paper_text, unit: "×", rule, values, explanation }
}

fn at_large(r: &LiveMicro, mechanism: M) -> Vec<Option<f64>> {
    r.sizes()
        .into_iter()
        .filter(|&size| size >= LARGE_BYTES)
        .map(|size| r.efficiency(mechanism, size))
        .collect()
}

/// Efficiency of SC over the better of the others at a size.
fn lead(r: &LiveMicro, size: u64) -> Option<f64> {
    Some(r.efficiency(M::Cloning, size)? / most([M::Forwarding, M::Handoff].map(|m| r.efficiency(m, size)))?)
}

pub(in super::super) const MICRO: &[CloningClaimSpec<LiveMicro>] = &[
    CloningClaimSpec {
        place: Section("4.1", Some(8)),
        paper: Some(CLONE_US),
        unit: "µs",
        ..figure(
            ("l1", 8),
            ("live: a clone is there as soon as on the Pentium III of 733 MHz (median)", "46 µs"),
            Rule::AtMost(CLONE_US),
            |r| once(r.startup.map(|of| of.median_us)),
            explain::startup,
        )
    },
    figure(
        ("l2", 8),
        (
            "live: SC achieves nearly 100 % for large files (efficiency from 64 KB on, the least)",
            "nearly 100 %",
        ),
        Rule::AtLeast(0.95),
        |r| once(least(at_large(r, M::Cloning))),
        explain::efficiencies,
    ),
    figure(
        ("l3", 8),
        ("live: LARD achieves less than 80 % (efficiency from 64 KB on, the most)", "less than 80 %"),
        Rule::LessThan(0.8),
        |r| once(most(at_large(r, M::Handoff))),
        explain::efficiencies,
    ),
    figure(
        ("l4", 8),
        ("live: CF stays about the same below one kilobyte (at 1 KB over that at 64 B)", "about the same"),
        Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        |r| {
            let at = |size| r.efficiency(M::Forwarding, size);
            once(at(SMALL_BYTES).zip(at(64)).map(|(small, least)| small / least))
        },
        explain::efficiencies,
    ),
    CloningClaimSpec {
        paper: Some(0.5),
        ..figure(
            ("l5", 8),
            ("live: CF drops to about 50 % for larger files (efficiency at 1 MB)", "about 50 %"),
            Rule::Within(NEAR),
            |r| once(r.efficiency(M::Forwarding, 1 << 20)),
            explain::efficiencies,
        )
    },
    figure(
        ("l6", 8),
        ("live: the crossover of CF and LARD is at about 3 KB (ours over that)", "about 3 KB"),
        Rule::Between(0.5, 2.0),
        |r| once(r.crossing_bytes().map(|bytes| bytes / (3.0 * 1024.0))),
        explain::efficiencies,
    ),
    figure(
        ("l7", 8),
        (
            "live: the setup cost of LARD is larger than the others' (efficiency at 64 B over the lesser of theirs)",
            "smaller",
        ),
        BEHIND,
        |r| {
            let at = |m| r.efficiency(m, 64);
            let others = least([at(M::Cloning), at(M::Forwarding)]);
            once(at(M::Handoff).zip(others).map(|(handoff, others)| handoff / others))
        },
        explain::efficiencies,
    ),
    figure(
        ("l8", 8),
        ("live: SC incurs less overhead than both (efficiency over the better of theirs, by size)", "less"),
        AHEAD,
        |r| {
            r.sizes()
                .into_iter()
                .map(|size| (super::super::results::size_words(size), lead(r, size)))
                .collect()
        },
        explain::efficiencies,
    ),
];

/// Values of the numbers of nodes that `wanted` takes, from two on.
fn by_nodes(
    r: &LiveSeed,
    wanted: impl Fn(usize) -> bool,
    value: impl Fn(usize) -> Option<f64>,
) -> Vec<Option<f64>> {
    r.nodes().into_iter().filter(|&n| n > 1 && wanted(n)).map(value).collect()
}

fn growths(r: &LiveSeed) -> Vec<Option<f64>> {
    let rps = |n| r.of(S::RoundRobin, n).map(|(run, _)| run.throughput_rps);
    let nodes: Vec<usize> = r.nodes().into_iter().filter(|&n| n <= TURNING_NODES).collect();
    nodes.windows(2).map(|pair| Some(rps(pair[1])? / rps(pair[0])?)).collect()
}

pub(in super::super) const NODES: &[CloningClaimSpec<LiveSeed>] = &[
    figure(
        ("n1", 9),
        ("live: SC outperforms all the others (over the best, the least from two nodes on)", "outperforms"),
        AHEAD,
        |r| {
            let others = [S::RoundRobin, S::CfLru, S::CfLfu];
            once(least(by_nodes(r, |_| true, |n| least(others.map(|s| r.at(n, S::Sc, s))))))
        },
        explain::nodes,
    ),
    CloningClaimSpec {
        paper: Some(2.0),
        ..figure(
            ("n2", 9),
            (
                "live: SC has nearly twice the throughput of CF-LRU in most cases (over it, the median from two nodes on)",
                "nearly twice",
            ),
            Rule::Within(NEAR),
            |r| once(median(by_nodes(r, |_| true, |n| r.at(n, S::Sc, S::CfLru)))),
            explain::nodes,
        )
    },
    figure(
        ("n3", 9),
        (
            "live: CF-LFU has a better performance than CF-LRU (over it, the least from two nodes on)",
            "better",
        ),
        AHEAD,
        |r| once(least(by_nodes(r, |_| true, |n| r.at(n, S::CfLfu, S::CfLru)))),
        explain::nodes,
    ),
    figure(
        ("n4", 9),
        (
            "live: CF's throughput is not higher than RR's with up to eight nodes (over it, the most)",
            "not higher",
        ),
        Rule::AtMost(1.0 + crate::judge::EQUAL),
        |r| {
            let value = |s| most(by_nodes(r, |n| n <= TURNING_NODES, |n| r.at(n, s, S::RoundRobin)));
            [S::CfLru, S::CfLfu].map(|s: S| (s.title().to_owned(), value(s))).to_vec()
        },
        explain::nodes,
    ),
    figure(
        ("n5", 9),
        ("live: RR's throughput increases up to eight nodes (over the one before, the least)", "increases"),
        AHEAD,
        |r| once(least(growths(r))),
        explain::nodes,
    ),
];

fn over_simulated(r: &LiveSeed, rps: fn(&SimulatedRun) -> f64) -> Vec<Conditioned> {
    let of = |n: usize| S::FIGURE.map(|s| (format!("{}, {n} nodes", s.title()), r.over_simulated(n, s, rps)));
    r.nodes().into_iter().filter(|&n| n > 1).flat_map(of).collect()
}

/// What the paper expects, and how near the simulation is.
pub(in super::super) const CONTROLS: &[CloningClaimSpec<LiveSeed>] = &[
    figure(
        ("n6", 9),
        ("live, expected: LFU makes SC better (over SC, the least from two nodes on)", "higher"),
        AHEAD,
        |r| once(least(by_nodes(r, |_| true, |n| r.at(n, S::ScLfu, S::Sc)))),
        explain::nodes,
    ),
    figure(
        ("n7", 9),
        ("throughput live is that of the simulation at the same scale (live over simulated)", "control"),
        Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        |r| over_simulated(r, |of| of.as_read_rps),
        explain::simulated,
    ),
    figure(
        ("n8", 9),
        (
            "and that of the simulation in which reads do not wait for the interface (live over simulated)",
            "control",
        ),
        Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        |r| over_simulated(r, |of| of.reads_beside_rps),
        explain::simulated,
    ),
];
