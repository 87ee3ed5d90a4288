//! `plimsoll simulate`: a trace through policies on a simulated cluster.

mod notes;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ArgMatches;
use clap::parser::ValueSource;
use plimsoll_cache::CacheSpec;
use plimsoll_policy::Nanos;
use plimsoll_policy::params::GivenValue;
use plimsoll_report::{
    Run, RunsContext, TableView, bottleneck, json_line, runs_report, runs_table, write_load_csv,
    write_load_parquet, write_runs_csv, write_runs_parquet,
};
use plimsoll_sim::hardware::HardwareSpec;
use plimsoll_sim::{Arrivals, Dealing, Fault, HotSpot, PartitionPlan, TimeDistribution};
use plimsoll_studies::Workload;
use plimsoll_studies::matrix::run_all;
use plimsoll_studies::scenario::{Admission, Scenario, ScenarioError, Tables, strategy_names};
use plimsoll_studies::spec::{LoadInformationChoice, ModelChoice, ScenarioSpec, StrategyChoice};

use self::notes::{
    dealing_warning, hardware_note, load_notes, load_use_warnings, service_warning, threshold_warnings,
    too_late_warnings,
};
use crate::class_file;
use crate::error::CliError;
use crate::input::{self, ReadArgs};
use crate::out_dir::OutDir;
use crate::scenario_file::{self, OutputSpec};
use crate::{output, values};

/// Arguments of `simulate`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  plimsoll simulate access.log.gz --policy wrr,lard,lard_r --backends 4,8 --cache 512MiB --out report
  plimsoll simulate access.log --policy lard --set lard.t_high=80 --arrivals trace --speed 10 --json
  plimsoll simulate synth:rice --policy lard_r --backends 8 --fault down:3@60 --fault up:3@120")]
pub(crate) struct Args {
    /// Traces, read as one; `-` for standard input; `synth:NAME[,key=value…]` for a synthetic workload
    #[arg(value_name = "TRACE", required_unless_present = "scenario")]
    traces: Vec<String>,

    /// Take options and traces from this TOML file; what is on the command line wins
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,

    /// Policies to compare, by name or alias (see `plimsoll policies`), with parameters if wanted, e.g.
    /// wrr,lard:t_low=10,t_high=80; `wrr_gms` is WRR with global memory
    #[arg(short, long, value_delimiter = ',', default_value = "wrr,lard,lard_r")]
    policy: Vec<String>,

    /// Numbers of back-ends to try, such as 4,8 or 2-8
    #[arg(short, long, value_delimiter = ',', default_value = "8", value_parser = values::backends)]
    backends: Vec<values::BackendRange>,

    /// Back-end model (see `plimsoll models`)
    #[arg(short, long, default_value = "lard")]
    model: String,

    /// Hardware of the back-ends (see `plimsoll hardware`); `1998` is the papers' machine. Of no effect on the model fifo
    #[arg(long, value_name = "NAME", default_value = "nvme", value_parser = plimsoll_sim::hardware::find_hardware)]
    hardware: &'static HardwareSpec,

