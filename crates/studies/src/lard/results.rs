//! The runs of the study, with queries for claims and figures.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use plimsoll_report::{LoadSeries, Run};
use plimsoll_synth::coverage_bytes;

use super::plan::{Family, Instance, Variant};
use crate::workload::Workload;

/// What identifies a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RunKey {
    instance: Instance,
    variant: Variant,
    strategy: String,
    backends: usize,
}

/// Statistics of a workload: the curves of figures 5 and 6.
#[derive(Debug, Clone, Default)]
pub(super) struct Profile {
    /// Distinct targets.
    pub(super) targets: f64,
    /// Bytes of all targets in MiB.
    pub(super) total_mib: f64,
    /// MiB that cover 97, 98 and 99 % of the requests.
    pub(super) cover_mib: [f64; 3],
    /// Share of the most frequent target.
    pub(super) top_share: f64,
    /// Cumulative share of requests by share of targets, in falling frequency.
    pub(super) requests_curve: Vec<(f64, f64)>,
    /// Cumulative share of bytes, likewise.
    pub(super) bytes_curve: Vec<(f64, f64)>,
}

impl Profile {
    pub(super) fn of(workload: &Workload) -> Self {
        let table = &workload.trace.targets;
        let ids = 0..table.len() as u32;
        let mut pairs: Vec<(u64, u64)> =
            ids.map(|t| (table.requests(t), table.document_size_bytes(t))).collect();
        pairs.sort_by_key(|&(requests, _)| std::cmp::Reverse(requests));
        let (counts, sizes): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
        let requests = counts.iter().sum::<u64>() as f64;
        let bytes = sizes.iter().sum::<u64>() as f64;
        const MIB: f64 = 1_048_576.0;
        let covered = coverage_bytes(&counts, &sizes, &[0.97, 0.98, 0.99]);
        let cover = |i: usize| covered.get(i).map_or(0.0, |&b| b as f64 / MIB);
        let curve = |values: &[u64], total: f64| {
            let step = (values.len() / 200).max(1);
            let mut sum = 0;
            let mut points = vec![(0.0, 0.0)];
            for (at, value) in values.iter().enumerate() {
                sum += value;
                if (at + 1) % step == 0 || at + 1 == values.len() {
                    points.push(((at + 1) as f64, sum as f64 / total));
                }
            }
            points
        };
        Self {
            targets: counts.len() as f64,
            total_mib: bytes / MIB,
            cover_mib: [cover(0), cover(1), cover(2)],
            top_share: counts.first().map_or(0.0, |&c| c as f64 / requests),
            requests_curve: curve(&counts, requests),
            bytes_curve: curve(&sizes, bytes),
        }
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct LardResults {
    runs: BTreeMap<RunKey, Run>,
    profiles: BTreeMap<Instance, Profile>,
}

impl LardResults {
    pub(super) fn add(&mut self, instance: &Instance, profile: Profile, runs: Vec<(Variant, Run)>) {
        self.profiles.insert(*instance, profile);
        for (variant, mut run) in runs {
            // There are hundreds of runs, and their load over time is not shown, so drop it.
            run.load_series = LoadSeries::default();
            run.trace.path = instance.name();
            let key =
                RunKey { instance: *instance, variant, strategy: run.policy.clone(), backends: run.backends };
            self.runs.insert(key, run);
        }
    }

    /// The workloads of a kind, in order.
    pub(super) fn instances(&self, of: impl Fn(Family) -> bool) -> Vec<Instance> {
        self.profiles.keys().copied().filter(|i| of(i.family)).collect()
    }

    pub(super) fn profile(&self, instance: &Instance) -> Option<&Profile> {
        self.profiles.get(instance)
    }

    pub(super) fn on(&self, instance: Instance) -> View<'_> {
        View { results: self, instance, condition: Condition::default() }
    }

    pub(super) fn into_runs(self) -> Vec<Run> {
        self.runs.into_values().collect()
    }
}

/// Under what a claim with several conditions is measured.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Condition {
    /// Number of back-ends.
    pub(super) backends: Option<usize>,
    /// LARD's thresholds.
    pub(super) thresholds: Option<Variant>,
}

/// The runs on one workload.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    results: &'a LardResults,
    pub(super) instance: Instance,
    pub(super) condition: Condition,
}

/// The paper's abbreviations.
pub(super) const WRR: &str = "weighted_round_robin";
pub(super) const LB: &str = "uri_hash";
pub(super) const LB_GC: &str = "lb_gc";
pub(super) const LARD: &str = "lard";
pub(super) const LARD_R: &str = "lard_r";
pub(super) const GMS: &str = "wrr_gms";

