//! `plimsoll reproduce fine-grain`.

use plimsoll_studies::fine_grain::{self, Effort, FIGURES, PROTOTYPE_FIGURE};

use super::args::Args;
use super::findings::StudyFindings;
use crate::error::CliError;
use crate::output;

pub(super) fn run(args: &Args, effort: Effort) -> Result<StudyFindings, CliError> {
    args.only_adaptload()?;
    let figure = args.figure.as_deref().map(figure).transpose()?;
    // Measurements in real time come first, while nothing else uses the CPUs.
    let tell = |line: &str| eprintln!("{line}");
    let prototype = plimsoll_experiments::fine_grain::measure(effort, figure, args.seed, &tell)?;
    let bar = output::Bar::new(fine_grain::requests(effort, figure, args.seed));
    let study = fine_grain::reproduce(effort, figure, args.seed, &prototype, &bar);
    bar.finish();
    let fine_grain::FineGrainStudy { exact, calibration, claims, runs, report } = study?;
    Ok(StudyFindings { exact, calibration, ..StudyFindings::new(claims, runs, report) })
}

fn figure(text: &str) -> Result<u32, CliError> {
    let number = text.parse().ok().filter(|number| FIGURES.contains(number) || *number == PROTOTYPE_FIGURE);
    number.ok_or_else(|| {
        let known: Vec<String> = FIGURES.iter().map(u32::to_string).collect();
        CliError::Usage(format!(
            "`{text}` is no figure of the fine-grain paper that is reproduced; there are figures {} and {PROTOTYPE_FIGURE}",
            known.join(", ")
        ))
    })
}