    /// Memory cache of each back-end: a size, or per cent of the size of all targets, such as 15%
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = values::cache_size)]
    cache: values::CacheSize,

    /// Replacement policy of the caches
    #[arg(long, value_name = "NAME", default_value = "gds")]
    cache_policy: String,

    /// Never cache files above this size
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    cache_object_limit: Option<u64>,

    /// Set a parameter of a policy or the model, e.g. lard_r.t_low=25 or disks=2; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = values::parameter)]
    settings: Vec<(String, GivenValue)>,

    /// Draw service times, for models that take them: SHAPE:MEAN[:CV] such as exponential:50ms or gamma:22.2ms:0.45
    #[arg(long, value_name = "SHAPE:MEAN", value_parser = values::service)]
    service: Option<TimeDistribution>,

    /// Front-ends that share the back-ends, each with its own policy object and its own view of loads
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::front_ends)]
    front_ends: u16,

    /// How requests are dealt to front-ends: client (all of a client to one of them) or random
    #[arg(long, default_value = "client", value_parser = values::dealing)]
    dealing: Dealing,

    /// What front-ends remember of targets (lard, lard_r, lb_gc): separate (each its own table) or shared (one for all, without cost)
    #[arg(long, default_value = "separate", value_parser = values::tables)]
    tables: Tables,

    /// Where front-ends' loads come from: exact, own, broadcast, poll, central, with parameters if wanted, e.g.
    /// own,poll:size=3; each is a run of its own (see docs/load-information.md)
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_value = "exact")]
    load_information: Vec<String>,

    /// Partitions of the targets, of which a back-end hosts only some: a number, or the back-ends of each, such as 0-3/4-7
    #[arg(long, value_name = "PARTITIONS", default_value = "1", value_parser = values::partitions)]
    partitions: PartitionPlan,

    /// Time for which a request is on its way from the back-end on which its front-end runs to another one, such as 258us; 0
    /// for front-ends on machines of their own
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::time)]
    hop: Nanos,

    /// How often front-ends exchange what they have seen, for policies that share it; 0 for never
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::time)]
    exchange_interval: Nanos,

    /// From FROM to UNTIL, in seconds, make this share of all requests ask for the most requested target; may be repeated
    #[arg(long = "hot-spot", value_name = "SHARE@FROM-UNTIL", value_parser = values::hot_spot)]
    hot_spots: Vec<HotSpot>,

    /// How requests arrive: closed (saturated), trace (at their times), poisson:RATE, or SHAPE:RATE[:CV] such as gamma:300:0.8
    #[arg(long, default_value = "closed", value_parser = values::arrivals)]
    arrivals: Arrivals,

    /// Play the trace this many times as fast (with --arrivals trace)
    #[arg(long, value_name = "X", value_parser = values::positive)]
    speed: Option<f64>,

    /// Requests let in at once: lard (S = (n-1)·t_high + t_low - 1), none, or a number
    #[arg(long, default_value = "lard", value_parser = values::admission)]
    admission: Admission,

    /// Requests answered before the measurement starts
    #[arg(long, value_name = "N", default_value_t = 0)]
    warmup: u64,

    /// Do something to a back-end: down:B@T, up:B@T, drain:B@T, weight=W:B@T, on the models fifo, apache and lard speed=X:B@T, or on
    /// lard memory=BYTES:B@T (T in seconds); may be repeated
    #[arg(long = "fault", value_name = "WHAT:B@T", value_parser = values::fault)]
    faults: Vec<Fault>,

    /// Make this share of the requests dynamic, except those for 100 KB or more
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = values::share)]
    dynamic_share: f64,

    /// Take the classes of requests from this class file (see `plimsoll classify`), for the policy csld, and how long back-ends
    /// work on requests of each, for models that take service times
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,

    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    read: ReadArgs,

    /// Write every decision to this CSV file (one per run, when there are several)
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,

    /// Write an HTML report and the data as CSV and Parquet into this directory
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Overwrite files of --out that no report of plimsoll lists as its own
    #[arg(long)]
    force: bool,

    /// Print the rows of all policies; by default those that matter most where there are more than eight
    #[arg(long)]
    all_rows: bool,

    /// Print one JSON object per run instead of the table
    #[arg(long)]
    json: bool,

    /// Fill in wall_s and requests_per_wall_s, which makes equal runs print different bytes
    #[arg(long)]
    timing: bool,

    /// Runs at once; by default one per CPU
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// Merges the command line over the scenario file.
fn specs(args: &Args, given: impl Fn(&str) -> bool) -> Result<(ScenarioSpec, OutputSpec), CliError> {
    let (mut spec, mut output) = match &args.scenario {
        Some(path) => scenario_file::read(path)?,
        None => (ScenarioSpec::default(), OutputSpec::default()),
    };
    /// Copies the given values into the corresponding fields.
    macro_rules! take {
        ($($id:literal: $value:expr => $field:expr;)*) => { $( if given($id) { $field = $value; } )* };
    }
    take! {
        "traces": args.traces.clone() => spec.traces;
        "policy": StrategyChoice::list(&args.policy.join(","))? => spec.policy;
        "backends": args.backends.iter().cloned().flatten().collect() => spec.backends;
        "model": ModelChoice::read(&args.model)? => spec.model;
        "hardware": args.hardware => spec.hardware;
        "cache": args.cache => spec.cache;
        "cache_policy": find_cache(&args.cache_policy)? => spec.cache_policy;
        "cache_object_limit": args.cache_object_limit => spec.cache_object_limit;
        "arrivals": args.arrivals => spec.arrivals;
        "service": args.service => spec.service;
        "front_ends": args.front_ends => spec.front_ends;
        "dealing": args.dealing => spec.dealing;
        "tables": args.tables => spec.tables;
        "load_information": LoadInformationChoice::list(&args.load_information.join(","))? => spec.load_information;
        "partitions": args.partitions.clone() => spec.partitions;
        "hop": args.hop => spec.hop;
        "exchange_interval": args.exchange_interval => spec.exchange_interval;
        "hot_spots": args.hot_spots.clone() => spec.hot_spot;
        "speed": args.speed => spec.speed;
        "admission": args.admission => spec.admission;
        "warmup": args.warmup => spec.warmup;
        "faults": args.faults.clone() => spec.fault;
        "dynamic_share": args.dynamic_share => spec.dynamic_share;
        "classes": args.classes.clone() => spec.classes;
        "seed": args.seed => spec.seed;
        "format": args.read.format => spec.format;
        "fields": args.read.fields.clone() => spec.fields;
        "max_bad_ratio": args.read.max_bad_ratio => spec.max_bad_ratio;
        "include_all": args.read.include_all => spec.include_all;
        "strip_query": args.read.strip_query => spec.strip_query;
        "limit": args.read.limit => spec.limit;
        "decisions": args.decisions.clone() => output.decisions;
        "out": args.out.clone() => output.out;
        "force": args.force => output.force;
        "all_rows": args.all_rows => output.all_rows;
        "json": args.json => output.json;
        "timing": args.timing => output.timing;
        "jobs": args.jobs => output.jobs;
    }
    // Parameters are added to those of the file; later ones win.
    spec.set.extend(args.settings.iter().cloned());
    Ok((spec, output))
}

