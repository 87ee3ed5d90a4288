//! `plimsoll reproduce`: a paper's study, figure by figure.

use std::path::PathBuf;

use plimsoll_report::{Claim, Verdict, claims_conclusion, claims_table, write_runs_csv, write_runs_parquet};
use plimsoll_studies::lard::{self, Effort, FIGURES, PROTOTYPE_FIGURE, Part, Real, StudyError};

use crate::error::CliError;
use crate::output;

mod handoff;
mod handoff_figure;
mod handoff_measures;
mod prototype;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The study
    #[arg(value_enum)]
    study: Study,

    /// Only this figure of the paper, or `handoff`: the measures of its connection handoff (section 6.2)
    #[arg(long, value_name = "N", value_parser = part)]
    figure: Option<Part>,

    /// One seed and few cluster sizes: two to three minutes on two cores
    #[arg(long)]
    quick: bool,

    /// Write an HTML report and the data of all runs into this directory
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print one JSON object per claim and calibrated statistic instead of the table
    #[arg(long)]
    json: bool,
}

/// The studies there are.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Study {
    /// Locality-aware request distribution: Pai et al., ASPLOS 1998
    Lard,
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

/// What takes real traffic comes first, while nothing else takes the CPUs.
fn measure(effort: Effort, part: Part) -> Result<Real, CliError> {
    let mut real = Real::default();
    let figure = part == Part::All || part == Part::Figure(PROTOTYPE_FIGURE);
    let measures = part == Part::All || part == Part::Handoff;
    if figure {
        real.prototypes.push(prototype::measure(effort)?);
    }
    if figure || measures {
        let by_handoff = handoff::measure(effort, figure, measures)?;
        if let Some(why) = &by_handoff.left_out {
            eprintln!("plimsoll: connection handoff is left out: {why}");
        }
        real.prototypes.extend(by_handoff.figure);
        (real.handoff, real.left_out) = (by_handoff.measures, by_handoff.left_out);
    }
    Ok(real)
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let Study::Lard = args.study;
    let part = args.figure.unwrap_or(Part::All);
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    if let Some(dir) = &args.out {
        output::make_dir(dir)?;
    }
    let real = measure(effort, part)?;
    let bar = output::Bar::new(lard::requests(effort, part, &real));
    let study = lard::reproduce(effort, part, &real, &bar).map_err(|error| match error {
        StudyError::Workload(error) => CliError::from(error),
        StudyError::Scenario(error) => CliError::from(error),
    });
    bar.finish();
    let study = study?;
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

/// The claims as a table with the conclusion. The calibration is one sentence, and a table where that is not enough.
fn in_words(calibration: &[Claim], claims: &[Claim]) -> String {
    let mut text = String::new();
    if !calibration.is_empty() {
        if claims.is_empty() || calibration.iter().any(|claim| claim.verdict != Verdict::Holds) {
            text += &format!("{}\n", claims_table(calibration).to_text_within(output::width()));
        }
        text += &format!("{}\n", lard::calibration_conclusion(calibration));
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
        .map(|m| serde_json::json!({"workload": m.workload, "seed": m.seed, "value": m.value}))
        .collect();
    serde_json::json!({
        "kind": kind, "id": claim.id, "figure": claim.figure, "statement": claim.statement, "paper": claim.paper,
        "paper_text": claim.paper_text, "unit": claim.unit, "median": claim.median(), "min": claim.min(),
        "max": claim.max(), "verdict": claim.verdict.word(), "rule": claim.rule,
        "explanation": claim.explanation, "measured": measured,
    })
}
