//! Tables of the report.

use plimsoll_report::{Section, Table};

use super::cells::CONTROL_NODES;
use super::micro::{MicroLoad, MicroMechanism, SIZES_BYTES};
use super::plan::{NodeReading, NodeRun, NodeStrategy as S};
use super::published::{MOST_NODES, SC_OVER_CF_LFU, SC_OVER_CF_LRU, SC_OVER_RR};
use super::results::{MicroResults, SiteResults, columns, of_site, seed_cell, size_words};
use super::sites::Site;

/// Something of each run of a workload: a row for each strategy, a column for each number of nodes.
pub(super) fn by_nodes(
    results: &[SiteResults],
    site: Site,
    (caption, decimals): (&str, usize),
    value: impl Fn(&SiteResults, NodeRun) -> Option<f64>,
) -> Table {
    let nodes = of_site(results, site).next().map(SiteResults::nodes).unwrap_or_default();
    let mut table = columns(nodes.iter().map(usize::to_string)).captioned(caption);
    for strategy in S::FIGURE {
        let cell =
            |&n: &usize| seed_cell(results, site, (1.0, decimals), |r| value(r, NodeRun::new(strategy, n)));
        table.row(std::iter::once(strategy.title().to_owned()).chain(nodes.iter().map(cell)));
    }
    table
}

/// The ratios that the paper prints, on each workload.
pub(super) fn ratios(results: &[SiteResults]) -> Table {
    let names = ["SC over RR", "SC over CF-LRU", "SC over CF-LFU", "SC with LFU over SC"].map(str::to_owned);
    let mut table = columns(names).captioned("Throughput with twelve nodes");
    let printed = [SC_OVER_RR, SC_OVER_CF_LRU, SC_OVER_CF_LFU].map(|ratio| format!("{ratio:.2}"));
    let paper = std::iter::once("paper".to_owned()).chain(printed);
    table.row(paper.chain(["higher expected".to_owned()]));
    for site in Site::ALL.into_iter().filter(|&site| of_site(results, site).next().is_some()) {
        let cell = |(of, over): (S, S)| seed_cell(results, site, (1.0, 2), |r| r.at(MOST_NODES, of, over));
        let pairs = [(S::Sc, S::RoundRobin), (S::Sc, S::CfLru), (S::Sc, S::CfLfu), (S::ScLfu, S::Sc)];
        table.row(std::iter::once(site.title().to_owned()).chain(pairs.map(cell)));
    }
    table
}

/// Requests per second with readings changed one at a time.
pub(super) fn readings(results: &[SiteResults]) -> Section {
    let cases: Vec<(S, usize)> = CONTROL_NODES.iter().flat_map(|&n| S::FIGURE.map(|s| (s, n))).collect();
    let mut table = columns(cases.iter().map(|(s, n)| format!("{}, {n} nodes", s.title())))
        .captioned("Requests per second on berkeley");
    for reading in std::iter::once(NodeReading::AsElsewhere).chain(NodeReading::CHANGED) {
        let cell = |&(s, n): &(S, usize)| {
            let run = NodeRun::new(s, n).with(reading);
            seed_cell(results, Site::Berkeley, (1.0, 0), |r| r.throughput_rps(run))
        };
        table.row(std::iter::once(reading.title().to_owned()).chain(cases.iter().map(cell)));
    }
    let by_lard = NodeRun::new(S::ScLardR, MOST_NODES);
    let rps = seed_cell(results, Site::Berkeley, (1.0, 0), |r| r.throughput_rps(by_lard));
    Section::new("Readings changed one at a time").table(table).paragraph(format!(
        "Mapped by LARD/R instead of a hash, SC answers {rps} requests per second with twelve nodes."
    ))
}

/// Normalized efficiency by size, in per cent.
pub(super) fn efficiencies(micro: &MicroResults, load: MicroLoad) -> Table {
    let mut table = columns(SIZES_BYTES.map(size_words))
        .captioned(format!("Normalized efficiency in per cent, {}", load.title()));
    for mechanism in MicroMechanism::ALL {
        let cell = |size| match micro.efficiency(mechanism, load, size) {
            Some(value) => format!("{:.1}", 100.0 * value),
            None => "–".to_owned(),
        };
        table.row(std::iter::once(mechanism.title().to_owned()).chain(SIZES_BYTES.map(cell)));
    }
    table
}

/// Requests per second by size: with the mechanism, and of a single web server.
pub(super) fn throughputs(micro: &MicroResults, load: MicroLoad) -> Table {
    let mut table =
        columns(SIZES_BYTES.map(size_words)).captioned(format!("Requests per second, {}", load.title()));
    for mechanism in MicroMechanism::FIGURE {
        let of = |size| micro.throughputs_rps(mechanism, load, size);
        let cell = |rps: Option<f64>| rps.map_or_else(|| "–".to_owned(), |rps| format!("{rps:.0}"));
        let rows = [
            ("", SIZES_BYTES.map(|s| of(s).map(|of| of.0))),
            (", single server", SIZES_BYTES.map(|s| of(s).map(|of| of.1))),
        ];
        for (whose, row) in rows {
            table.row(std::iter::once(format!("{}{whose}", mechanism.title())).chain(row.map(cell)));
        }
    }
    table
}
