//! The runs, with queries for claims and figures.

use std::collections::BTreeMap;

use plimsoll_report::{Align, Run, Table};

use super::micro::{MicroLoad, MicroMechanism, MicroRun, SIZES_BYTES};
use super::plan::{NodeReading, NodeRun, NodeStrategy};
use super::sites::Site;
use super::summary::crossing;
use crate::seed_mean::SeedMean;

/// Figure 9 on one workload with one seed.
pub(super) struct SiteResults {
    pub(super) site: Site,
    pub(super) seed: u64,
    pub(super) facts: SiteFacts,
    pub(super) runs: BTreeMap<NodeRun, Run>,
}

/// What a workload is, for calibration.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct SiteFacts {
    pub(super) targets: usize,
    pub(super) total_bytes: u64,
    /// Mean size of what was asked for in a run.
    pub(super) request_mean_bytes: f64,
}

impl SiteResults {
    /// Answers per second.
    pub(super) fn throughput_rps(&self, run: NodeRun) -> Option<f64> {
        self.runs.get(&run).map(|run| run.throughput_rps)
    }

    /// Throughput of one run over that of another.
    pub(super) fn ratio(&self, run: NodeRun, over: NodeRun) -> Option<f64> {
        Some(self.throughput_rps(run)? / self.throughput_rps(over)?)
    }

    /// Throughput of one strategy over that of another with so many nodes.
    pub(super) fn at(&self, nodes: usize, of: NodeStrategy, over: NodeStrategy) -> Option<f64> {
        self.ratio(NodeRun::new(of, nodes), NodeRun::new(over, nodes))
    }

    /// Numbers of nodes of the figure.
    pub(super) fn nodes(&self) -> Vec<usize> {
        let of = |run: &&NodeRun| {
            run.strategy == NodeStrategy::RoundRobin && run.reading == NodeReading::AsElsewhere
        };
        self.runs.keys().filter(of).map(|run| run.nodes).collect()
    }

    /// Reads from the file server for each request, in per cent.
    pub(super) fn read_percent(&self, run: NodeRun) -> Option<f64> {
        Some(100.0 * self.runs.get(&run)?.miss_ratio?)
    }

    /// Share of time that the file server was busy, in per cent.
    pub(super) fn file_server_percent(&self, run: NodeRun) -> Option<f64> {
        Some(100.0 * self.runs.get(&run)?.utilization.disk?)
    }

    /// Share of time that CPUs were busy, in per cent.
    pub(super) fn cpu_percent(&self, run: NodeRun) -> Option<f64> {
        self.runs.get(&run).map(|run| 100.0 * run.utilization.cpu)
    }

    /// Bytes per second that the nodes sent to clients, for each node.
    pub(super) fn sent_bytes_per_s(&self, run: NodeRun) -> Option<f64> {
        let done = self.runs.get(&run)?;
        Some(done.sent_bytes as f64 / done.simulated_s.max(1e-9) / run.nodes as f64)
    }
}

/// Figure 8.
pub(super) struct MicroResults {
    pub(super) runs: BTreeMap<MicroRun, Run>,
}

impl MicroResults {
    /// Requests per second with the mechanism, and on a single web server.
    pub(super) fn throughputs_rps(
        &self,
        mechanism: MicroMechanism,
        load: MicroLoad,
        size_bytes: u64,
    ) -> Option<(f64, f64)> {
        let of = |alone| self.runs.get(&MicroRun { mechanism, alone, load, size_bytes });
        Some((of(false)?.throughput_rps, of(true)?.throughput_rps))
    }

    /// Normalized efficiency: the one over the other.
    pub(super) fn efficiency(
        &self,
        mechanism: MicroMechanism,
        load: MicroLoad,
        size_bytes: u64,
    ) -> Option<f64> {
        self.throughputs_rps(mechanism, load, size_bytes).map(|(with, alone)| with / alone)
    }

    /// Efficiencies at all sizes.
    pub(super) fn curve(&self, mechanism: MicroMechanism, load: MicroLoad) -> Vec<(u64, f64)> {
        let point = |&size: &u64| self.efficiency(mechanism, load, size).map(|value| (size, value));
        SIZES_BYTES.iter().filter_map(point).collect()
    }

    /// The size in bytes from which on CF is less efficient than LARD's handoff: between two sizes in proportion to their logarithms.
    /// `None` where it is so at all sizes or at none.
    pub(super) fn crossing_bytes(&self, load: MicroLoad) -> Option<f64> {
        let lead = |&(size, cf): &(u64, f64)| {
            Some((size as f64, cf - self.efficiency(MicroMechanism::Handoff, load, size)?))
        };
        let curve = self.curve(MicroMechanism::Forwarding, load);
        let leads: Vec<(f64, f64)> = curve.iter().map(lead).collect::<Option<_>>()?;
        crossing(&leads)
    }
}

/// The results on one workload with all seeds.
pub(super) fn of_site(results: &[SiteResults], site: Site) -> impl Iterator<Item = &SiteResults> + Clone {
    results.iter().filter(move |r| r.site == site)
}

/// Mean of a value over the seeds of a workload, with its confidence interval.
pub(super) fn seed_mean(
    results: &[SiteResults],
    site: Site,
    value: impl Fn(&SiteResults) -> Option<f64>,
) -> Option<SeedMean> {
    let values: Vec<f64> =
        of_site(results, site).filter_map(value).filter(|value| value.is_finite()).collect();
    SeedMean::of(&values)
}

/// That as the cell of a table.
pub(super) fn seed_cell(
    results: &[SiteResults],
    site: Site,
    (scale, decimals): (f64, usize),
    value: impl Fn(&SiteResults) -> Option<f64>,
) -> String {
    seed_mean(results, site, value).map_or_else(|| "–".to_owned(), |mean| mean.words(scale, decimals))
}

/// A table of such columns, all numbers, behind one of names.
pub(super) fn columns(names: impl IntoIterator<Item = String>) -> Table {
    let first = std::iter::once((String::new(), Align::Left));
    Table::new(first.chain(names.into_iter().map(|name| (name, Align::Right))))
}

/// A size in words.
pub(super) fn size_words(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes / 1024),
        _ => format!("{} MB", bytes / 1_048_576),
    }
}
