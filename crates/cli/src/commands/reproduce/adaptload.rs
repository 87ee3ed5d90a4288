//! `plimsoll reproduce adaptload`.

use std::path::Path;

use plimsoll_studies::Workload;
use plimsoll_studies::adaptload::{self, DaySource, Effort, FIGURES, Setting};
use plimsoll_trace::{ReadOptions, TraceInput};

use super::args::Args;
use super::findings::StudyFindings;
use crate::error::CliError;
use crate::{input, output};

pub(super) fn run(args: &Args, effort: Effort) -> Result<StudyFindings, CliError> {
    let figure = args.figure.as_deref().map(figure).transpose()?;
    let setting = setting(args)?;
    let source = source(args, setting.seed.unwrap_or(1))?;
    let bar = output::Bar::new(adaptload::requests(effort, figure, &source, setting));
    let study = adaptload::reproduce(effort, figure, source, setting, &bar);
    bar.finish();
    let adaptload::AdaptLoadStudy { calibration, claims, runs, report } = study?;
    Ok(StudyFindings { calibration, ..StudyFindings::new(claims, runs, report) })
}

fn figure(text: &str) -> Result<u32, CliError> {
    let number = text.parse().ok().filter(|number| FIGURES.contains(number));
    number.ok_or_else(|| {
        let known: Vec<String> = FIGURES.iter().map(u32::to_string).collect();
        CliError::Usage(format!(
            "`{text}` is no figure of the AdaptLoad paper that is reproduced; there are figures {}",
            known.join(", ")
        ))
    })
}

fn setting(args: &Args) -> Result<Setting, CliError> {
    let default = Setting::default();
    let peak_use = args.peak_use.unwrap_or(default.peak_use);
    if !(0.01..=2.0).contains(&peak_use) {
        return Err(CliError::Usage(format!(
            "--peak-use {peak_use}: give a share of the network's time from 0.01 to 2, e.g. 0.5"
        )));
    }
    Ok(Setting { seed: args.seed, peak_use })
}

/// `seed` spreads requests that are stamped with whole seconds within them.
fn source(args: &Args, seed: u64) -> Result<DaySource, CliError> {
    if let Some(path) = &args.profile {
        return profile(path).map(DaySource::Profile);
    }
    if args.trace.is_empty() {
        return Ok(DaySource::Smooth);
    }
    let inputs: Vec<TraceInput> = args.trace.iter().map(TraceInput::from_arg).collect();
    let options = ReadOptions { seed, ..ReadOptions::default() };
    let trace = input::read(&inputs, &options)?;
    for warning in input::warnings(&trace) {
        eprintln!("plimsoll: warning: {warning}");
    }
    Ok(DaySource::Trace(Box::new(Workload::from_trace(trace))))
}

/// The most minutes of a profile: a month.
const MOST_MINUTES: usize = 44_640;

/// The column `requests` of a CSV of minutes.
fn profile(path: &Path) -> Result<Vec<u64>, CliError> {
    let failed =
        |line: usize, what: &str| CliError::Failed(format!("{}, line {line}: {what}", path.display()));
    let text = std::fs::read_to_string(path)
        .map_err(|e| CliError::Failed(format!("cannot read {}: {e}", path.display())))?;
    let mut lines = text.lines().enumerate();
    let header = lines.next().map(|(_, line)| line).unwrap_or_default();
    let column = header
        .split(',')
        .position(|name| name.trim() == "requests")
        .ok_or_else(|| failed(1, "the first line must name a column `requests`, e.g. `minute,requests`"))?;
    let mut minutes = Vec::new();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cell = line.split(',').nth(column).map(str::trim);
        let requests = cell.and_then(|cell| cell.parse().ok());
        minutes.push(requests.ok_or_else(|| {
            failed(index + 1, "give the requests of the minute as a whole number in the column `requests`")
        })?);
        if minutes.len() > MOST_MINUTES {
            return Err(failed(index + 1, "a profile has at most 44,640 minutes"));
        }
    }
    Ok(minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_number() {
        assert_eq!(figure("12").unwrap(), 12);
        for text in ["3", "13", "handoff", ""] {
            let error = figure(text).unwrap_err().to_string();
            assert!(error.contains("1, 2, 5, 6"), "{error}");
        }
    }
}
