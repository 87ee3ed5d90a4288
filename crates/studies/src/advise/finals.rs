//! All policies on the cluster that is advised, with several seeds, block by block.

use plimsoll_sim::SeriesPoint;
use serde::Serialize;

use super::contestants::CONTESTANTS;
use super::plan::{AdviseBench, AdviseLoad, RunFigures, RunPlan};
use crate::scenario::ScenarioError;

/// Seeds of each run.
const SEEDS: u64 = 3;

/// What a policy did on the cluster that is advised.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FinalFigures {
    /// Name of the policy.
    pub policy: &'static str,
    /// Requests per second at saturation.
    pub capacity_rps: f64,
    /// Disk reads per request at saturation.
    pub miss_ratio: f64,
    /// Share of the time for which disks were busy at saturation.
    pub disk: f64,
    /// Share of the time for which CPUs were busy at saturation.
    pub cpu: f64,
    /// Mean response time at the peak, in seconds.
    pub peak_mean_s: f64,
    /// Its 99th percentile, in seconds.
    pub peak_p99_s: f64,
    /// The 99th percentile where requests come at the log's own times, in seconds; `None` where it has none.
    pub own_p99_s: Option<f64>,
    /// Requests that were not answered at the peak.
    pub unanswered: u64,
    /// Mean bytes of an answer among those that were simulated.
    #[serde(skip)]
    pub answer_mean_bytes: f64,
    /// Seconds that each block of requests took at saturation.
    #[serde(skip)]
    pub block_s: Vec<f64>,
    /// Seconds that networks took for the same block.
    #[serde(skip)]
    pub block_network_s: Vec<f64>,
    /// Mean response time of each block of requests at the peak, in seconds.
    #[serde(skip)]
    pub block_response_s: Vec<f64>,
}

impl FinalFigures {
    /// Whether no more arrives at this peak than the policy can serve, in either half of the run. Otherwise queues grow as long as that lasts.
    #[must_use]
    pub fn bears(&self, peak_rps: f64) -> bool {
        let blocks = self.block_s.len();
        let mean_s = |from: usize, to: usize| {
            // Of the first to the last of them; nothing where networks were not looked at.
            let sum = |of: &[f64]| of.iter().take(to).skip(from).sum::<f64>();
            sum(&self.block_s).max(sum(&self.block_network_s)) / (to - from).max(1) as f64
        };
        let (whole_s, slower_s) = (mean_s(0, blocks), mean_s(0, blocks / 2).max(mean_s(blocks / 2, blocks)));
        let least_rps =
            if slower_s > 0.0 { self.capacity_rps * whole_s / slower_s } else { self.capacity_rps };
        peak_rps <= least_rps.min(self.capacity_rps)
    }
}

/// The cluster, and what it is to carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FinalSetting {
    pub(super) backends: usize,
    pub(super) memory_bytes: u64,
    /// Requests per second at the peak.
    pub(super) peak_rps: f64,
    /// By how much the log's own times are sped up for that; `None` where it has none.
    pub(super) speed: Option<f64>,
    pub(super) seed: u64,
}

/// Runs all policies.
pub(super) fn finals(bench: &AdviseBench<'_>, of: FinalSetting) -> Result<Vec<FinalFigures>, ScenarioError> {
    let plan = |policy, load, seed| RunPlan::new(policy, of.backends, of.memory_bytes, load, seed);
    let mut plans = Vec::new();
    for contestant in CONTESTANTS {
        for seed in (0..SEEDS).map(|number| of.seed.wrapping_add(number)) {
            plans.push(plan(contestant.policy, AdviseLoad::Saturated, seed));
            plans.push(plan(contestant.policy, AdviseLoad::Poisson(of.peak_rps), seed));
        }
        let own = of.speed.map(|speed| plan(contestant.policy, AdviseLoad::OwnTimes(speed), of.seed));
        plans.extend(own);
    }
    let figures = bench.run_all(&plans)?;
    let of_policy = |policy: &'static str| {
        let with = |wanted: fn(&AdviseLoad) -> bool| {
            let own =
                plans.iter().zip(&figures).filter(|(plan, _)| plan.policy == policy && wanted(&plan.load));
            own.map(|(_, figures)| figures).collect::<Vec<_>>()
        };
        let saturated = with(|load| *load == AdviseLoad::Saturated);
        let peak = with(|load| matches!(load, AdviseLoad::Poisson(_)));
        let own = with(|load| matches!(load, AdviseLoad::OwnTimes(_)));
        figures_of(policy, &saturated, &peak, own.first().copied())
    };
    Ok(CONTESTANTS.iter().map(|contestant| of_policy(contestant.policy)).collect())
}

fn figures_of(
    policy: &'static str,
    saturated: &[&RunFigures],
    peak: &[&RunFigures],
    own: Option<&RunFigures>,
) -> FinalFigures {
    let mean = |of: &[&RunFigures], value: fn(&RunFigures) -> f64| {
        of.iter().map(|figures| value(figures)).sum::<f64>() / of.len().max(1) as f64
    };
    FinalFigures {
        policy,
        capacity_rps: mean(saturated, |f| f.throughput_rps),
        miss_ratio: mean(saturated, |f| f.miss_ratio),
        disk: mean(saturated, |f| f.disk),
        cpu: mean(saturated, |f| f.cpu),
        peak_mean_s: mean(peak, |f| f.mean_s),
        peak_p99_s: mean(peak, |f| f.p99_s),
        own_p99_s: own.map(|figures| figures.p99_s),
        unanswered: peak.iter().map(|figures| figures.unanswered).sum(),
        answer_mean_bytes: mean(saturated, |f| f.answer_mean_bytes),
        block_s: sums(saturated, |run| spans_s(&run.points)),
        block_network_s: sums(saturated, |run| run.network_s.get(1..).unwrap_or_default().to_vec()),
        block_response_s: sums(peak, |run| run.points.iter().map(|point| point.mean_response_s).collect()),
    }
}

/// How long each block took, but for the first, whose beginning is not known.
fn spans_s(points: &[SeriesPoint]) -> Vec<f64> {
    points.windows(2).map(|two| two[1].end.since(two[0].end).as_secs_f64()).collect()
}

/// Block by block, the sums over runs.
fn sums(runs: &[&RunFigures], values: impl Fn(&RunFigures) -> Vec<f64>) -> Vec<f64> {
    let of_runs: Vec<Vec<f64>> = runs.iter().map(|run| values(run)).collect();
    let blocks = of_runs.iter().map(Vec::len).min().unwrap_or(0);
    (0..blocks).map(|block| of_runs.iter().map(|values| values[block]).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::figures;

    #[test]
    fn a_peak_has_to_be_borne_in_either_half() {
        let mut of = figures("round_robin", 1.0, 0.1);
        assert!(of.bears(100.0) && !of.bears(101.0));
        // 80 requests/s at first, while much is read, and 133 later.
        of.block_s = [[1.25; 15], [0.75; 15]].concat();
        assert!(of.bears(80.0) && !of.bears(81.0));
    }
}