impl<'a> View<'a> {
    pub(super) fn profile(&self) -> Option<&'a Profile> {
        self.results.profile(&self.instance)
    }

    /// The same view under this condition.
    pub(super) fn under(self, condition: Condition) -> Self {
        Self { condition, ..self }
    }

    /// The view of the workload of another family made by the same generator with the same seed.
    pub(super) fn sibling(&self, family: Family) -> View<'a> {
        View { instance: Instance { family, ..self.instance }, ..*self }
    }

    /// The views of the workloads of a kind that were made by the same generator with the same seed.
    pub(super) fn alike(&self, of: impl Fn(Family) -> bool) -> Vec<View<'a>> {
        let Instance { generator, seed, .. } = self.instance;
        let mut found = self.results.instances(of);
        found.retain(|i| i.generator == generator && i.seed == seed);
        found.into_iter().map(|instance| View { instance, ..*self }).collect()
    }

    /// The largest less the smallest mean delay of LARD's eight back-ends, in seconds: mean load over throughput, by
    /// Little's law.
    pub(super) fn delay_difference_s(&self, variant: Variant) -> Option<f64> {
        let run = self.run(LARD, 8, variant)?;
        let delays: Vec<f64> = run
            .per_backend
            .iter()
            .filter(|backend| backend.requests > 0)
            .map(|backend| backend.mean_load * run.simulated_s / backend.requests as f64)
            .collect();
        Some(max(delays.clone())? - min(delays)?)
    }

    pub(super) fn run(&self, strategy: &str, backends: usize, variant: Variant) -> Option<&'a Run> {
        let key = RunKey { instance: self.instance, variant, strategy: strategy.to_owned(), backends };
        self.results.runs.get(&key)
    }

    /// Cluster sizes for which the base setting was run.
    pub(super) fn sizes(&self, strategy: &str, variant: Variant) -> Vec<usize> {
        let of = |k: &&RunKey| k.instance == self.instance && k.variant == variant && k.strategy == strategy;
        self.results.runs.keys().filter(of).map(|k| k.backends).collect()
    }

    pub(super) fn rps(&self, strategy: &str, backends: usize) -> Option<f64> {
        self.rps_of(strategy, backends, Variant::Base)
    }

    pub(super) fn rps_of(&self, strategy: &str, backends: usize, variant: Variant) -> Option<f64> {
        self.run(strategy, backends, variant).map(|r| r.throughput_rps)
    }

    /// Disk reads per request, in per cent.
    pub(super) fn miss_percent(&self, strategy: &str, backends: usize) -> Option<f64> {
        self.run(strategy, backends, Variant::Base)?.miss_ratio.map(|m| 100.0 * m)
    }

    /// Idle ratio in per cent.
    pub(super) fn idle_percent(&self, strategy: &str, backends: usize) -> Option<f64> {
        self.run(strategy, backends, Variant::Base).map(|r| 100.0 * r.idle_ratio)
    }

    /// Mean delay in seconds.
    pub(super) fn delay_s(&self, strategy: &str, backends: usize) -> Option<f64> {
        self.run(strategy, backends, Variant::Base)?.response_time_s.map(|s| s.mean)
    }

    /// Throughput of `a` over that of `b`.
    pub(super) fn ratio(&self, a: &str, b: &str, backends: usize) -> Option<f64> {
        Some(self.rps(a, backends)? / self.rps(b, backends)?)
    }

    /// Throughput per back-end on `b` over that on `a` back-ends: above 1 where the speedup is superlinear.
    pub(super) fn efficiency(&self, strategy: &str, a: usize, b: usize) -> Option<f64> {
        Some(self.rps(strategy, b)? / self.rps(strategy, a)? * a as f64 / b as f64)
    }

    /// Values of `f` over the cluster sizes in `range` on which the strategy was run.
    pub(super) fn sized(
        &self,
        strategy: &str,
        range: RangeInclusive<usize>,
        f: impl Fn(usize) -> Option<f64>,
    ) -> Vec<f64> {
        self.sizes(strategy, Variant::Base).into_iter().filter(|n| range.contains(n)).filter_map(f).collect()
    }

    /// Values of `f` over the cluster sizes from `least` on.
    pub(super) fn over(&self, least: usize, f: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
        self.sized(WRR, least..=usize::MAX, f)
    }
}

/// The smallest value; `None` without any.
pub(super) fn min(values: Vec<f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

/// The largest value; `None` without any.
pub(super) fn max(values: Vec<f64>) -> Option<f64> {
    values.into_iter().max_by(f64::total_cmp)
}

/// The value farthest from `centre`, which judges a claim about all cluster sizes.
pub(super) fn farthest(centre: f64, values: Vec<f64>) -> Option<f64> {
    values.into_iter().max_by(|a, b| (a - centre).abs().total_cmp(&(b - centre).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    const INSTANCE: Instance = Instance { family: Family::Rice, generator: "windowed", seed: 1 };

    /// Results with one run of LARD on eight back-ends.
    fn one_run(run: Run) -> LardResults {
        let run = Run { policy: LARD.to_owned(), backends: 8, ..run };
        let mut results = LardResults::default();
        results.add(&INSTANCE, Profile::default(), vec![(Variant::Base, run)]);
        results
    }

    #[test]
    fn delays_of_back_ends_follow_from_their_load_and_throughput() {
        // In 20 s: load 3 and 5 requests/s are 0.6 s, 4 and 2 are 2 s; one that served nothing has no delay.
        let per_backend =
            [(3.0, 100), (4.0, 40), (9.0, 0)].map(|(load, n)| testing::backend(load, n)).to_vec();
        let results = one_run(Run { simulated_s: 20.0, per_backend, ..testing::run() });
        let difference_s = results.on(INSTANCE).delay_difference_s(Variant::Base).unwrap();
        assert!((difference_s - 1.4).abs() < 1e-9, "{difference_s}");
        assert_eq!(results.on(INSTANCE).delay_difference_s(Variant::Thresholds(25, 65)), None);
        assert_eq!(one_run(testing::run()).on(INSTANCE).delay_difference_s(Variant::Base), None);
    }

    #[test]
    fn the_value_that_departs_most() {
        assert_eq!(farthest(1.0, vec![1.1, 0.8, 1.15]), Some(0.8));
        assert_eq!(farthest(1.0, vec![]), None);
    }
}
