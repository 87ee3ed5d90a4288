//! `plimsoll demo`: policies on a real cluster in this process, side by side.

use plimsoll_experiments::{block_on, loopback};
use plimsoll_report::{
    Run, RunsContext, TableView, json_line, runs_report, runs_table, write_runs_csv, write_runs_parquet,
};
use plimsoll_studies::scenario::{Strategy, strategy_names};
use plimsoll_testbed::trial::{self, Trial, TrialConfig};
use plimsoll_testbed::workload::RequestSequence;

use crate::error::CliError;
use crate::out_dir::OutDir;
use crate::output;

mod args;
mod compare;
mod compare_report;
mod live;

pub(crate) use args::Args;
use args::WARMUP_SHARE;
use live::Live;

/// A policy with its measurements.
struct MeasuredPolicy {
    strategy: Strategy,
    trial: Trial,
    run: Run,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if !args.compare.is_empty() {
        return compare::run(args);
    }
    let strategies = strategies(&args.policy)?;
    let configs: Vec<TrialConfig> = strategies.iter().map(|&strategy| config(args, strategy)).collect();
    loopback::allow_sockets(configs.iter().map(|c| c.connections).max().unwrap_or(0))?;
    let workload = loopback::workload(args.seed)?;
    let out = OutDir::open(&args.directory(), "demo", &["runs.csv", "runs.parquet"], args.force)?;
    for line in setting(args, &configs) {
        eprint!("{}", output::wrapped(&line, output::width().into(), 2));
    }
    let names = strategies.iter().map(|s| s.name.to_owned()).collect();
    let measured = block_on(measure(&strategies, &configs, &workload, Live::new(names)))?;
    let warnings = warnings(&measured);
    for warning in &warnings {
        eprintln!("plimsoll: warning: {warning}");
    }
    write(args, &out, &configs, &measured, warnings)?;
    if args.json {
        return measured.iter().try_for_each(|m| output::print(&json(m)));
    }
    output::print(&format!("{}\n{}\n", in_words(args, &measured), out.told()))
}

fn strategies(names: &[String]) -> Result<Vec<Strategy>, CliError> {
    let mut strategies: Vec<Strategy> = Vec::new();
    for name in names {
        let strategy = Strategy::find(name)?;
        if strategy.global_memory {
            return Err(CliError::Usage(format!(
                "{name} needs a memory that all back-ends share, which only the simulator has; take a policy of \
                 `plimsoll policies`"
            )));
        }
        if strategies.iter().all(|s| s.name != strategy.name) {
            strategies.push(strategy);
        }
    }
    Ok(strategies)
}

fn config(args: &Args, strategy: Strategy) -> TrialConfig {
    TrialConfig {
        warmup_s: WARMUP_SHARE * args.measured_s(),
        measured_s: args.measured_s(),
        ..loopback::config(strategy.name, usize::from(args.backends), args.seed, args.speed)
    }
}

/// The setting, in words.
fn setting(args: &Args, configs: &[TrialConfig]) -> Vec<String> {
    let (connections, warmup_s) = configs.first().map_or((0, 0.0), |c| (c.connections, c.warmup_s));
    vec![
        format!(
            "{} back-ends, a front-end and {connections} clients in this process, by HTTP over loopback. Contents: the \
             workload `rice` of the LARD study at 1/{} of its size, memory caches of {:.1} MiB.",
            args.backends,
            loopback::SCALE,
            loopback::CACHE_BYTES as f64 / f64::from(1 << 20)
        ),
        format!("Emulated: {}.", loopback::hardware(args.speed)),
        format!(
            "Each policy: {warmup_s:.1} s of warm-up, not counted, then {} s measured.",
            args.measured_s()
        ),
    ]
}

