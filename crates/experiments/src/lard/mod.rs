//! What the LARD study takes from real clusters: figure 17 and section 6.2.

use std::path::Path;

use plimsoll_studies::lard::{Effort, PROTOTYPE_FIGURE, Part, Real};

use crate::{ExperimentError, Tell};

mod handoff;
mod handoff_figure;
mod handoff_measures;
mod prototype;

/// What all measurements of the study have in common.
#[derive(Clone, Copy)]
struct Bench<'a> {
    effort: Effort,
    /// The `plimsoll` program, of which clusters on a lab are made.
    program: &'a Path,
    tell: Tell<'a>,
}

/// Measures what a part of the study takes from real clusters, for [`plimsoll_studies::lard::reproduce`]. What needs a lab
/// is left out where this machine does not allow one; the result says so. `program` is the `plimsoll` program.
///
/// # Errors
/// When a measurement began and went wrong.
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
