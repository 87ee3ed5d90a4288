//! `plimsoll reproduce csld`.

use plimsoll_studies::csld::{self, CsldPart, CsldSetting, Effort};

use super::args::Args;
use super::findings::StudyFindings;
use crate::error::CliError;
use crate::output;

pub(super) fn run(args: &Args, effort: Effort) -> Result<StudyFindings, CliError> {
    args.only_adaptload()?;
    let part = args.figure.as_deref().map_or(Ok(CsldPart::All), part)?;
    let setting = CsldSetting { effort, part, seed: args.seed, seeds: args.seeds, minutes: args.minutes };
    check(&setting)?;
    let bar = output::Bar::new(csld::requests(&setting));
    let study = csld::reproduce(&setting, &bar);
    bar.finish();
    let csld::CsldStudy { claims, controls, caution, runs, report } = study?;
    Ok(StudyFindings { controls, caution, ..StudyFindings::new(claims, runs, report) })
}

fn check(setting: &CsldSetting) -> Result<(), CliError> {
    if setting.minutes.is_some_and(|minutes| !(0.5..=600.0).contains(&minutes)) {
        return Err(CliError::Usage("--minutes: give a number of minutes from 0.5 to 600".into()));
    }
    Ok(())
}

fn part(text: &str) -> Result<CsldPart, CliError> {
    match text {
        "table4" => Ok(CsldPart::Table(4)),
        "table5" => Ok(CsldPart::Table(5)),
        "robustness" => Ok(CsldPart::Robustness),
        "handoff" => Ok(CsldPart::Handoff),
        _ => match text.parse() {
            Ok(number) if (6..=11).contains(&number) => Ok(CsldPart::Figure(number)),
            _ => Err(CliError::Usage(format!(
                "`{text}` is no figure of the CSLD paper that is reproduced; there are figures 6 to 11, table4, table5, robustness and handoff"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_by_name_and_number() {
        assert_eq!(part("11").unwrap(), CsldPart::Figure(11));
        assert_eq!(part("table5").unwrap(), CsldPart::Table(5));
        assert_eq!(part("handoff").unwrap(), CsldPart::Handoff);
        for text in ["5", "12", "table6", ""] {
            let error = part(text).unwrap_err().to_string();
            assert!(error.contains("figures 6 to 11, table4"), "{error}");
        }
    }

    #[test]
    fn no_time_is_refused() {
        let good = CsldSetting {
            effort: Effort::Quick,
            part: CsldPart::All,
            seed: None,
            seeds: Some(1),
            minutes: Some(2.0),
        };
        assert!(check(&good).is_ok());
        for minutes in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(check(&CsldSetting { minutes: Some(minutes), ..good }).is_err());
        }
    }
}
