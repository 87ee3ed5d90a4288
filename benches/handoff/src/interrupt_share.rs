//! How much of the CPU time of the node that distributes is interrupts from one CPU to another. On a virtual machine each costs
//! an exit to the hypervisor at the sender and one at the receiver; the lab's links cause one for nearly every packet, where a
//! network card would raise one for many.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use plimsoll_lab::CpuMeter;

use crate::load::{Load, Sample};
use crate::profile::record;

/// Where samples of interrupts between CPUs are booked: what sends one, and where the kernel lets interrupts in again after it
/// came, because the clock that takes samples is an interrupt, too.
const OF_INTERRUPTS: [&str; 2] = ["native_write_msr", "handle_softirqs"];
/// The thread of the meter, which has all the time that is left.
const METER: &str = "cpu-meter";

/// Runs the load under `perf record` on this CPU. Returns what it came to, and which share of the CPU time was interrupts between
/// CPUs.
pub fn run(load: &Load<'_>, cpu: usize, meter: &CpuMeter) -> Result<(Sample, f64)> {
    let (mut recording, file) = record(cpu, load.seconds, &[])?;
    let sample = load.run(meter);
    recording.wait()?;
    let mut report = Command::new("perf");
    report.args(["report", "--stdio", "-t", ";", "-F", "overhead,comm,sym", "-i"]).arg(&file);
    let report = report.stderr(Stdio::null()).output().context("run perf report")?;
    std::fs::remove_file(&file)?;
    Ok((sample?, share(&String::from_utf8_lossy(&report.stdout))?))
}

/// The share in lines "12.34%;comm;[k] symbol", without what the meter itself does.
fn share(report: &str) -> Result<f64> {
    let (mut interrupts, mut all) = (0.0, 0.0);
    for line in report.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(';').map(str::trim).collect();
        let [percent, comm, symbol] = fields[..] else { continue };
        let Ok(percent) = percent.trim_end_matches('%').parse::<f64>() else { continue };
        if comm == METER && !symbol.starts_with("[k]") {
            continue;
        }
        all += percent;
        if OF_INTERRUPTS.iter().any(|of| symbol.ends_with(of)) {
            interrupts += percent;
        }
    }
    ensure!(all > 0.0, "perf saw nothing: {report}");
    Ok(interrupts / all)
}
