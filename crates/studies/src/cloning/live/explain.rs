//! Why claims do not hold live, from the measurements that they are about.

use super::super::micro::MicroMechanism as M;
use super::super::plan::NodeStrategy as S;
use super::super::results::size_words;
use super::results::{LiveMicro, LiveSeed, mean};
use super::scaled::SimulatedRun;

pub(super) fn startup(results: &[LiveMicro]) -> String {
    let Some(of) = results.iter().find_map(|r| r.startup) else { return String::new() };
    format!(
        "Of {} clones the median took {:.1} µs, and 99 % no longer than {:.1} µs: from the decision until the other node has said that the clone is \
         there. In the paper both sides are in the kernel; here two threads of two nodes are woken, each of which takes longer than the work.",
        of.clones, of.median_us, of.p99_us
    )
}

pub(super) fn efficiencies(results: &[LiveMicro]) -> String {
    let Some(r) = results.first() else { return String::new() };
    let of = |mechanism: M| {
        let at = |size| {
            let percent = r.efficiency(mechanism, size).map_or(f64::NAN, |value| 100.0 * value);
            format!("{} {percent:.0} %", size_words(size))
        };
        let sizes: Vec<String> = r.sizes().into_iter().map(at).collect();
        format!("{} {}", mechanism.title(), sizes.join(", "))
    };
    format!(
        "{}. What is small costs CPU time, of which nodes have a limit: beside an answer from memory, which costs little, the mechanism weighs more \
         than beside that of the paper's server. What is large fills the links.",
        M::FIGURE.map(of).join("; ")
    )
}

pub(super) fn nodes(results: &[LiveSeed]) -> String {
    let of = |n: usize| {
        let cell = |s: S| {
            let value = |of: fn(&super::LiveRun) -> f64| {
                mean(results, s, n, |run, _| of(run)).map_or(f64::NAN, |of| of.mean)
            };
            format!(
                "{} {:.0}/s (read {:.0} %, file server busy {:.0} %, links sending {:.0} %)",
                s.title(),
                value(|run| run.throughput_rps),
                100.0 * value(|run| run.read_share),
                100.0 * value(|run| run.file_server_busy),
                100.0 * value(|run| run.sending)
            )
        };
        format!("{n} nodes: {}", S::FIGURE.map(cell).join(", "))
    };
    let nodes = results.first().map(LiveSeed::nodes).unwrap_or_default();
    format!(
        "{}. Links here send and receive at the same time, so that what comes in from others takes nothing from what is sent to clients; \
         the paper's interfaces seem to do one or the other.",
        nodes.into_iter().filter(|&n| n > 1).map(of).collect::<Vec<_>>().join("; ")
    )
}

pub(super) fn simulated(results: &[LiveSeed]) -> String {
    let of = |n: usize| {
        let cell = |s: S| {
            let ratio = |rps: fn(&SimulatedRun) -> f64| {
                mean(results, s, n, |run, of| run.throughput_rps / rps(of)).map_or(f64::NAN, |of| of.mean)
            };
            format!(
                "{} {:.2} ({:.2})",
                s.title(),
                ratio(|of| of.as_read_rps),
                ratio(|of| of.reads_beside_rps)
            )
        };
        format!("{n} nodes: {}", S::FIGURE.map(cell).join(", "))
    };
    let nodes = results.first().map(LiveSeed::nodes).unwrap_or_default();
    format!(
        "Live over simulated, and in brackets over that in which reads come in beside what is sent. {}. In the simulation an interface sends or \
         receives, on the lab both at once.",
        nodes.into_iter().filter(|&n| n > 1).map(of).collect::<Vec<_>>().join("; ")
    )
}
