//! One case under `perf`, to see where the time of the front-end's CPU goes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use plimsoll_lab::{CpuMeter, CpuPlan};

use crate::cost::{Beds, CASES, run_one};

const SECONDS: u64 = 3;
const FREQUENCY: &str = "5000";

/// Runs the case of this number and prints what `perf` has seen on the front-end's CPU.
pub fn run(beds: &Beds, case: &str, size: &str, plan: &CpuPlan) -> Result<()> {
    let case = case.parse().ok().and_then(|number: usize| CASES.get(number)).context("no such case")?;
    let size_bytes = size.parse().context("a size is 100, 8192, 102400 or 1048576")?;
    // Without the meter, which would be most of the profile.
    let meter = CpuMeter::start(plan.front_end)?;
    println!("{}, {size} B: {:#?}", case.name, run_one(beds, case, size_bytes, SECONDS, &meter)?);
    drop(meter);
    let (mut recording, file) = record(plan.front_end, SECONDS, &["-g"])?;
    let other = CpuMeter::start(plan.others[0])?;
    let sample = run_one(beds, case, size_bytes, SECONDS, &other)?;
    recording.wait()?;
    println!("{:.3} CPUs for other programs meanwhile", sample.other_cpus);
    println!("perf report -i {}", file.display());
    Ok(())
}

/// Has `perf` record samples of this CPU for so many seconds. Returns its process and the file that it writes.
pub fn record(cpu: usize, seconds: u64, more: &[&str]) -> Result<(Child, PathBuf)> {
    let file = std::env::temp_dir().join(format!("plimsoll-handoff-{}.perf", std::process::id()));
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-F", FREQUENCY, "-C", &cpu.to_string()]).args(more).arg("-o").arg(&file);
    record.args(["--", "sleep", &seconds.to_string()]).stderr(Stdio::null());
    Ok((record.spawn().context("run perf")?, file))
}
