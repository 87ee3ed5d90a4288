//! `plimsoll reproduce lard`.

use plimsoll_studies::lard::{self, Effort, FIGURES, PROTOTYPE_FIGURE, Part};

use super::args::Args;
use super::findings::StudyFindings;
use crate::error::CliError;
use crate::output;

pub(super) fn run(args: &Args, effort: Effort) -> Result<StudyFindings, CliError> {
    args.only_adaptload()?;
    let part = args.figure.as_deref().map_or(Ok(Part::All), part).map_err(CliError::Usage)?;
    // Measurements of real traffic come first, while nothing else uses the CPUs.
    let tell = |line: &str| eprintln!("{line}");
    let real = plimsoll_experiments::lard::measure(effort, part, &output::this_program()?, &tell)?;
    let bar = output::Bar::new(lard::requests(effort, part, args.seed, &real));
    let study = lard::reproduce(effort, part, args.seed, &real, &bar);
    bar.finish();
    let lard::LardStudy { calibration, claims, runs, report } = study?;
    Ok(StudyFindings { calibration, ..StudyFindings::new(claims, runs, report) })
}

fn part(text: &str) -> Result<Part, String> {
    if text == "handoff" {
        return Ok(Part::Handoff);
    }
    let number = text.parse().map_err(|_| "give the number of a figure, or handoff".to_owned())?;
    if FIGURES.contains(&number) || number == PROTOTYPE_FIGURE {
        return Ok(Part::Figure(number));
    }
    Err(format!(
        "figure {number} of the LARD paper is no result that can be reproduced here; there are figures {} to {}, and \
         {PROTOTYPE_FIGURE}, and handoff",
        FIGURES.start(),
        FIGURES.end()
    ))
}
