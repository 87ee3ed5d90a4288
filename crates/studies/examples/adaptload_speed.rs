//! Speed of the `AdaptLoad` study: `adaptload_speed [POLICY] [REQUESTS] [SPEED] [BACKENDS]` simulates the World Cup day with
//! REQUESTS requests, on back-ends with SPEED times the paper's speed and 15 % of the working set in LRU caches, and prints
//! one JSON line with requests per second of CPU time and the peak memory of the run.

use plimsoll_sim::Arrivals;
use plimsoll_studies::Workload;
use plimsoll_studies::execute;
use plimsoll_studies::scenario::{Admission, Scenario, Strategy, find_model};

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

#[path = "../../../benches/common/memory.rs"]
mod memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let policy = args.next().unwrap_or_else(|| "adaptload".to_owned());
    let requests = args.next().unwrap_or_else(|| "38834515".to_owned());
    let speed = args.next().unwrap_or_else(|| "1".to_owned());
    let backends: usize = args.next().as_deref().unwrap_or("4").parse()?;

    let workload = Workload::synthesize("worldcup", &[("generator", "irm"), ("requests", &requests)], 1)?;
    let mut scenario = Scenario {
        model: find_model("adaptload")?,
        arrivals: Arrivals::Trace { speed: 1.0 },
        admission: Admission::Unlimited,
        cache: plimsoll_cache::find("lru")?,
        cache_bytes: workload.working_set_bytes() * 15 / 100,
        ..Scenario::lard(Strategy::find(&policy)?, backends, 1)
    };
    scenario.set_model([("speed", speed.as_str().into())])?;
    let before_s = cpu_time::cpu_s()?;
    let run = execute(&scenario, &workload, &mut ())?;
    let cpu_s = cpu_time::cpu_s()? - before_s;
    println!(
        r#"{{"policy":"{}","backends":{backends},"requests":{},"miss_ratio":{:.5},"cpu_busy":{:.3},"disk_busy":{:.3},"mean_load":{:.2},"mean_slowdown":{:.2},"cpu_s":{cpu_s:.3},"requests_per_cpu_s":{:.0},"peak_mib":{:.1}}}"#,
        run.policy,
        run.requests,
        run.miss_ratio.unwrap_or(f64::NAN),
        run.utilization.cpu,
        run.utilization.disk.unwrap_or(f64::NAN),
        run.per_backend.iter().map(|b| b.mean_load).sum::<f64>() / backends as f64,
        run.slowdown.map_or(f64::NAN, |s| s.mean),
        run.requests as f64 / cpu_s,
        memory::peak_mib().unwrap_or(f64::NAN),
    );
    Ok(())
}
