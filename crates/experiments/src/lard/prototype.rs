//! The measurements for figure 17 of the LARD paper: WRR and LARD/R on clusters of several sizes in this process.

use plimsoll_studies::lard::{Effort, Prototype, PrototypeMechanism, PrototypePoint};
use plimsoll_studies::scenario::Strategy;
use plimsoll_testbed::trial::{self, Trial, TrialConfig};
use plimsoll_testbed::workload::scaled_rice;

use super::bench::Bench;
use crate::{ExperimentError, Tell, block_on, loopback};

/// The paper's cluster has six back-ends at most.
const FULL_SIZES: [usize; 6] = [1, 2, 3, 4, 5, 6];
/// The only size for which the paper gives a number.
const QUICK_SIZES: [usize; 1] = [6];
/// Twice the paper's speeds: half the time for the same requests.
pub(super) const SPEED: f64 = 2.0;
pub(super) const SEED: u64 = 1;

/// Length of a point in seconds: warm-up and measurement.
pub(super) fn lengths_s(effort: Effort) -> (f64, f64) {
    match effort {
        Effort::Full => (5.0, 15.0),
        Effort::Quick => (4.0, 8.0),
    }
}

/// The points of the figure, by strategy.
pub(super) fn plan(effort: Effort) -> Result<Vec<(Strategy, TrialConfig)>, ExperimentError> {
    let sizes: &[usize] = if effort == Effort::Full { &FULL_SIZES } else { &QUICK_SIZES };
    let (warmup_s, measured_s) = lengths_s(effort);
    let mut plan = Vec::new();
    for &backends in sizes {
        for name in ["weighted_round_robin", "lard_r"] {
            let strategy = Strategy::find(name)?;
            let config = loopback::config(strategy.name, backends, SEED, SPEED);
            plan.push((strategy, TrialConfig { warmup_s, measured_s, ..config }));
        }
    }
    Ok(plan)
}

/// The prototype's measurements; `told` describes the setting of the mechanism.
pub(super) fn prototype(
    effort: Effort,
    mechanism: PrototypeMechanism,
    told: &str,
    points: Vec<PrototypePoint>,
) -> Prototype {
    let (warmup_s, measured_s) = lengths_s(effort);
    Prototype {
        mechanism,
        setting: format!(
            "{}. Contents, requests and caches are those of the Rice workload (generator `irm`) and the paper's 32 MB at \
             1/{} of their size; as many requests are under way as the admission limit S says. {told}Each point: {warmup_s} \
             s of warm-up, {measured_s} s measured",
            loopback::hardware(SPEED),
            loopback::SCALE
        ),
        workload: scaled_rice(loopback::SCALE)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        seed: SEED,
        cache_bytes: loopback::CACHE_BYTES,
        speed: SPEED,
        points,
    }
}

/// Reports the result of a point.
pub(super) fn report(strategy: Strategy, config: &TrialConfig, trial: &Trial, by: &str, tell: Tell<'_>) {
    let name = strategy.name;
    tell(&format!("figure 17: {name} on {}{by}: {}", config.backends, trial.summary));
    if trial.machine_was_bottleneck() {
        tell(&format!(
            "plimsoll: warning: the CPUs of this machine were busy all the time and may have limited {name} on {} \
             back-ends{by}",
            config.backends
        ));
    }
}

/// Measures every point, one after another.
pub(super) fn measure(bench: Bench<'_>) -> Result<Prototype, ExperimentError> {
    let Bench { effort, tell, .. } = bench;
    let plan = plan(effort)?;
    let (warmup_s, measured_s) = lengths_s(effort);
    loopback::allow_sockets(plan.iter().map(|(_, config)| config.connections).max().unwrap_or(0))?;
    let workload = loopback::workload(SEED)?;
    let seconds = plan.len() as f64 * (warmup_s + measured_s + 1.5);
    tell(&format!("figure 17: real traffic over loopback for about {seconds:.0} s"));
    let points = block_on(async {
        let mut points = Vec::new();
        for (strategy, config) in &plan {
            let trial = trial::run(config, &workload, |_| ()).await?;
            report(*strategy, config, &trial, "", tell);
            points.push(PrototypePoint {
                run: loopback::to_run(*strategy, config, &trial),
                warmup_requests: trial.warmup_requests,
                machine_busy: trial.machine_busy,
                front_end_busy: None,
            });
        }
        Ok::<_, ExperimentError>(points)
    })?;
    Ok(prototype(effort, PrototypeMechanism::Proxy, "", points))
}
