//! Why some claims of figure 9 do not hold, from the runs that they are about.

use super::cells::CONTROL_NODES;
use super::plan::{NodeReading, NodeRun, NodeStrategy as S};
use super::published::{MOST_NODES, TURNING_NODES};
use super::results::{SiteResults, of_site, seed_cell};
use super::sites::Site;

type Results<'a> = &'a [SiteResults];

/// Something of each workload that was run.
fn sites(results: Results<'_>, words: impl Fn(Site) -> String) -> String {
    let run = Site::ALL.into_iter().filter(|&site| of_site(results, site).next().is_some());
    run.map(|site| format!("{}: {}", site.title(), words(site))).collect::<Vec<_>>().join("; ")
}

/// Bytes per second of a node's interface.
pub(super) const INTERFACE_BYTES_PER_S: f64 = 11.7e6;

/// What is busy with a strategy: the file server, and the interfaces with what they send to clients.
fn busy(results: Results<'_>, site: Site, strategy: S, nodes: usize) -> String {
    let run = NodeRun::new(strategy, nodes);
    let cell = |value: &dyn Fn(&SiteResults) -> Option<f64>| seed_cell(results, site, (1.0, 0), value);
    format!(
        "{} {} requests/s, {} % of them read from the file server, which is busy {} % of the time, interfaces send to clients {} % of it",
        strategy.title(),
        cell(&|r| r.throughput_rps(run)),
        cell(&|r| r.read_percent(run)),
        cell(&|r| r.file_server_percent(run)),
        cell(&|r| Some(100.0 * r.sent_bytes_per_s(run)? / INTERFACE_BYTES_PER_S)),
    )
}

fn all_busy(results: Results<'_>, strategies: &[S], nodes: usize) -> String {
    let of = |site| strategies.iter().map(|&s| busy(results, site, s, nodes)).collect::<Vec<_>>().join(", ");
    sites(results, of)
}

/// Ratios at twelve nodes.
pub(super) fn at_twelve(results: Results<'_>) -> String {
    format!(
        "With twelve nodes, {}. What is not sent to clients is left for what comes in, from peers and the file server. How much is read \
         depends on popularity and sizes, of which the paper gives two means: the workloads differ in nothing that it publishes.",
        all_busy(results, &S::FIGURE[..4], MOST_NODES)
    )
}

/// Where round robin stops.
pub(super) fn round_robin(results: Results<'_>) -> String {
    let curve = |site| {
        let Some(first) = of_site(results, site).next() else { return String::new() };
        let at = |n: usize| {
            let run = NodeRun::new(S::RoundRobin, n);
            format!(
                "{n} nodes {}/s (file server busy {} %)",
                seed_cell(results, site, (1.0, 0), |r| r.throughput_rps(run)),
                seed_cell(results, site, (1.0, 0), |r| r.file_server_percent(run))
            )
        };
        first.nodes().into_iter().map(at).collect::<Vec<_>>().join(", ")
    };
    format!(
        "RR. {}. It stops where the file server is busy all the time; 38 connections are few for many nodes, which leave it idle now and then.",
        sites(results, curve)
    )
}

/// A strategy over round robin at each number of nodes.
fn over(results: Results<'_>, site: Site, of: S, over: S) -> String {
    let Some(first) = of_site(results, site).next() else { return String::new() };
    let at = |n: usize| format!("{n} nodes {}", seed_cell(results, site, (1.0, 2), |r| r.at(n, of, over)));
    let nodes = first.nodes().into_iter().filter(|&n| n > 1);
    format!("{} over {}: {}", of.title(), over.title(), nodes.map(at).collect::<Vec<_>>().join(", "))
}

/// Cooperative caching beside round robin.
pub(super) fn cooperative(results: Results<'_>) -> String {
    let of = |site| [S::CfLru, S::CfLfu].map(|s| over(results, site, s, S::RoundRobin)).join(", ");
    format!(
        "{}. With eight nodes {}. CF gains what RR waits for the file server, and pays with interfaces.",
        sites(results, of),
        all_busy(results, &S::FIGURE[..3], TURNING_NODES)
    )
}

/// LFU beside LRU.
pub(super) fn replacement(results: Results<'_>) -> String {
    let of =
        |site| [(S::CfLfu, S::CfLru), (S::ScLfu, S::Sc)].map(|(a, b)| over(results, site, a, b)).join(", ");
    let reads = |site| {
        let cell = |s: S| {
            let run = NodeRun::new(s, MOST_NODES);
            format!("{} {}", s.title(), seed_cell(results, site, (1.0, 1), |r| r.read_percent(run)))
        };
        [S::CfLru, S::CfLfu, S::Sc, S::ScLfu].map(cell).join(", ")
    };
    format!(
        "{}. Read from the file server with twelve nodes, in per cent of the requests: {}. Where the nodes are few, or the interfaces the \
         limit, what is read less makes no difference.",
        sites(results, of),
        sites(results, reads)
    )
}

/// SC beside all the others.
pub(super) fn lead(results: Results<'_>) -> String {
    let of = |site| [S::RoundRobin, S::CfLru, S::CfLfu].map(|s| over(results, site, S::Sc, s)).join(", ");
    format!(
        "{}. Few nodes have their interfaces busy with what they send and read, whatever the mechanism.",
        sites(results, of)
    )
}

/// SC by another mapping.
pub(super) fn mapping(results: Results<'_>) -> String {
    let strategies = [S::Sc, S::ScLardR];
    format!(
        "With twelve nodes {}.",
        strategies.map(|s| busy(results, Site::Berkeley, s, MOST_NODES)).join(", ")
    )
}

/// Readings that were changed.
pub(super) fn readings(results: Results<'_>) -> String {
    let of = |reading: NodeReading| {
        let at = |n: usize| {
            let cell = |s: S| {
                let run = NodeRun::new(s, n).with(reading);
                let rps = seed_cell(results, Site::Berkeley, (1.0, 0), |r| r.throughput_rps(run));
                format!("{} {rps}", s.title())
            };
            format!("{n} nodes {}", S::FIGURE.map(cell).join(", "))
        };
        format!("{}: {}", reading.title(), CONTROL_NODES.map(at).join(", "))
    };
    let readings = std::iter::once(NodeReading::AsElsewhere).chain(NodeReading::CHANGED);
    format!("Requests per second. {}.", readings.map(of).collect::<Vec<_>>().join("; "))
}