async fn measure(
    strategies: &[Strategy],
    configs: &[TrialConfig],
    workload: &RequestSequence,
    mut live: Live,
) -> Result<Vec<MeasuredPolicy>, CliError> {
    let mut measured = Vec::new();
    for (strategy, config) in strategies.iter().zip(configs) {
        live.begin(config.warmup_s, config.warmup_s + config.measured_s);
        let trial = trial::run(config, workload, |so_far| live.tell(so_far, false)).await?;
        live.tell(&trial.summary, true);
        if trial.summary.succeeded == 0 {
            return Err(CliError::Failed(format!(
                "no request was answered under {}: {}",
                strategy.name, trial.summary
            )));
        }
        let run = loopback::to_run(*strategy, config, &trial);
        measured.push(MeasuredPolicy { strategy: *strategy, trial, run });
    }
    live.end();
    Ok(measured)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

fn warnings(measured: &[MeasuredPolicy]) -> Vec<String> {
    let mut warnings = Vec::new();
    for m in measured {
        let name = m.strategy.name;
        if m.trial.machine_was_bottleneck() {
            warnings.push(format!(
                "under {name} the CPUs of this machine were busy {} of the time: they, not the emulated hardware, may \
                 have limited the throughput; give a smaller --speed or fewer --backends, or end other programs",
                percent(m.trial.machine_busy)
            ));
        }
        if m.trial.summary.failed() > 0 {
            warnings.push(format!("under {name} requests failed: {}", m.trial.summary));
        }
    }
    warnings
}

/// The results as text.
fn in_words(args: &Args, measured: &[MeasuredPolicy]) -> String {
    let runs: Vec<Run> = measured.iter().map(|m| m.run.clone()).collect();
    let view = TableView { width: output::width(), saturated: true, all_rows: args.all_rows };
    let mut text = format!("{}\n", runs_table(&runs, view, output::more(true)));
    let mut say = |line: &str| text += &output::wrapped(line, view.width.into(), 2);
    if let [first, .., last] = measured {
        let ratio = last.run.throughput_rps / first.run.throughput_rps;
        let (last, first) = (last.strategy.name, first.strategy.name);
        say(&format!("{last} served {ratio:.2} times as many requests/s as {first}."));
    }
    for m in measured {
        say(&format!(
            "{}: miss ratio {} by the clients (X-Cache), {} by the origins' own counts; this machine's CPUs busy {} of \
             the time.",
            m.strategy.name,
            percent(m.run.miss_ratio),
            percent(m.trial.origin_miss_ratio),
            percent(m.trial.machine_busy)
        ));
    }
    say("CPU% and disk% are of the emulated hardware. Warm-up is not counted.");
    text
}

/// JSON with the keys of a simulated run, and `live` with further values of a live run.
fn json(m: &MeasuredPolicy) -> String {
    let Ok(serde_json::Value::Object(mut object)) = serde_json::from_str(&json_line(&m.run)) else {
        // A run is an object.
        return json_line(&m.run);
    };
    let live = serde_json::json!({
        "origin_miss_ratio": m.trial.origin_miss_ratio,
        "machine_cpu": m.trial.machine_busy,
        "warmup_requests": m.trial.warmup_requests,
        "body_bytes": m.trial.summary.bytes,
    });
    object.insert("live".to_owned(), live);
    serde_json::Value::Object(object).to_string()
}

fn write(
    args: &Args,
    out: &OutDir,
    configs: &[TrialConfig],
    measured: &[MeasuredPolicy],
    warnings: Vec<String>,
) -> Result<(), CliError> {
    let runs: Vec<Run> = measured.iter().map(|m| m.run.clone()).collect();
    let context = RunsContext {
        trace: format!("rice at 1/{} of its size, by HTTP over loopback", loopback::SCALE),
        command: output::command_line(),
        version: format!("plimsoll {}", env!("CARGO_PKG_VERSION")),
        load_notes: setting(args, configs),
        warnings,
        saturated: true,
        policies: strategy_names(),
    };
    let report = runs_report("Policies on live traffic", &context, &runs);
    let facts = measured.iter().fold(report, |report, m| {
        let both = format!("{} / {}", percent(m.run.miss_ratio), percent(m.trial.origin_miss_ratio));
        let name = m.strategy.name;
        report
            .fact(format!("{name}: miss ratio by clients / by origins"), both)
            .fact(format!("{name}: CPUs of this machine busy"), percent(m.trial.machine_busy))
    });
    out.write(facts)?;
    write_runs_csv(out.file("runs.csv"), &runs)
        .and_then(|()| write_runs_parquet(out.file("runs.parquet"), &runs))
        .map_err(|e| CliError::Failed(e.to_string()))
}
