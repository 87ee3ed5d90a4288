//! Who uses the CPUs during a measurement: the front-end, the other nodes, and unrelated programs.

use std::time::Duration;

use plimsoll_lab::{CpuMeter, CpuPlan, CpuUse, LabError, cpu_time_of_others};
use plimsoll_testbed::machine::CpuTime;

use crate::Tell;

/// CPUs in use by other programs beyond which results are doubtful.
const OTHERS_CPUS: f64 = 0.05;

/// The assignment of CPUs, as a sentence to append.
pub(super) fn cpus_in_words(cpus: Option<&CpuPlan>) -> String {
    cpus.map_or_else(
        || "front-end, client and back-ends share the one CPU there is".to_owned(),
        |plan| {
            let others = match plan.others.len() {
                1 => "CPU".to_owned(),
                n => format!("{n} CPUs"),
            };
            format!(
                "the front-end has a CPU of this machine to itself, on which the kernel's work for its packets is done, \
                 too; client and back-ends share the other {others}"
            )
        },
    )
}

/// Watches the use of CPUs.
pub(super) struct CpuWatch<'a> {
    plan: Option<&'a CpuPlan>,
    meter: Option<CpuMeter>,
    tell: Tell<'a>,
}

/// A reading of the CPU counters.
pub(super) struct CpuReading {
    front_end: Option<CpuUse>,
    rest: Option<CpuTime>,
    strangers: Duration,
}

/// CPU use between two readings.
pub(super) struct Use {
    /// Use of the front-end's own CPU, if it has one.
    pub(super) front_end: Option<CpuUse>,
    /// Share of the CPUs of client and back-ends.
    pub(super) others_busy: Option<f64>,
    /// Number of CPUs used by unrelated programs.
    pub(super) strangers_cpus: f64,
}

impl<'a> CpuWatch<'a> {
    pub(super) fn start(plan: Option<&'a CpuPlan>, tell: Tell<'a>) -> Result<Self, LabError> {
        let meter = plan.map(|plan| CpuMeter::start(plan.front_end)).transpose()?;
        Ok(Self { plan, meter, tell })
    }

    pub(super) fn read(&self) -> Result<CpuReading, LabError> {
        Ok(CpuReading {
            front_end: self.meter.as_ref().map(CpuMeter::read),
            rest: self.plan.map_or_else(CpuTime::now, |plan| CpuTime::of(&plan.others)),
            strangers: cpu_time_of_others()?,
        })
    }

    /// CPU use between two readings. Warns when other programs disturbed `what`.
    pub(super) fn between(&self, start: &CpuReading, end: &CpuReading, what: &str, seconds: f64) -> Use {
        let strangers_cpus = end.strangers.saturating_sub(start.strangers).as_secs_f64() / seconds;
        if strangers_cpus > OTHERS_CPUS {
            (self.tell)(&format!(
                "plimsoll: warning: {what}: other programs used {strangers_cpus:.2} CPUs meanwhile, which makes the result \
                 worse"
            ));
        }
        Use {
            front_end: end.front_end.zip(start.front_end).map(|(end, start)| end.since(start)),
            others_busy: end.rest.zip(start.rest).and_then(|(end, start)| end.busy_since(start)),
            strangers_cpus,
        }
    }
}