/// What tells the decisions of a run from those of others.
fn decision_label(s: &Scenario, several: bool) -> String {
    let loads = if several { format!("-{}", s.load_information.name) } else { String::new() };
    format!("{}-{}{loads}", s.strategy.name, s.backends)
}

fn find_cache(name: &str) -> Result<&'static CacheSpec, CliError> {
    plimsoll_cache::find(name).map_err(|e| CliError::Usage(e.to_string()))
}

/// Runs the command; `matches` tells which of `args` were given on the command line.
pub(crate) fn run(args: &Args, matches: Option<&ArgMatches>) -> Result<(), CliError> {
    let given = |id: &str| matches.and_then(|m| m.value_source(id)) == Some(ValueSource::CommandLine);
    let (spec, output) = specs(args, given)?;
    let of_file = |error: ScenarioError| match &args.scenario {
        Some(path) => scenario_file::blame(path, error, |option| given(option)),
        None => error.into(),
    };
    if output.decisions.as_deref() == Some(Path::new("-")) {
        return Err(CliError::Usage(
            "--decisions takes the name of a file; standard output holds the results".into(),
        ));
    }
    if spec.traces.is_empty() {
        return Err(CliError::Usage(
            "there is no trace: name one on the command line, or as `traces` in the scenario file".into(),
        ));
    }
    // Refuse impossible runs before reading a long trace.
    spec.scenarios(0).map_err(of_file)?;
    let data = ["runs.csv", "runs.parquet", "load.csv", "load.parquet"];
    let open = |dir: &PathBuf| OutDir::open(dir, "simulate", &data, output.force);
    let out = output.out.as_ref().map(open).transpose()?;
    let table = spec.classes.as_deref().map(class_file::read).transpose()?;
    let mut workload = input::workload(&spec.traces, &spec.read_options())?;
    if let (Some(table), Some(path)) = (table, &spec.classes) {
        class_file::classify(&mut workload, &table, path);
    }
    for warning in input::warnings(&workload.trace) {
        eprintln!("plimsoll: warning: {warning}");
    }
    let scenarios = spec.scenarios(workload.working_set_bytes()).map_err(of_file)?;
    let warnings = threshold_warnings(&scenarios).into_iter().chain(load_use_warnings(&spec));
    let warnings = warnings.chain(service_warning(&spec, &workload));
    for warning in warnings.chain(dealing_warning(&spec, &workload)) {
        eprintln!("plimsoll: warning: {warning}");
    }
    let labels: Vec<String> =
        scenarios.iter().map(|s| decision_label(s, spec.load_information.len() > 1)).collect();
    let create = |path: &PathBuf| output::DecisionFiles::create(path, &labels);
    let decisions = output.decisions.as_ref().map(create).transpose()?;
    let runs = execute(&output, &scenarios, &workload, decisions.as_ref())?;
    let too_late = too_late_warnings(&spec, &runs);
    for warning in &too_late {
        eprintln!("plimsoll: warning: {warning}");
    }
    let written = out.as_ref().map_or(Ok(()), |out| write_report(out, &workload, &spec, &runs, too_late));
    // Print results first, so that they survive a failure to write a file.
    print(&output, out.as_ref().filter(|_| written.is_ok()), &workload, &spec, &runs)?;
    written.and(decisions.map_or(Ok(()), |files| files.finish()))
}

