//! `plimsoll reproduce`: a paper's study, figure by figure.

use std::path::PathBuf;

use plimsoll_report::{
    Claim, Report, Run, Verdict, claims_conclusion, claims_table, write_runs_csv, write_runs_parquet,
};
use plimsoll_studies::lard::{self, Effort, FIGURES, PROTOTYPE_FIGURE, Part, StudyError};

use crate::error::CliError;
use crate::output;

mod adaptload;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The study
    #[arg(value_enum)]
    study: StudyName,

    /// Only this figure of the paper; of LARD also `handoff`: the measures of its connection handoff (section 6.2)
    #[arg(long, value_name = "N")]
    figure: Option<String>,

    /// Fewer runs, of a shortened day for AdaptLoad: one to three minutes on two cores
    #[arg(long)]
    quick: bool,

    /// AdaptLoad: requests per minute of the day, a CSV with columns `minute` and `requests`; a smooth day without it
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    profile: Option<PathBuf>,

    /// AdaptLoad: run on these traces, joined, instead of the synthetic World Cup day
    #[arg(long, value_name = "FILE", num_args = 1..)]
    trace: Vec<String>,

    /// AdaptLoad: seed of workload and runs [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// AdaptLoad: how much of its time the network is used at the day's highest peak, from which the speed of back-ends
    /// follows; the paper does not say [default: 0.5]
    #[arg(long, value_name = "SHARE")]
    peak_use: Option<f64>,

    /// Write an HTML report and the data of all runs into this directory
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print one JSON object per claim and calibrated statistic instead of the table
    #[arg(long)]
    json: bool,
}

/// The studies there are.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum StudyName {
    /// Locality-aware request distribution: Pai et al., ASPLOS 1998
    Lard,
    /// AdaptLoad, size-based distribution: Zhang et al., Workload-aware load balancing for clustered web servers
    Adaptload,
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

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    if let Some(dir) = &args.out {
        output::make_dir(dir)?;
    }
    let found = match args.study {
        StudyName::Lard => run_lard(args, effort)?,
        StudyName::Adaptload => adaptload::run(args, effort)?,
    };
    show(args, found)
}

fn run_lard(args: &Args, effort: Effort) -> Result<StudyFindings, CliError> {
    let others = args.seed.is_some() || args.peak_use.is_some();
    if others || args.profile.is_some() || !args.trace.is_empty() {
        let text = "--profile, --trace, --seed and --peak-use are for the study `adaptload`";
        return Err(CliError::Usage(text.into()));
    }
    let part = args.figure.as_deref().map_or(Ok(Part::All), part).map_err(CliError::Usage)?;
    // Measurements of real traffic come first, while nothing else uses the CPUs.
    let tell = |line: &str| eprintln!("{line}");
    let real = plimsoll_experiments::lard::measure(effort, part, &output::this_program()?, &tell)?;
    let bar = output::Bar::new(lard::requests(effort, part, &real));
    let study = lard::reproduce(effort, part, &real, &bar).map_err(failed);
    bar.finish();
    let lard::LardStudy { calibration, claims, runs, report } = study?;
    Ok(StudyFindings { calibration, claims, runs, report })
}

fn failed(error: StudyError) -> CliError {
    match error {
        StudyError::Workload(error) => CliError::from(error),
        StudyError::Scenario(error) => CliError::from(error),
    }
}

/// The results of a study.
struct StudyFindings {
    calibration: Vec<Claim>,
    claims: Vec<Claim>,
    runs: Vec<Run>,
    report: Report,
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
