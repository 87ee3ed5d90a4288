//! `plimsoll reproduce`: a paper's study, figure by figure.

mod adaptload;
mod args;
mod cloning;
mod csld;
mod findings;
mod fine_grain;
mod lard;
mod robustness;
mod shown;

use std::path::PathBuf;

use plimsoll_report::{
    Claim, Verdict, claims_conclusion, claims_table, controls_conclusion, write_runs_csv, write_runs_parquet,
};
use plimsoll_studies::fine_grain::{EXACT_LEVEL_PERCENT, ExactCheck, exact_conclusion, exact_table};
use plimsoll_studies::lard::{Effort, calibration_conclusion};

use crate::error::CliError;
use crate::out_dir::OutDir;
use crate::output;
use args::StudyName;
use findings::StudyFindings;
use shown::shown;

pub(crate) use args::Args;

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    args.check_seeds()?;
    let matrix = args.study == StudyName::Robustness;
    let data: &[&str] = if matrix { &[robustness::CELLS] } else { &["runs.csv", "runs.parquet"] };
    let open = |dir: &PathBuf| OutDir::open(dir, "reproduce", data, args.force);
    let out = args.out.as_ref().map(open).transpose()?;
    let found = match args.study {
        StudyName::Lard => lard::run(args, effort)?,
        StudyName::Adaptload => adaptload::run(args, effort)?,
        StudyName::FineGrain => fine_grain::run(args, effort)?,
        StudyName::Csld => csld::run(args, effort)?,
        StudyName::Cloning => cloning::run(args, effort)?,
        StudyName::Robustness => return robustness::run(args, out.as_ref()),
    };
    let written = out.as_ref().map_or(Ok(()), |out| write(out, &found));
    // Print results first, so that they survive a failure to write a file.
    show(args, out.as_ref().filter(|_| written.is_ok()), &found)?;
    written?;
    found.defects()
}

fn write(out: &OutDir, study: &StudyFindings) -> Result<(), CliError> {
    let report = study.report.clone().footer("Command", output::command_line());
    let report = report.footer("Version", format!("plimsoll {}", env!("CARGO_PKG_VERSION")));
    out.write(report)?;
    let failed = |e: plimsoll_report::DataError| CliError::Failed(e.to_string());
    write_runs_csv(out.file("runs.csv"), &study.runs).map_err(failed)?;
    write_runs_parquet(out.file("runs.parquet"), &study.runs).map_err(failed)
}

fn show(args: &Args, out: Option<&OutDir>, study: &StudyFindings) -> Result<(), CliError> {
    if args.json {
        let exact = study.exact.iter().map(exact_json);
        let calibration = study.calibration.iter().map(|claim| json("calibration", claim));
        let claims = study.claims.iter().map(|claim| json("claim", claim));
        let controls = study.controls.iter().map(|claim| json("control", claim));
        return exact
            .chain(calibration)
            .chain(claims)
            .chain(controls)
            .try_for_each(|object| output::print(&object.to_string()));
    }
    let mut text = String::new();
    if !study.exact.is_empty() {
        text = format!("{}{}\n\n", shown(exact_table(&study.exact)), exact_conclusion(&study.exact));
    }
    text += &in_words(&study.calibration, &study.claims);
    if !study.controls.is_empty() {
        text +=
            &format!("\n{}{}\n", shown(claims_table(&study.controls)), controls_conclusion(&study.controls));
    }
    if let Some(caution) = &study.caution {
        text += &format!("\n{}\n", output::wrapped(caution, output::width().into(), 0));
    }
    if let Some(out) = out {
        text += &format!("{}\n", out.told());
    }
    output::print(&text)
}

/// The claims as a table with the conclusion. The calibration is one sentence, followed by a table if some
/// statistics are not met.
fn in_words(calibration: &[Claim], claims: &[Claim]) -> String {
    let mut text = String::new();
    if !calibration.is_empty() {
        if claims.is_empty() || calibration.iter().any(|claim| claim.verdict != Verdict::Holds) {
            text += &shown(claims_table(calibration));
        }
        text += &output::wrapped(&calibration_conclusion(calibration), output::width().into(), 0);
    }
    if !claims.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}{}{}\n", shown(claims_table(claims)), claims_conclusion(claims));
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

fn exact_json(check: &ExactCheck) -> serde_json::Value {
    let (mean, half) = (check.mean(), check.half_width());
    serde_json::json!({
        "kind": "exact", "id": check.anchor.id, "statement": check.anchor.statement, "theory": check.anchor.theory,
        "theory_rounding": check.anchor.rounding, "unit": "mean service times", "mean": mean,
        "interval_low": mean - half, "interval_high": mean + half, "level_percent": EXACT_LEVEL_PERCENT,
        "half_width": half, "widest_half_width": check.anchor.widest, "runs": check.means,
        "verdict": if check.holds() { "holds" } else { "fails" }, "failure": check.failure(),
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_studies::fine_grain::Anchor;

    use super::*;

    #[test]
    fn an_exact_check_in_json() {
        let anchor = Anchor { id: "t4", statement: "M/M/1", theory: 2.0, rounding: 0.0, widest: 0.02 };
        let means = [1.99, 2.01, 1.99, 2.01, 1.99, 2.01, 1.99, 2.01, 1.99, 2.01].to_vec();
        let object = exact_json(&ExactCheck { anchor, means });
        assert_eq!((&object["kind"], &object["id"]), (&"exact".into(), &"t4".into()));
        assert_eq!((&object["verdict"], &object["failure"]), (&"holds".into(), &serde_json::Value::Null));
        // Student's t of nine degrees is 3.250; the deviation 0.01 · √(10 / 9), over √10.
        let (low, high) =
            (object["interval_low"].as_f64().unwrap(), object["interval_high"].as_f64().unwrap());
        assert!((high - low - 2.0 * 3.250 * 0.01 / 3.0).abs() < 1e-4 && low < 2.0 && high > 2.0, "{object}");
        assert_eq!(object["runs"].as_array().map(Vec::len), Some(10));
    }
}
