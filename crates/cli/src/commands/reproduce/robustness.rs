//! `plimsoll reproduce robustness`: the stress matrix.

use std::sync::Arc;

use plimsoll_studies::Workload;
use plimsoll_studies::robustness::{
    CellResult, Half, JUDGED, MatrixSetting, QUICK_REQUESTS, REQUESTS, Traces, conclusion, lost_cells,
    regrets_table, report, reproduce, requests,
};
use plimsoll_trace::{ReadOptions, TraceInput};

use super::args::Args;
use super::shown::shown;
use crate::error::CliError;
use crate::input;
use crate::out_dir::OutDir;
use crate::output;

/// Results of cells, one JSON object per line.
pub(super) const CELLS: &str = "cells.jsonl";

pub(super) fn run(args: &Args, out: Option<&OutDir>) -> Result<(), CliError> {
    if args.peak_use.is_some() || args.profile.is_some() {
        return Err(CliError::Usage("--profile and --peak-use are for the study `adaptload`".into()));
    }
    let half = args.figure.as_deref().map(half).transpose()?;
    if half == Some(Half::Traces) && args.trace.is_empty() {
        return Err(CliError::Usage("--figure traces: give the traces by --trace NAME=FILE".into()));
    }
    let setting = MatrixSetting {
        quick: args.quick,
        half,
        seed: args.seed.unwrap_or(1),
        per_half: None,
        ablate: args.ablate,
    };
    let traces = traces(args, setting)?;
    let (cells, contenders) = (setting.cells(&traces), setting.contenders()?);
    let bar = output::Bar::new(requests(&cells, &contenders));
    let results = reproduce(&cells, &contenders, &traces, &bar);
    bar.finish();
    let results = results?;
    let written = out.map_or(Ok(()), |out| write(out, &results));
    show(args, out.filter(|_| written.is_ok()), &results)?;
    written
}

/// The beginnings of the traces that `--trace NAME=PATH` gives.
fn traces(args: &Args, setting: MatrixSetting) -> Result<Traces, CliError> {
    let limit = Some(if setting.quick { QUICK_REQUESTS } else { REQUESTS });
    let options = ReadOptions { seed: setting.seed, limit, ..ReadOptions::default() };
    let mut traces = Traces::new();
    for given in &args.trace {
        let (name, path) = given.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            CliError::Usage(format!("--trace {given}: give a name and a file, e.g. site=access.log.gz"))
        })?;
        let trace = input::read(&[TraceInput::from_arg(path)], &options)?;
        if trace.is_empty() {
            return Err(CliError::Failed(format!("{path}: the trace has no requests")));
        }
        traces.insert(name.to_owned(), Arc::new(Workload::from_trace(trace)));
    }
    Ok(traces)
}

fn half(text: &str) -> Result<Half, CliError> {
    [Half::Design, Half::Judging, Half::Traces].into_iter().find(|half| half.name() == text).ok_or_else(
        || {
            CliError::Usage(format!(
                "`{text}` is no part of the stress matrix; there are `design`, `judging` and `traces`"
            ))
        },
    )
}

fn lines(results: &[CellResult]) -> Result<String, CliError> {
    let line = |result| serde_json::to_string(result).map_err(|e| CliError::Failed(e.to_string()));
    Ok(results.iter().map(line).collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn write(out: &OutDir, results: &[CellResult]) -> Result<(), CliError> {
    let report = report(results, JUDGED).footer("Command", output::command_line());
    out.write(report.footer("Version", format!("plimsoll {}", env!("CARGO_PKG_VERSION"))))?;
    let path = out.file(CELLS);
    std::fs::write(&path, lines(results)? + "\n")
        .map_err(|e| CliError::Failed(format!("{}: {e}", path.display())))
}

fn show(args: &Args, out: Option<&OutDir>, results: &[CellResult]) -> Result<(), CliError> {
    if args.json {
        return output::print(&lines(results)?);
    }
    let mut text = format!("{}\n", shown(regrets_table(results)));
    text += &format!("Where {JUDGED} is behind:\n{}\n", shown(lost_cells(results, JUDGED)));
    text += &output::wrapped(&conclusion(results, JUDGED), output::width().into(), 0);
    if let Some(out) = out {
        text += &format!("\n{}\n", out.told());
    }
    output::print(&text)
}
