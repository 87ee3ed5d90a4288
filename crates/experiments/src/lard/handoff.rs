//! Measurements with connection handoff, on a lab.

use std::time::Duration;

use plimsoll_lab::{
    CpuMeter, CpuPlan, CpuUse, Lab, LabConfig, LabError, Node, check_privileges, cpu_time_of_others,
};
use plimsoll_studies::lard::{HandoffMeasures, Prototype};
use plimsoll_testbed::machine::CpuTime;

use super::{Bench, handoff_figure, handoff_measures};
use crate::lab_cluster::{LabCluster, LabClusterConfig};
use crate::{ExperimentError, Tell, block_on};

/// CPUs in use by other programs beyond which results are doubtful.
const OTHERS_CPUS: f64 = 0.05;

/// The measurements.
#[derive(Default)]
pub(super) struct ByHandoff {
    pub(super) figure: Option<Prototype>,
    pub(super) measures: Option<HandoffMeasures>,
    /// Why some of the wanted measurements are missing, on one line.
    pub(super) left_out: Option<String>,
}

/// Why there are no measurements.
pub(super) enum Stop {
    /// This machine does not support it, or was too busy.
    NotHere(String),
    /// It failed after it had begun.
    Failed(ExperimentError),
}

impl From<ExperimentError> for Stop {
    fn from(error: ExperimentError) -> Self {
        Self::Failed(error)
    }
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Self {
        Self::Failed(error.into())
    }
}

/// Makes the wanted measurements, as far as this machine allows.
pub(super) fn measure(bench: Bench<'_>, figure: bool, measures: bool) -> Result<ByHandoff, ExperimentError> {
    let mut measured = ByHandoff::default();
    // On its own thread, which is bound to some of the CPUs with everything that it starts.
    let result = std::thread::scope(|scope| {
        let work = || on_lab(bench, figure, measures, &mut measured);
        let thread = std::thread::Builder::new().name("lab".to_owned()).spawn_scoped(scope, work);
        let thread = thread.map_err(|e| ExperimentError::Failed(format!("cannot start a thread: {e}")))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match result {
        Ok(()) => {}
        Err(Stop::NotHere(why)) => measured.left_out = Some(why),
        Err(Stop::Failed(error)) => return Err(error),
    }
    Ok(measured)
}

fn on_lab(bench: Bench<'_>, figure: bool, measures: bool, measured: &mut ByHandoff) -> Result<(), Stop> {
    check_privileges().map_err(|error| Stop::NotHere(one_line(&error.to_string())))?;
    let cpus = CpuPlan::of_this_machine().ok();
    match &cpus {
        Some(plan) => plan.pin_this_thread(Node::Client)?,
        None => (bench.tell)("plimsoll: the front-end's CPU is not measured: this machine has only one"),
    }
    block_on(async {
        if measures {
            measured.measures = Some(handoff_measures::measure(bench, cpus.as_ref()).await?);
        }
        if figure {
            measured.figure = Some(handoff_figure::measure(bench, cpus.as_ref()).await?);
        }
        Ok(())
    })
}

/// Builds a lab, with CPUs assigned if there are several.
pub(super) fn lab(backends: usize, cpus: Option<&CpuPlan>, fill_checksums: bool) -> Result<Lab, Stop> {
    let config = LabConfig { backends, fill_checksums, cpus: cpus.cloned(), ..LabConfig::default() };
    Lab::build(&config).map_err(|error| Stop::NotHere(one_line(&error.to_string())))
}

/// Starts a cluster on it. A failure to start counts as missing support of this machine.
pub(super) async fn start<'a>(lab: &'a Lab, config: &LabClusterConfig) -> Result<LabCluster<'a>, Stop> {
    LabCluster::start(lab, config).await.map_err(|error| match error {
        error @ ExperimentError::Lab(LabError::Invalid(_)) => Stop::Failed(error),
        other => Stop::NotHere(one_line(&other.to_string())),
    })
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").trim_end_matches('.').to_owned()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_one_line() {
        assert_eq!(
            one_line("no link\n  b0: no root\n\n  b1: no root.\n"),
            "no link; b0: no root; b1: no root"
        );
    }
}
