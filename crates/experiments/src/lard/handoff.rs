//! Measurements with connection handoff, on a lab.

use plimsoll_lab::{CpuPlan, Node, check_privileges};
use plimsoll_studies::lard::{HandoffMeasures, Prototype};

use super::bench::Bench;
use super::stop::Stop;
use super::{handoff_figure, handoff_measures};
use crate::{ExperimentError, block_on};

/// The measurements.
#[derive(Default)]
pub(super) struct ByHandoff {
    pub(super) figure: Option<Prototype>,
    pub(super) measures: Option<HandoffMeasures>,
    /// Why some of the wanted measurements are missing, on one line.
    pub(super) left_out: Option<String>,
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
    check_privileges().map_err(|error| Stop::not_here(&error))?;
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
