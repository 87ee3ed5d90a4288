//! `plimsoll trace synth`: generates a synthetic workload as a trace.

use std::path::{Path, PathBuf};

use plimsoll_report::format::count;
use plimsoll_report::{Align, Cell, Table, TableColumn, Tone};
use plimsoll_studies::matrix::Progress as _;
use plimsoll_synth::{FigureBound, PublishedFigure, SyntheticWorkload};
use plimsoll_trace::{Format, TargetTable, formats, write_requests};

use super::synth_list;
use super::text::text_width;
use crate::commands::destination::DestinationArgs;
use crate::commands::lists::LEAST_WRAPPED;
use crate::error::CliError;
use crate::{output, values};

/// Records between two steps of the progress bar.
const STEP: u64 = 4096;

/// Longest profile of arrivals: some nineteen years.
const MOST_MINUTES: u64 = 10_000_000;

/// Arguments of `trace synth`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The workload is made as it is written: memory is that of its targets, whatever the number of requests \
(oracle-general keeps them in a temporary file). One seed gives the same bytes on every machine.

Examples:
  plimsoll trace synth --list
  plimsoll trace synth rice --to rice.parquet
  plimsoll trace synth ibm --set generator=irm --requests 100000 --seed 7 | head
  plimsoll trace synth worldcup --arrivals-per-minute day60.csv --to day60.parquet")]
pub(crate) struct Args {
    /// Workload to make (see --list)
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// List the workloads with what is published of them and their parameters; with NAME, that one only
    #[arg(long)]
    list: bool,

    /// Set a parameter, e.g. exponent=0.9 or generator=irm; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = values::setting)]
    settings: Vec<(String, String)>,

    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Number of requests; short for --set requests=N
    #[arg(long, value_name = "N")]
    requests: Option<u64>,

    /// File to write, compressed when its name ends in .gz, .zst or .xz; `-` for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    to: PathBuf,

    #[command(flatten)]
    destination: DestinationArgs,

    /// Let requests arrive as in this CSV file with the columns minute and requests
    #[arg(long, value_name = "FILE.csv")]
    arrivals_per_minute: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if args.list {
        return output::print(&synth_list::text(args.name.as_deref(), text_width())?);
    }
    let Some(name) = args.name.as_deref() else {
        let names: Vec<&str> = plimsoll_synth::SPECS.iter().map(|spec| spec.name).collect();
        return Err(CliError::Usage(format!(
            "name the workload to make, one of {}; `plimsoll trace synth --list` tells of them",
            names.join(", ")
        )));
    };
    let workload = build(args, name)?;
    // Ignores endings of compression: `rice.gz` is CSV, too.
    let destination = args.destination.resolve(&args.to, &[], Some(formats::csv::FORMAT))?;
    let targets = target_table(&workload)?;
    destination.begin()?;
    let bar = (!destination.is_stdout()).then(|| output::Bar::new(workload.len()));
    let records = (1u64..).zip(workload.records()).map(|(made, record)| {
        if let (0, Some(bar)) = (made % STEP, &bar) {
            bar.advance(STEP);
        }
        record
    });
    let written = write_requests(&targets, workload.fields(), records, destination.format, &destination.path);
    if let Some(bar) = &bar {
        bar.finish();
    }
    written.map_err(|error| destination.failed(error))?;
    let text = summary(&workload, &destination.name(), destination.format);
    if destination.is_stdout() {
        eprint!("{text}");
        return Ok(());
    }
    output::print(&text)
}

fn build(args: &Args, name: &str) -> Result<SyntheticWorkload, CliError> {
    let requests = args.requests.map(|n| n.to_string());
    let mut overrides: Vec<(&str, &str)> =
        args.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    if let Some(requests) = &requests {
        overrides.push(("requests", requests));
    }
    let workload = plimsoll_synth::build(name, &overrides, args.seed)?;
    let Some(path) = &args.arrivals_per_minute else {
        return Ok(workload);
    };
    let profile = read_profile(path)?;
    workload
        .with_requests_per_minute(&profile)
        .map_err(|error| CliError::Failed(format!("{}: {error}", path.display())))
}

