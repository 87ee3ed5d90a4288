//! `plimsoll reproduce`: a paper's study, figure by figure.

mod adaptload;
mod args;
mod findings;
mod lard;

use plimsoll_report::{Claim, Verdict, claims_conclusion, claims_table, write_runs_csv, write_runs_parquet};
use plimsoll_studies::lard::{Effort, calibration_conclusion};

use crate::error::CliError;
use crate::output;
use args::StudyName;
use findings::StudyFindings;

pub(crate) use args::Args;

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    if let Some(dir) = &args.out {
        output::make_dir(dir)?;
    }
    let found = match args.study {
        StudyName::Lard => lard::run(args, effort)?,
        StudyName::Adaptload => adaptload::run(args, effort)?,
    };
    show(args, found)
}

fn show(args: &Args, study: StudyFindings) -> Result<(), CliError> {
    if let Some(dir) = &args.out {
        let report = study.report.footer("Command", output::command_line());
        let report = report.footer("Version", format!("plimsoll {}", env!("CARGO_PKG_VERSION")));
        output::write(&dir.join("report.html"), &report.to_html())?;
        let failed = |e: plimsoll_report::DataError| CliError::Failed(e.to_string());
        write_runs_csv(dir.join("runs.csv"), &study.runs).map_err(failed)?;
        write_runs_parquet(dir.join("runs.parquet"), &study.runs).map_err(failed)?;
    }
    if args.json {
        let calibration = study.calibration.iter().map(|claim| json("calibration", claim));
        let claims = study.claims.iter().map(|claim| json("claim", claim));
        return calibration.chain(claims).try_for_each(|object| output::print(&object.to_string()));
    }
    let mut text = in_words(&study.calibration, &study.claims);
    if let Some(dir) = &args.out {
        text += &format!("Report: {}\n", dir.join("report.html").display());
    }
    output::print(&text)
}

/// The claims as a table with the conclusion. The calibration is one sentence, followed by a table if some
/// statistics are not met.
fn in_words(calibration: &[Claim], claims: &[Claim]) -> String {
    let mut text = String::new();
    if !calibration.is_empty() {
        if claims.is_empty() || calibration.iter().any(|claim| claim.verdict != Verdict::Holds) {
            text += &format!("{}\n", claims_table(calibration).to_text_within(output::width()));
        }
        text += &format!("{}\n", calibration_conclusion(calibration));
    }
    if !claims.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        let table = claims_table(claims).to_text_within(output::width());
        text += &format!("{gap}{table}\n{}\n", claims_conclusion(claims));
    }
    text
}

fn json(kind: &str, claim: &Claim) -> serde_json::Value {
    let measured: Vec<serde_json::Value> = claim
        .measured
        .iter()
        .map(|m| {
            let condition = (!m.condition.is_empty()).then_some(&m.condition);
            serde_json::json!({"workload": m.workload, "seed": m.seed, "condition": condition, "value": m.value})
        })
        .collect();
    serde_json::json!({
        "kind": kind, "id": claim.id, "figure": claim.figure, "statement": claim.statement, "paper": claim.paper,
        "paper_text": claim.paper_text, "unit": claim.unit, "median": claim.median(), "min": claim.min(),
        "max": claim.max(), "verdict": claim.verdict.word(), "rule": claim.rule,
        "explanation": claim.explanation, "measured": measured,
    })
}