fn print(
    to: &OutputSpec,
    out: Option<&OutDir>,
    workload: &Workload,
    spec: &ScenarioSpec,
    runs: &[Run],
) -> Result<(), CliError> {
    if to.json {
        return runs.iter().try_for_each(|run| output::print(&json_line(run)));
    }
    let mut notes = load_notes(workload, spec.arrivals);
    notes.extend(hardware_note(spec, runs).map(|note| format!("Hardware: {note}.")));
    let saturated = spec.arrivals == Arrivals::Closed;
    let view = TableView { width: output::width(), saturated, all_rows: to.all_rows };
    let mut text: String = notes.iter().map(|note| output::wrapped(note, view.width.into(), 2)).collect();
    if !text.is_empty() {
        text += "\n";
    }
    text += &runs_table(runs, view, output::more(out.is_some()));
    if let Some(sentence) = bottleneck(runs, saturated) {
        text += &format!("\n{}", output::wrapped(&sentence, view.width.into(), 0));
    }
    if let Some(out) = out {
        text += &format!("\n{}\n", out.told());
    }
    output::print(&text)
}

fn execute(
    how: &OutputSpec,
    scenarios: &[Scenario],
    workload: &Workload,
    decisions: Option<&output::DecisionFiles>,
) -> Result<Vec<Run>, CliError> {
    let bar = output::Bar::new(workload.trace.len() * scenarios.len() as u64);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(how.jobs.map_or(0, |jobs| jobs.clamp(1, scenarios.len())))
        .build()
        .map_err(|e| CliError::Failed(format!("cannot start the threads: {e}")))?;
    let started = Instant::now();
    let runs = pool.install(|| run_all(scenarios, workload, &bar, |i| decisions?.sink(i, workload)));
    bar.finish();
    let mut runs = runs?;
    if how.timing {
        let wall_s = started.elapsed().as_secs_f64();
        let all: u64 = runs.iter().map(|r| r.requests).sum();
        for run in &mut runs {
            // Runs share the CPUs, so the time of all runs is divided by their requests.
            run.requests_per_wall_s = Some(all as f64 / wall_s);
            run.wall_s = Some(wall_s * run.requests as f64 / all.max(1) as f64);
        }
    }
    Ok(runs)
}

fn write_report(
    out: &OutDir,
    workload: &Workload,
    spec: &ScenarioSpec,
    runs: &[Run],
    too_late: Vec<String>,
) -> Result<(), CliError> {
    let context = RunsContext {
        trace: workload.name.clone(),
        command: output::command_line(),
        version: format!("plimsoll {}", env!("CARGO_PKG_VERSION")),
        load_notes: load_notes(workload, spec.arrivals),
        warnings: input::warnings(&workload.trace).into_iter().chain(too_late).collect(),
        saturated: spec.arrivals == Arrivals::Closed,
        policies: strategy_names(),
    };
    let report = runs_report("Which policy serves this trace best?", &context, runs);
    let report = match hardware_note(spec, runs) {
        Some(note) => report.fact("Back-ends have", note),
        None => report,
    };
    out.write(report)?;
    let data =
        |result: Result<(), plimsoll_report::DataError>| result.map_err(|e| CliError::Failed(e.to_string()));
    data(write_runs_csv(out.file("runs.csv"), runs))?;
    data(write_runs_parquet(out.file("runs.parquet"), runs))?;
    data(write_load_csv(out.file("load.csv"), runs))?;
    data(write_load_parquet(out.file("load.parquet"), runs))
}

#[cfg(test)]
mod tests;
