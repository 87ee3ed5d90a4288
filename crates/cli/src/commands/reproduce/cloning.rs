//! `plimsoll reproduce cloning`.

use plimsoll_studies::cloning::{self, CloningPart, CloningSetting, Effort};

use super::args::Args;
use super::findings::StudyFindings;
use crate::error::CliError;
use crate::output;

pub(super) fn run(args: &Args, effort: Effort) -> Result<StudyFindings, CliError> {
    args.only_adaptload()?;
    let part = args.figure.as_deref().map_or(Ok(CloningPart::All), part)?;
    let setting = CloningSetting { effort, part, seed: args.seed, seeds: args.seeds };
    // Measurements in real time come first, while nothing else uses the CPUs.
    let tell = |line: &str| eprintln!("{line}");
    let live = plimsoll_experiments::cloning::measure(&setting, &output::this_program()?, &tell)?;
    let bar = output::Bar::new(cloning::requests(&setting, &live));
    let study = cloning::reproduce(&setting, &live, &bar);
    bar.finish();
    let cloning::CloningStudy { calibration, claims, controls, caution, runs, report } = study?;
    Ok(StudyFindings { calibration, controls, caution, ..StudyFindings::new(claims, runs, report) })
}

fn part(text: &str) -> Result<CloningPart, CliError> {
    match text {
        "8" => Ok(CloningPart::Micro),
        "9" => Ok(CloningPart::Trace),
        "live" => Ok(CloningPart::Live),
        "live-8" => Ok(CloningPart::LiveMicro),
        "live-9" => Ok(CloningPart::LiveNodes),
        "min-size" => Ok(CloningPart::Thresholds),
        _ => Err(CliError::Usage(format!(
            "`{text}` is no figure of the Socket Cloning paper that is reproduced; there are figures 8 and 9, `live` (or one of live-8, \
             live-9 and min-size)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_number() {
        assert_eq!((part("8").unwrap(), part("9").unwrap()), (CloningPart::Micro, CloningPart::Trace));
        assert_eq!(
            (part("live").unwrap(), part("live-9").unwrap()),
            (CloningPart::Live, CloningPart::LiveNodes)
        );
        for text in ["7", "10", "all", ""] {
            let error = part(text).unwrap_err().to_string();
            assert!(error.contains("there are figures 8 and 9"), "{error}");
        }
    }
}
