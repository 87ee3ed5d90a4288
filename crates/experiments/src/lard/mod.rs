//! The LARD study's measurements of real clusters: figure 17 and section 6.2.

use std::path::Path;

use plimsoll_studies::lard::{Effort, PROTOTYPE_FIGURE, Part, Real};

use crate::{ExperimentError, Tell};
use bench::Bench;

mod bench;
mod cpu_watch;
mod dispatch_cost;
mod handoff;
mod handoff_figure;
mod handoff_measures;
mod lab;
mod prototype;
mod stop;

/// Makes the measurements of real clusters for a part of the study, for
/// [`plimsoll_studies::lard::reproduce`]. Leaves out measurements that need a lab if this machine does not
/// allow one; the result says so. `program` is the `plimsoll` program.
///
/// # Errors
/// When a measurement failed after it had begun.
pub fn measure(effort: Effort, part: Part, program: &Path, tell: Tell<'_>) -> Result<Real, ExperimentError> {
    let bench = Bench { effort, program, tell };
    let mut real = Real::default();
    let figure = part == Part::All || part == Part::Figure(PROTOTYPE_FIGURE);
    let measures = part == Part::All || part == Part::Handoff;
    if figure {
        real.prototypes.push(prototype::measure(bench)?);
    }
    if figure || measures {
        let by_handoff = handoff::measure(bench, figure, measures)?;
        if let Some(why) = &by_handoff.left_out {
            tell(&format!("plimsoll: connection handoff is left out: {why}"));
        }
        real.prototypes.extend(by_handoff.figure);
        (real.handoff, real.left_out) = (by_handoff.measures, by_handoff.left_out);
    }
    Ok(real)
}
