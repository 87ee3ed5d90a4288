//! Where the advice would be wrong: the same cluster under other conditions.

use rayon::prelude::*;
use serde::Serialize;

use super::contestants::CONTESTANTS;
use super::plan::{AdviseBench, AdviseLoad, Incident, RunFigures, RunPlan};
use crate::scenario::ScenarioError;

/// What the policies are compared by under some condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StressMeasure {
    /// Requests per second at saturation.
    Throughput,
    /// How many times as long answers take as on an idle back-end with the document in memory, in the mean.
    Slowdown,
}

/// All policies under one condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StressOutcome {
    /// The condition, in words.
    pub condition: &'static str,
    /// What is compared.
    pub measure: StressMeasure,
    /// Its values, by policy in their order.
    pub values: Vec<f64>,
}

impl StressOutcome {
    /// By policy: how many times as good the policy of this place is; above 1 where it is better.
    #[must_use]
    pub fn times_as_good(&self, own: usize) -> Vec<f64> {
        let Some(&own) = self.values.get(own) else { return Vec::new() };
        let times = |&other: &f64| match self.measure {
            StressMeasure::Throughput => own / other,
            StressMeasure::Slowdown => other / own,
        };
        self.values.iter().map(|value| Some(times(value)).filter(|t| t.is_finite()).unwrap_or(1.0)).collect()
    }
}

/// A condition.
struct Condition {
    title: &'static str,
    load: fn(f64) -> AdviseLoad,
    incident: Incident,
    /// Memory over what is advised.
    memory: f64,
    /// The log is played twice, and its second time counts.
    warm: bool,
}

const fn of(title: &'static str, load: fn(f64) -> AdviseLoad, incident: Incident, memory: f64) -> Condition {
    Condition { title, load, incident, memory, warm: false }
}

/// Memories as warm as they get: in a log of hours many requests are the first for their document, and under a policy that takes turns the first on
/// each back-end; on a site that runs for weeks few are.
pub(super) const WARM: &str = "warm memories: the log a second time, saturated";

/// What policies look like under them depends on the load, which is given as a share of what the advised policy can serve.
const CONDITIONS: &[Condition] = &[
    Condition { warm: true, ..of(WARM, |_| AdviseLoad::Saturated, Incident::None, 1.0) },
    of("half the memory, saturated", |_| AdviseLoad::Saturated, Incident::None, 0.5),
    of("only 4 requests under way for each back-end", |_| AdviseLoad::UnderWay(4), Incident::None, 1.0),
    of("100 requests under way for each back-end", |_| AdviseLoad::UnderWay(100), Incident::None, 1.0),
    of("load at 50 %", |rps| AdviseLoad::Poisson(0.5 * rps), Incident::None, 1.0),
    of("load at 90 %", |rps| AdviseLoad::Poisson(0.9 * rps), Incident::None, 1.0),
    of("bursts, load at 70 % in the mean", |rps| AdviseLoad::Bursts(0.7 * rps), Incident::None, 1.0),
    of(
        "one back-end becomes four times as slow, load at 60 %",
        |rps| AdviseLoad::Poisson(0.6 * rps),
        Incident::OneSlows,
        1.0,
    ),
    of(
        "one back-end fails and returns empty, load at 60 %",
        |rps| AdviseLoad::Poisson(0.6 * rps),
        Incident::OneReturns,
        1.0,
    ),
    of(
        "one document suddenly gets 30 % of the requests, load at 60 %",
        |rps| AdviseLoad::Poisson(0.6 * rps),
        Incident::FlashCrowd,
        1.0,
    ),
];

/// Runs of all conditions.
pub(super) const STRESS_RUNS: u64 = ((CONDITIONS.len() + 1) * CONTESTANTS.len()) as u64;

/// Of a longer log, conditions are tried on so many requests of it: shares of the best need no more, and each condition is a run for each policy.
pub(super) const BRIEF_REQUESTS: u64 = 300_000;

/// All policies under all conditions, on the log, or on the log twice where memories are to be warm. Loads are shares of what the advised `policy`
/// can serve.
pub(super) fn stress(
    [bench, warm]: [&AdviseBench<'_>; 2],
    backends: usize,
    memory_bytes: u64,
    policy: &'static str,
    seed: u64,
) -> Result<Vec<StressOutcome>, ScenarioError> {
    let saturated = RunPlan::new(policy, backends, memory_bytes, AdviseLoad::Saturated, seed);
    let capacity_rps = bench.run(&saturated)?.throughput_rps;
    let plan = |condition: &Condition, policy| RunPlan {
        incident: condition.incident,
        ..RunPlan::new(
            policy,
            backends,
            (condition.memory * memory_bytes as f64) as u64,
            (condition.load)(capacity_rps),
            seed,
        )
    };
    let runs: Vec<(bool, RunPlan)> = CONDITIONS
        .iter()
        .flat_map(|condition| CONTESTANTS.iter().map(move |of| (condition, of.policy)))
        .map(|(condition, policy)| (condition.warm, plan(condition, policy)))
        .collect();
    let figures: Result<Vec<RunFigures>, ScenarioError> = runs
        .par_iter()
        .with_max_len(1)
        .map(|(is_warm, plan)| if *is_warm { warm } else { bench }.run(plan))
        .collect();
    let figures = figures?;
    let of_condition = figures.chunks(CONTESTANTS.len());
    Ok(CONDITIONS.iter().zip(of_condition).map(|(condition, figures)| outcome(condition, figures)).collect())
}

fn outcome(condition: &Condition, figures: &[RunFigures]) -> StressOutcome {
    let measure = match (condition.load)(1.0) {
        AdviseLoad::Saturated | AdviseLoad::UnderWay(_) => StressMeasure::Throughput,
        _ => StressMeasure::Slowdown,
    };
    let value = |figures: &RunFigures| match measure {
        StressMeasure::Throughput => figures.throughput_rps,
        StressMeasure::Slowdown => figures.slowdown_mean,
    };
    StressOutcome { condition: condition.title, measure, values: figures.iter().map(value).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_throughput_and_less_slowdown_are_better() {
        let of = |measure| StressOutcome { condition: "", measure, values: vec![4.0, 2.0, 8.0] };
        assert_eq!(of(StressMeasure::Throughput).times_as_good(0), [1.0, 2.0, 0.5]);
        assert_eq!(of(StressMeasure::Slowdown).times_as_good(0), [1.0, 0.5, 2.0]);
        assert!(of(StressMeasure::Slowdown).times_as_good(3).is_empty());
    }
}
