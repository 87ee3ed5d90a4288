//! The report of `plimsoll simulate --out`: one or more runs compared.

mod bottleneck;
mod conclusion;
pub(crate) mod groups;
mod loads;
mod plots;
mod tables;

use crate::{
    format::count,
    labelled::{labelled, policy_of},
    plot::SeriesLook,
    report::{Report, Section},
    run::Run,
    runs_table::summary_tables,
};

pub use bottleneck::bottleneck;

/// Context of the runs, for the reader of the report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunsContext {
    /// Name of the trace or of the synthetic workload.
    pub trace: String,
    /// The command line that repeats the runs.
    pub command: String,
    /// Name and version of the program.
    pub version: String,
    /// What was assumed when the trace was read, e.g. how stamps in whole seconds were spread.
    pub load_notes: Vec<String>,
    /// What may make the results misleading, e.g. rejected lines.
    pub warnings: Vec<String>,
    /// Whether as many requests as the admission limit allows were under way all the time: then delays belong to different
    /// throughputs.
    pub saturated: bool,
    /// Every policy there is, whether it was run or not: its place is its look in all reports.
    pub policies: Vec<String>,
}

impl RunsContext {
    /// The look of a policy.
    fn look(&self, policy: &str) -> SeriesLook {
        let place = self.policies.iter().position(|known| known == policy_of(policy));
        SeriesLook::of_place(place.unwrap_or(self.policies.len()))
    }
}

/// A report that compares runs: conclusion, summary table, plots against the number of back-ends, delays,
/// load over time, then the details. The baseline is the first run's policy.
pub fn runs_report(title: &str, context: &RunsContext, runs: &[Run]) -> Report {
    let mut report = header(title, context, runs);
    let runs = &labelled(runs)[..];
    for sentence in conclusion::conclusion(runs, context.saturated) {
        report = report.conclusion(sentence);
    }
    if let Some(sentence) = bottleneck(runs, context.saturated) {
        report = report.conclusion(sentence);
    }
    if runs.is_empty() {
        return report.section(Section::new("Summary").paragraph("There was no run to report."));
    }
    let look = |policy: &str| context.look(policy);
    report
        .section(summary(runs, context.saturated))
        .section(plots::overview(runs, &look))
        .section(tables::delays(plots::delays(runs, &look), runs))
        .section(loads::section(runs, context.saturated))
        .section(tables::backends(runs))
        .section(tables::counters(runs))
        .section(tables::parameters(runs))
}

/// The table of the runs; where there are many policies, those that matter most, and all of them folded.
fn summary(runs: &[Run], saturated: bool) -> Section {
    let (table, all) = summary_tables(runs, saturated);
    let section = Section::new("Summary").explained_table(table);
    match all {
        Some((line, table)) => section.folded_table(line, table),
        None => section,
    }
}

fn header(title: &str, context: &RunsContext, runs: &[Run]) -> Report {
    let mut report = Report::new(title, format!("Trace {}", context.trace));
    let distinct = |texts: Vec<String>| {
        let mut seen: Vec<String> = Vec::new();
        for text in texts {
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        seen.join(", ")
    };
    let all = |pick: &dyn Fn(&Run) -> String| distinct(runs.iter().map(pick).collect());
    let facts = [
        ("Policies", all(&|run| run.policy.clone())),
        ("Back-ends", all(&|run| run.backends.to_string())),
        ("Load information", all(&|run| run.load_information.clone())),
        ("Front-ends", all(&|run| run.front_ends.to_string())),
        ("Back-end model", all(&|run| run.model.clone())),
        ("Hardware", all(&|run| run.hardware().unwrap_or_default().to_owned())),
        ("Requests per run", all(&|run| count(run.requests))),
    ];
    for (label, value) in facts {
        if !value.is_empty() {
            report = report.fact(label, value);
        }
    }
    for run in runs.iter().filter(|run| run.unanswered() > 0) {
        report = report.warning(format!(
            "{} on {} back-ends rejected {} and lost {} of {} requests.",
            run.policy,
            run.backends,
            count(run.rejected),
            count(run.lost),
            count(run.requests)
        ));
    }
    for note in &context.load_notes {
        report = report.fact("Input", note);
    }
    for warning in &context.warnings {
        report = report.warning(warning);
    }
    let footers = [
        ("Command", context.command.clone()),
        ("Version", context.version.clone()),
        ("Seed", all(&|run| run.seed.to_string())),
        ("Input", all(&|run| run.trace.path.clone())),
        (
            "SHA-256",
            all(&|run| run.trace.sha256.clone().unwrap_or_else(|| "none (synthetic workload)".to_owned())),
        ),
        ("Lines rejected", all(&|run| count(run.trace.lines_rejected))),
    ];
    for (label, value) in footers {
        if !value.is_empty() {
            report = report.footer(label, value);
        }
    }
    report
}
