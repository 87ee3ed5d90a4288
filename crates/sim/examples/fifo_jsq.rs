//! 16 FIFO back-ends under join-shortest-queue at 90 % load: `fifo_jsq REQUESTS SEED` prints one JSON line with the
//! mean response time and the requests simulated per second of CPU time.

use std::convert::Infallible;

use plimsoll_policy::{AdmissionControl, BuildContext, Cluster, Core, Nanos, TargetId, build};
use plimsoll_sim::models::fifo::{FifoModel, FifoParams};
use plimsoll_sim::{Arrivals, RunConfig, SimRequest, Targets, run};

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

const BACKENDS: usize = 16;
const LOAD: f64 = 0.9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let requests: usize = args.next().as_deref().unwrap_or("10000000").parse()?;
    let seed: u64 = args.next().as_deref().unwrap_or("1").parse()?;

    let request = SimRequest::default();
    let targets = Targets::new(vec![TargetId(0)], vec![0], &[1]);
    let config = RunConfig {
        seed,
        arrivals: Arrivals::Poisson { rate_rps: LOAD * BACKENDS as f64 },
        warmup: 0,
        settles: false,
        idle_below: 1.0,
        poll_time: Nanos::ZERO,
        faults: &[],
        hot_spots: &[],
        targets: &targets,
    };
    let policy = build("least_connections", &BuildContext { seed, ..BuildContext::default() }, &[])?;
    let core = Core::new(policy, Cluster::new(BACKENDS), AdmissionControl::UNLIMITED);
    let model = FifoModel::new(
        FifoParams { service_s: Nanos::from_secs(1), ..FifoParams::default() },
        BACKENDS,
        seed,
    );

    let before_s = cpu_time::cpu_s()?;
    let source = (0..requests).map(|_| Ok::<_, Infallible>(request));
    let Ok(outcome) = run(&config, core, model, source, &mut ()) else {
        return Err("stopped".into());
    };
    let cpu_s = cpu_time::cpu_s()? - before_s;
    println!(
        r#"{{"tool":"plimsoll","requests":{requests},"mean_response_s":{:.6},"cpu_s":{cpu_s:.4},"requests_per_cpu_s":{:.0}}}"#,
        outcome.response_ns.mean().unwrap_or(f64::NAN) / 1e9,
        requests as f64 / cpu_s
    );
    Ok(())
}