fn target_table(workload: &SyntheticWorkload) -> Result<TargetTable, CliError> {
    let mut table = TargetTable::new();
    for target in 0..workload.target_count() {
        let name = workload.target_name(target);
        if table.intern(name.as_bytes()) != Some(target) {
            return Err(CliError::Failed(format!("two targets of the workload are both called {name}")));
        }
        table.set_document_size(target, workload.document_size_bytes(target));
    }
    Ok(table)
}

/// Requests of each minute from the first one in the file; minutes that are left out have none.
fn read_profile(path: &Path) -> Result<Vec<u64>, CliError> {
    let name = path.display();
    let wrong = |line: u64, what: &str| {
        CliError::Failed(format!(
            "{name} line {line}: {what}; each line gives a minute and its number of requests, minutes rising, under the \
             header minute,requests"
        ))
    };
    let broken = |error: csv::Error| {
        CliError::Failed(format!("cannot read the arrivals per minute from {name}: {error}"))
    };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(broken)?;
    let header = reader.headers().map_err(broken)?.clone();
    let column = |wanted: &str| header.iter().position(|found| found == wanted);
    let (Some(minute_at), Some(requests_at)) = (column("minute"), column("requests")) else {
        return Err(wrong(1, "the columns minute and requests are not both there"));
    };
    let mut profile: Vec<u64> = Vec::new();
    let mut first = None;
    for row in reader.records() {
        let row = row.map_err(broken)?;
        let line = row.position().map_or(0, csv::Position::line);
        let field = |at: usize, what: &str| {
            let text = row.get(at).unwrap_or_default();
            text.parse::<u64>().map_err(|_| wrong(line, &format!("{what} {text:?} is not a whole number")))
        };
        let (minute, requests) = (field(minute_at, "minute")?, field(requests_at, "number of requests")?);
        let place = minute.checked_sub(*first.get_or_insert(minute));
        let Some(place) = place.filter(|&place| place >= profile.len() as u64) else {
            return Err(wrong(line, &format!("minute {minute} does not come after the one before")));
        };
        if place >= MOST_MINUTES {
            return Err(wrong(
                line,
                &format!("minute {minute} lies more than {MOST_MINUTES} minutes after the first"),
            ));
        }
        profile.resize(place as usize, 0);
        profile.push(requests);
    }
    Ok(profile)
}

/// What was written, compared with the published figures.
fn summary(workload: &SyntheticWorkload, to: &str, format: Format) -> String {
    let mut table = Table::new([
        TableColumn::new("Figure", Align::Left),
        TableColumn::new("Published", Align::Right),
        TableColumn::new("Here", Align::Right),
        TableColumn::new("Difference", Align::Right),
        TableColumn::new("Met", Align::Left),
        TableColumn::new("Meaning", Align::Left).wraps_at(LEAST_WRAPPED),
    ]);
    for figure in workload.published() {
        if let Some(value) = workload.measured(figure.name) {
            table.row(compared(figure, value));
        }
    }
    let compared = match workload.published() {
        [] => String::new(),
        _ => format!("\n{}", table.to_text_within(output::width())),
    };
    format!(
        "Wrote {} requests for {} targets of {} (generator {}, seed {}) to {to} as {format}.\n{compared}",
        count(workload.len()),
        count(u64::from(workload.target_count())),
        workload.spec().name,
        workload.generator(),
        workload.seed(),
    )
}

fn compared(figure: &PublishedFigure, value: f64) -> [Cell; 6] {
    let deviation = value / figure.value - 1.0;
    let (met, difference) = match figure.bound {
        FigureBound::Equal => (deviation.abs() <= figure.tolerance, format!("{:+.2} %", 100.0 * deviation)),
        FigureBound::AtMost => (deviation <= figure.tolerance, String::new()),
    };
    let met = if met { Cell::toned("yes", Tone::Good) } else { Cell::toned("no", Tone::Bad) };
    [
        figure.name.into(),
        synth_list::published(figure).into(),
        synth_list::value_of(figure, value).into(),
        difference.into(),
        met,
        figure.help.into(),
    ]
}
