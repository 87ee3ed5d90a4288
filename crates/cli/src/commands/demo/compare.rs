//! `plimsoll demo --compare`: beside HAProxy and nginx, cell by cell, with what the simulator says of each.

use plimsoll_experiments::block_on;
use plimsoll_experiments::compare::{
    CELLS, CompareCell, CompareTimes, ComparedSystem, find_peer, measure_system, simulated_rps, systems,
};
use plimsoll_report::format::{duration, number};
use plimsoll_testbed::machine::CpuTime;
use serde_json::json;

use super::args::{Args, WARMUP_SHARE};
use super::compare_report::{ComparedCell, ComparedOutcome, cells_report, cells_table, verdict};
use crate::error::CliError;
use crate::out_dir::OutDir;
use crate::output;

/// To start and stop a system, in seconds.
const OVERHEAD_S: f64 = 0.7;
/// The results, one JSON object a line.
const LINES: &str = "cells.jsonl";

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let wanted = |cell: &&CompareCell| args.cell.is_empty() || args.cell.contains(&cell.number);
    let cells: Vec<&'static CompareCell> = CELLS.iter().filter(wanted).collect();
    let systems = systems(&args.compare);
    // Say what is missing before a measurement of minutes begins.
    for &program in &args.compare {
        find_peer(program)?;
    }
    let times = CompareTimes {
        warmup_s: WARMUP_SHARE * args.measured_s(),
        measured_s: args.measured_s(),
        speed: args.speed,
        seed: args.seed,
    };
    let out = OutDir::open(&args.directory(), "demo", &[LINES], args.force)?;
    for line in setting(&cells, &systems, &times) {
        eprint!("{}", output::wrapped(&line, output::width().into(), 2));
    }
    let compared = block_on(measure(&cells, &systems, &times, args.json))?;
    for warning in warnings(&compared) {
        eprintln!("plimsoll: warning: {warning}");
    }
    let written = write(args, &out, &compared, &setting(&cells, &systems, &times));
    // As JSON each cell was printed when it ended.
    if !args.json {
        let told = written.is_ok().then(|| out.told());
        output::print(&in_words(&compared, told))?;
    }
    written
}

