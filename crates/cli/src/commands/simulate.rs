//! `plimsoll simulate`: a trace through policies on a simulated cluster.

use std::path::{Path, PathBuf};
use std::time::Instant;

use plimsoll_report::{
    Run, RunsContext, json_line, runs_report, runs_table, write_load_csv, write_load_parquet, write_runs_csv,
    write_runs_parquet,
};
use plimsoll_sim::{Arrivals, Fault};
use plimsoll_studies::Workload;
use plimsoll_studies::matrix::run_all;
use plimsoll_studies::scenario::{Admission, Scenario, Strategy, check, find_model, paper_name};

use crate::error::CliError;
use crate::input::{self, ReadArgs};
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
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<String>,

    /// Take options and traces from this TOML file; what is on the command line wins
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,

    /// Policies to compare, by name or alias (see `plimsoll policies`); `wrr_gms` is WRR with global memory
    #[arg(short, long, value_delimiter = ',', default_value = "wrr,lard,lard_r")]
    policy: Vec<String>,

    /// Numbers of back-ends to try
    #[arg(short, long, value_delimiter = ',', default_value = "8", value_parser = values::backends)]
    backends: Vec<usize>,

    /// Back-end model (see `plimsoll models`)
    #[arg(short, long, default_value = "lard")]
    model: String,

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
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = values::setting)]
    settings: Vec<(String, String)>,

    /// How requests arrive: closed (saturated), trace (at their times) or poisson:RATE
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

    /// Do something to a back-end: down:B@T, up:B@T, drain:B@T or weight=W:B@T (T in seconds); may be repeated
    #[arg(long = "fault", value_name = "WHAT:B@T", value_parser = values::fault)]
    faults: Vec<Fault>,

    /// Make this share of the requests dynamic, except those for 100 KB or more
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = values::share)]
    dynamic_share: f64,

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

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if args.decisions.as_deref() == Some(Path::new("-")) {
        return Err(CliError::Usage(
            "--decisions takes the name of a file; standard output holds the results".into(),
        ));
    }
    if args.scenario.is_some() {
        // The first one has been replaced by what its file says.
        return Err(CliError::Usage("--scenario may be given once".into()));
    }
    let mut scenarios = scenarios(args)?;
    if let Some(dir) = &args.out {
        output::make_dir(dir)?;
    }
    let workload = input::workload(&args.traces, &args.read, args.seed)?;
    for warning in input::warnings(&workload.trace.report) {
        eprintln!("plimsoll: warning: {warning}");
    }
    let cache_bytes = args.cache.bytes(workload.working_set_bytes());
    scenarios.iter_mut().for_each(|scenario| scenario.cache_bytes = cache_bytes);
    let labels: Vec<String> =
        scenarios.iter().map(|s| format!("{}-{}", s.strategy.name, s.backends)).collect();
    let create = |path: &PathBuf| output::DecisionFiles::create(path, &labels);
    let decisions = args.decisions.as_ref().map(create).transpose()?;
    let runs = execute(args, &scenarios, &workload, decisions.as_ref())?;
    if let Some(dir) = &args.out {
        write_report(dir, &workload, &runs)?;
    }
    print(args, &workload, &runs)?;
    // Results first: a decision file that could not be written does not take them away.
    decisions.map_or(Ok(()), |files| files.finish())
}

fn print(args: &Args, workload: &Workload, runs: &[Run]) -> Result<(), CliError> {
    if args.json {
        return runs.iter().try_for_each(|run| output::print(&json_line(run)));
    }
    let mut text = input::notes(&workload.trace.report).join("\n");
    if !text.is_empty() {
        text += "\n\n";
    }
    text += &runs_table(runs);
    if let Some(dir) = &args.out {
        text += &format!("\nReport: {}\n", dir.join("report.html").display());
    }
    output::print(&text)
}

