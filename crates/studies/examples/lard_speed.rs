//! Speed of the LARD study: `lard_speed [POLICY] [BACKENDS] [MULTIPLE]` simulates the Rice workload, MULTIPLE times as
//! long as the paper's, and prints one JSON line with requests per second of CPU time and the peak memory of the run.

use plimsoll_studies::Workload;
use plimsoll_studies::execute;
use plimsoll_studies::scenario::{Scenario, Strategy};

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

#[path = "../../../benches/common/memory.rs"]
mod memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let policy = args.next().unwrap_or_else(|| "lard_r".to_owned());
    let backends: usize = args.next().as_deref().unwrap_or("8").parse()?;
    let multiple: u64 = args.next().as_deref().unwrap_or("1").parse()?;

    let requests = (2_300_000 * multiple).to_string();
    let workload = Workload::synthesize("rice", &[("requests", &requests)], 1)?;
    let scenario = Scenario::lard(Strategy::find(&policy)?, backends, 1);
    let before_s = cpu_time::cpu_s()?;
    let run = execute(&scenario, &workload, &mut ())?;
    let cpu_s = cpu_time::cpu_s()? - before_s;
    println!(
        r#"{{"policy":"{}","backends":{backends},"requests":{},"throughput_rps":{:.1},"miss_ratio":{:.4},"cpu_s":{cpu_s:.3},"requests_per_cpu_s":{:.0},"peak_mib":{:.1}}}"#,
        run.policy,
        run.requests,
        run.throughput_rps,
        run.miss_ratio.unwrap_or(f64::NAN),
        run.requests as f64 / cpu_s,
        memory::peak_mib().unwrap_or(f64::NAN),
    );
    Ok(())
}
