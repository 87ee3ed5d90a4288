//! The measurements for figure 17 of the LARD paper: WRR and LARD/R on clusters of several sizes in this process.

use plimsoll_studies::lard::{Effort, Point, Prototype};
use plimsoll_studies::scenario::{Strategy, paper_name};
use plimsoll_testbed::trial::{self, TrialConfig};
use plimsoll_testbed::workload::scaled_rice;

use crate::error::CliError;
use crate::testbed;

/// The paper's cluster has six back-ends at most.
const FULL_SIZES: [usize; 6] = [1, 2, 3, 4, 5, 6];
/// The only size for which the paper gives a number.
const QUICK_SIZES: [usize; 1] = [6];
/// Twice the paper's speeds: half the time for the same requests.
const SPEED: f64 = 2.0;
const SEED: u64 = 1;

/// Measures every point, one after another.
pub(super) fn measure(effort: Effort) -> Result<Prototype, CliError> {
    let (sizes, warmup_s, measured_s): (&[usize], f64, f64) = match effort {
        Effort::Full => (&FULL_SIZES, 5.0, 15.0),
        Effort::Quick => (&QUICK_SIZES, 4.0, 8.0),
    };
    let mut plan = Vec::new();
    for &backends in sizes {
        for name in ["weighted_round_robin", "lard_r"] {
            let strategy = Strategy::find(name)?;
            let config = testbed::config(strategy, backends, SEED, SPEED);
            plan.push((strategy, TrialConfig { warmup_s, measured_s, ..config }));
        }
    }
    testbed::allow_sockets(plan.iter().map(|(_, config)| config.connections).max().unwrap_or(0))?;
    let workload = testbed::workload(SEED)?;
    let seconds = plan.len() as f64 * (warmup_s + measured_s + 1.5);
    eprintln!("figure 17: real traffic over loopback for about {seconds:.0} s");
    let points = testbed::block_on(async {
        let mut points = Vec::new();
        for (strategy, config) in &plan {
            let trial = trial::run(config, &workload, |_| ()).await?;
            let name = paper_name(strategy.name);
            eprintln!("figure 17: {name} on {}: {}", config.backends, trial.summary);
            if trial.machine_was_bottleneck() {
                eprintln!(
                    "plimsoll: warning: the CPUs of this machine were busy all the time and may have limited {name} on {} \
                     back-ends",
                    config.backends
                );
            }
            points.push(Point {
                run: testbed::to_run(*strategy, config, &trial),
                warmup_requests: trial.warmup_requests,
                machine_busy: trial.machine_busy,
            });
        }
        Ok(points)
    })?;
    Ok(Prototype {
        setting: format!(
            "{}. Contents, requests and caches are those of the Rice workload (generator `irm`) and the paper's 32 MB at \
             1/{} of their size; as many requests are under way as the admission limit S says. Each point: {warmup_s} s of \
             warm-up, {measured_s} s measured",
            testbed::hardware(SPEED),
            testbed::SCALE
        ),
        workload: scaled_rice(testbed::SCALE)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        seed: SEED,
        cache_bytes: testbed::CACHE_BYTES,
        speed: SPEED,
        points,
    })
}