/// Every policy on every number of back-ends, policies in the order given within each number. A cache in per cent gets its
/// bytes when the trace has been read.
fn scenarios(args: &Args) -> Result<Vec<Scenario>, CliError> {
    let model = find_model(&args.model)?;
    let cache = plimsoll_cache::find(&args.cache_policy).map_err(|e| CliError::Usage(e.to_string()))?;
    let arrivals = match (args.arrivals, args.speed) {
        (Arrivals::Trace { .. }, Some(speed)) => Arrivals::Trace { speed },
        (arrivals, None) => arrivals,
        (_, Some(_)) => return Err(CliError::Usage("--speed goes with --arrivals trace".into())),
    };
    let mut faults = args.faults.clone();
    faults.sort_by_key(|f| f.at);
    let mut strategies: Vec<Strategy> = Vec::new();
    for name in &args.policy {
        let strategy = Strategy::find(name)?;
        if strategies.iter().all(|s| s.name != strategy.name) {
            strategies.push(strategy);
        }
    }
    let mut counts: Vec<usize> = Vec::new();
    for &backends in &args.backends {
        if !counts.contains(&backends) {
            counts.push(backends);
        }
    }
    let mut scenarios = Vec::new();
    for backends in counts {
        for &strategy in &strategies {
            scenarios.push(Scenario {
                settings: args.settings.clone(),
                model,
                arrivals,
                admission: args.admission,
                cache,
                cache_bytes: args.cache.bytes(0),
                cache_object_limit_bytes: args.cache_object_limit,
                dynamic_share: args.dynamic_share,
                faults: faults.clone(),
                warmup: args.warmup,
                ..Scenario::lard(strategy, backends, args.seed)
            });
        }
    }
    check(&scenarios)?;
    Ok(scenarios)
}

fn execute(
    args: &Args,
    scenarios: &[Scenario],
    workload: &Workload,
    decisions: Option<&output::DecisionFiles>,
) -> Result<Vec<Run>, CliError> {
    let bar = output::Bar::new(workload.trace.len() * scenarios.len() as u64);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.map_or(0, |jobs| jobs.clamp(1, scenarios.len())))
        .build()
        .map_err(|e| CliError::Failed(format!("cannot start the threads: {e}")))?;
    let started = Instant::now();
    let runs = pool.install(|| run_all(scenarios, workload, &bar, |i| decisions?.sink(i, workload)));
    bar.finish();
    let mut runs = runs?;
    if args.timing {
        let wall_s = started.elapsed().as_secs_f64();
        let all: u64 = runs.iter().map(|r| r.requests).sum();
        for run in &mut runs {
            // Runs share the CPUs; the time is that of all of them, divided by their requests.
            run.requests_per_wall_s = Some(all as f64 / wall_s);
            run.wall_s = Some(wall_s * run.requests as f64 / all.max(1) as f64);
        }
    }
    Ok(runs)
}

fn write_report(dir: &Path, workload: &Workload, runs: &[Run]) -> Result<(), CliError> {
    let context = RunsContext {
        trace: workload.name.clone(),
        command: output::command_line(),
        version: format!("plimsoll {}", env!("CARGO_PKG_VERSION")),
        load_notes: input::notes(&workload.trace.report),
        warnings: input::warnings(&workload.trace.report),
        labels: runs.iter().map(|run| (run.policy.clone(), paper_name(&run.policy).to_owned())).collect(),
    };
    let report = runs_report("Which policy serves this trace best?", &context, runs);
    output::write(&dir.join("report.html"), &report.to_html())?;
    let data =
        |result: Result<(), plimsoll_report::DataError>| result.map_err(|e| CliError::Failed(e.to_string()));
    data(write_runs_csv(dir.join("runs.csv"), runs))?;
    data(write_runs_parquet(dir.join("runs.parquet"), runs))?;
    data(write_load_csv(dir.join("load.csv"), runs))?;
    data(write_load_parquet(dir.join("load.parquet"), runs))
}
