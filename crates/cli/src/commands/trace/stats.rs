//! `plimsoll trace stats`: statistics of a trace.

use std::path::PathBuf;

use plimsoll_studies::Workload;
use plimsoll_trace::{QueryStrings, TraceStats};

use super::stats_check::{CheckComparison, Published};
use super::text::text_width;
use super::{stats_report, stats_text};
use crate::error::CliError;
use crate::input::{self, ReadArgs};
use crate::out_dir::OutDir;
use crate::output;

/// Arguments of `trace stats`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  plimsoll trace stats access.log.gz
  plimsoll trace stats access.log.1 access.log --out report
  plimsoll trace stats app.log --fields time=ts,target=http.url,size=bytes,status=http.status
  plimsoll trace stats wc_day66_1.gz --check wc_day66_1.check
  plimsoll trace stats synth:rice,generator=irm --json")]
pub(crate) struct Args {
    /// Traces, read as one; `-` for standard input; `synth:NAME[,key=value…]` for a synthetic workload
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<String>,

    /// Seed of a synthetic workload
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    read: ReadArgs,

    /// Compare the totals of a World Cup 98 log with its published .check file; exit with 1 when they differ
    #[arg(long, value_name = "FILE", conflicts_with = "limit")]
    check: Option<PathBuf>,

    /// Write an HTML report and the data as CSV into this directory
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Overwrite files of --out that no report of plimsoll lists as its own
    #[arg(long)]
    force: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    // Read first, so that a misspelt name fails before a long trace is read.
    let published = args.check.as_deref().map(Published::read).transpose()?;
    let open = |dir: &PathBuf| OutDir::open(dir, "trace stats", &stats_report::DATA, args.force);
    let out = args.out.as_ref().map(open).transpose()?;
    let workload = input::workload(&args.traces, &args.read.options(args.seed))?;
    let comparison = published.map(|published| published.compare(&workload.trace.report)).transpose()?;
    let stats = TraceStats::of(&workload.trace)?;
    if let Some(out) = &out {
        stats_report::write(out, &workload, &stats)?;
    }
    if args.json {
        for hint in input::hints(&workload.trace) {
            eprintln!("plimsoll: warning: {hint}");
        }
        output::print(&json(&workload, &stats, comparison.as_ref()).to_string())?;
    } else {
        let mut text = stats_text::text(&workload, &stats, text_width());
        if let Some(comparison) = &comparison {
            text += &format!("\n{comparison}");
        }
        if let Some(out) = &out {
            text += &format!("\n{}\n", out.told());
        }
        output::print(&text)?;
    }
    comparison.map_or(Ok(()), |comparison| comparison.verdict())
}

/// The statistics as one object: where they come from, then the keys of [`TraceStats`], then the World Cup totals.
fn json(workload: &Workload, stats: &TraceStats, comparison: Option<&CheckComparison>) -> serde_json::Value {
    let report = &workload.trace.report;
    let mut object = serde_json::json!({
        "trace": workload.info,
        "format": report.format,
        "out_of_order": report.out_of_order,
        "times_spread": report.times_spread,
        "stamp_assumption": report.stamp_assumption,
        "query_strings": QueryStrings::of(&workload.trace.targets),
        "world_cup_check": report.world_cup,
        "check": comparison,
    });
    if let (Some(object), Ok(serde_json::Value::Object(stats))) =
        (object.as_object_mut(), serde_json::to_value(stats))
    {
        object.extend(stats);
    }
    object
}
