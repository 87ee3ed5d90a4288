//! Measurements with queries for claims and figures.

use super::super::micro::MicroMechanism;
use super::super::plan::NodeStrategy;
use super::super::rule::StudyResults;
use super::super::summary::median;
use super::scaled::SimulatedRun;
use super::{LiveCloning, LiveRound, LiveRun, LiveSetting, LiveStartup};
use crate::seed_mean::SeedMean;

/// Figure 9 with one seed.
pub(in super::super) struct LiveSeed {
    pub(super) seed: u64,
    /// Each with what was simulated.
    pub(super) runs: Vec<(LiveRun, SimulatedRun)>,
}

/// Figure 8, and the startup of clones.
pub(in super::super) struct LiveMicro {
    pub(super) rounds: Vec<LiveRound>,
    pub(super) startup: Option<LiveStartup>,
}

impl StudyResults for LiveSeed {
    fn origin(&self) -> (String, u64) {
        ("berkeley, scaled, live".to_owned(), self.seed)
    }
}

impl StudyResults for LiveMicro {
    fn origin(&self) -> (String, u64) {
        ("one size, live".to_owned(), 1)
    }
}

/// The seeds of figure 9, with what was simulated beside each run.
pub(in super::super) fn by_seed(live: &LiveCloning, simulated: &[SimulatedRun]) -> Vec<LiveSeed> {
    let mut seeds: Vec<LiveSeed> = Vec::new();
    for (run, simulated) in live.nodes.iter().zip(simulated) {
        let at = seeds.iter().position(|of| of.seed == run.seed).unwrap_or_else(|| {
            seeds.push(LiveSeed { seed: run.seed, runs: Vec::new() });
            seeds.len() - 1
        });
        seeds[at].runs.push((run.clone(), *simulated));
    }
    seeds
}

/// Figure 8; `None` if nothing of it was measured.
pub(in super::super) fn micro(live: &LiveCloning) -> Option<LiveMicro> {
    let of = LiveMicro { rounds: live.micro.clone(), startup: live.startup };
    (!of.rounds.is_empty() || of.startup.is_some()).then_some(of)
}

impl LiveSeed {
    fn run(&self, setting: LiveSetting) -> Option<&(LiveRun, SimulatedRun)> {
        self.runs.iter().find(|(run, _)| run.setting == setting)
    }

    /// Of a strategy; with one node all that do not fetch and have the same memory are one.
    pub(super) fn of(&self, strategy: NodeStrategy, nodes: usize) -> Option<&(LiveRun, SimulatedRun)> {
        self.run(LiveSetting::new(strategy.with_nodes(nodes), nodes))
    }

    /// Throughput of one strategy over that of another with so many nodes.
    pub(super) fn at(&self, nodes: usize, of: NodeStrategy, over: NodeStrategy) -> Option<f64> {
        Some(self.of(of, nodes)?.0.throughput_rps / self.of(over, nodes)?.0.throughput_rps)
    }

    /// Throughput measured over a simulated one.
    pub(super) fn over_simulated(
        &self,
        nodes: usize,
        strategy: NodeStrategy,
        rps: fn(&SimulatedRun) -> f64,
    ) -> Option<f64> {
        self.of(strategy, nodes).map(|(run, simulated)| run.throughput_rps / rps(simulated))
    }

    /// Numbers of nodes that were measured.
    pub(super) fn nodes(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = self.runs.iter().map(|(run, _)| run.setting.nodes).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

/// Mean of a value over the seeds, with its confidence interval.
pub(super) fn mean(
    seeds: &[LiveSeed],
    strategy: NodeStrategy,
    nodes: usize,
    value: impl Fn(&LiveRun, &SimulatedRun) -> f64,
) -> Option<SeedMean> {
    let values: Vec<f64> =
        seeds.iter().filter_map(|of| of.of(strategy, nodes)).map(|(run, of)| value(run, of)).collect();
    SeedMean::of(&values)
}

impl LiveMicro {
    /// Sizes that were measured.
    pub(in super::super) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.rounds.iter().map(|round| round.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn rounds(&self, mechanism: MicroMechanism, size_bytes: u64) -> impl Iterator<Item = &LiveRound> {
        self.rounds.iter().filter(move |r| (r.mechanism, r.size_bytes) == (mechanism, size_bytes))
    }

    /// Normalized efficiency: the median of the rounds.
    pub(super) fn efficiency(&self, mechanism: MicroMechanism, size_bytes: u64) -> Option<f64> {
        median(self.rounds(mechanism, size_bytes).map(|round| Some(round.with_rps / round.alone_rps)))
    }

    /// Least and greatest of the rounds.
    pub(super) fn range(&self, mechanism: MicroMechanism, size_bytes: u64) -> Option<(f64, f64)> {
        let all = || self.rounds(mechanism, size_bytes).map(|round| round.with_rps / round.alone_rps);
        Some((all().reduce(f64::min)?, all().reduce(f64::max)?))
    }

    /// Requests per second with a mechanism, and of a single web server: medians.
    pub(super) fn throughputs_rps(&self, mechanism: MicroMechanism, size_bytes: u64) -> Option<(f64, f64)> {
        let of = |value: fn(&LiveRound) -> f64| {
            median(self.rounds(mechanism, size_bytes).map(|round| Some(value(round))))
        };
        Some((of(|round| round.with_rps)?, of(|round| round.alone_rps)?))
    }

    /// The size in bytes from which on CF is less efficient than LARD's handoff.
    pub(super) fn crossing_bytes(&self) -> Option<f64> {
        let lead = |size| {
            let at = |mechanism| self.efficiency(mechanism, size);
            Some((size as f64, at(MicroMechanism::Forwarding)? - at(MicroMechanism::Handoff)?))
        };
        super::super::summary::crossing(&self.sizes().into_iter().map(lead).collect::<Option<Vec<_>>>()?)
    }
}