/// The setting, in words.
fn setting(cells: &[&'static CompareCell], systems: &[ComparedSystem], times: &CompareTimes) -> Vec<String> {
    let runs = (cells.len() * systems.len()) as f64;
    let all_s = runs * (times.warmup_s + times.measured_s + OVERHEAD_S);
    vec![
        format!(
            "Cells: {}, with {} balancers each: {:.1} s of warm-up and {} s measured, {} in all. Ctrl-C ends it.",
            cells.len(),
            systems.len(),
            times.warmup_s,
            times.measured_s,
            duration(all_s)
        ),
        format!(
            "Origins and clients are in this process, by HTTP over loopback; memories are small, and {}.",
            plimsoll_experiments::loopback::hardware(times.speed)
        ),
    ]
}

async fn measure(
    cells: &[&'static CompareCell],
    systems: &[ComparedSystem],
    times: &CompareTimes,
    json: bool,
) -> Result<Vec<ComparedCell>, CliError> {
    let mut compared = Vec::new();
    for cell in cells {
        eprintln!("cell {}: {} ({})", cell.number, cell.title(), cell.loser.words());
        let policies: Vec<&str> = systems.iter().map(|system| system.simulated_as).collect();
        let simulated = simulated_rps(cell, &policies, times)?;
        let mut outcomes = Vec::new();
        for (system, simulated_rps) in systems.iter().zip(simulated) {
            let before = CpuTime::now();
            let measured = measure_system(cell, system, times, |_| ()).await?;
            let machine_busy =
                CpuTime::now().zip(before).and_then(|(after, before)| after.busy_since(before));
            eprintln!(
                "  {:<24} {:>7} requests/s, simulated {:>7}",
                system.name,
                number(measured.trial.summary.throughput_rps()),
                number(simulated_rps)
            );
            outcomes.push(ComparedOutcome { measured, simulated_rps, machine_busy });
        }
        let of = ComparedCell { cell, outcomes };
        if json {
            lines(&of).iter().try_for_each(|line| output::print(line))?;
        }
        compared.push(of);
    }
    Ok(compared)
}

/// Where the machine rather than the emulated hardware may have been the limit, or requests failed.
fn warnings(compared: &[ComparedCell]) -> Vec<String> {
    let mut out = Vec::new();
    let all =
        || compared.iter().flat_map(|of| of.outcomes.iter().map(move |outcome| (of.cell.number, outcome)));
    let busy = all().filter(|(_, outcome)| outcome.machine_busy.is_some_and(|busy| busy > 0.9)).count();
    if busy > 0 {
        out.push(format!(
            "in {busy} of {} measurements the CPUs of this machine were busy more than 90 % of the time: they, not the emulated hardware, may have \
             been the limit; give a smaller --speed, or end other programs",
            all().count()
        ));
    }
    for (cell, outcome) in all() {
        let summary = &outcome.measured.trial.summary;
        if summary.failed() > 0 {
            out.push(format!("cell {cell}, {}: requests failed: {summary}", outcome.measured.system.name));
        }
    }
    out
}

/// One JSON object for each system of a cell.
fn lines(of: &ComparedCell) -> Vec<String> {
    let line = |outcome: &ComparedOutcome| {
        let ComparedOutcome { measured, simulated_rps, machine_busy } = outcome;
        let summary = &measured.trial.summary;
        json!({
            "cell": of.cell.number,
            "loses": of.cell.loser.words(),
            "workload": of.cell.workload,
            "backends": of.cell.backends,
            "under_way_each": of.cell.under_way,
            "cache_bytes": of.cell.cache_bytes,
            "system": measured.system.name,
            "simulated_as": measured.system.simulated_as,
            "throughput_rps": summary.throughput_rps(),
            "simulated_rps": simulated_rps,
            "miss_ratio": summary.miss_ratio(),
            "response_mean_s": summary.mean_latency().as_secs_f64(),
            "response_p99_s": summary.quantile(0.99).as_secs_f64(),
            "completed": summary.succeeded,
            "failed": summary.failed(),
            "machine_cpu": machine_busy,
        })
        .to_string()
    };
    of.outcomes.iter().map(line).collect()
}

fn in_words(compared: &[ComparedCell], told: Option<String>) -> String {
    let width = output::width();
    let mut table = cells_table(compared);
    let dropped = table.drop_columns(width);
    let mut text = format!("{}\n", table.to_text_within(width));
    let mut say = |line: &str| text += &output::wrapped(line, width.into(), 2);
    say(&legend(&dropped));
    compared.iter().filter_map(verdict).for_each(|line| say(&line));
    if let Some(told) = told {
        text += &format!("\n{told}\n");
    }
    text
}

/// What the columns mean that were not dropped.
fn legend(dropped: &[String]) -> String {
    let all = [
        ("req/s", "measured"),
        ("of best%", "share of the best system of the cell"),
        ("miss%", "disk reads per 100 requests"),
        ("p99", "response time that one request of 100 exceeded"),
        (
            "simulated",
            "the simulator's req/s for the policy that stands for it, and its share of the best one there",
        ),
    ];
    let shown = all.iter().filter(|(title, _)| !dropped.iter().any(|other| other == title));
    let meanings: Vec<String> = shown.map(|(title, meaning)| format!("{title}: {meaning}")).collect();
    format!("{}.", meanings.join("; "))
}

fn write(args: &Args, out: &OutDir, compared: &[ComparedCell], setting: &[String]) -> Result<(), CliError> {
    let mut report = cells_report(compared);
    for line in setting {
        report = report.fact("Setting", line);
    }
    for warning in warnings(compared) {
        report = report.warning(warning);
    }
    report = report
        .footer("Command", output::command_line())
        .footer("Version", format!("plimsoll {}", env!("CARGO_PKG_VERSION")))
        .footer("Seed", args.seed.to_string());
    out.write(report)?;
    let all: Vec<String> = compared.iter().flat_map(lines).collect();
    output::write(&out.file(LINES), &(all.join("\n") + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_does_not_have_is_not_explained() {
        assert!(legend(&[]).contains("; miss%: disk reads per 100 requests; p99: "));
        let shorter = legend(&["miss%".to_owned(), "p99".to_owned()]);
        assert!(shorter.starts_with("req/s: measured; of best%: ") && !shorter.contains("p99"), "{shorter}");
        assert!(!shorter.contains("disk reads"), "{shorter}");
    }
}
