//! The table of runs that `plimsoll simulate` prints.

use crate::{
    format::{NOT_APPLICABLE, count, duration, number, or_dash, percent_number},
    run::{Run, Summary},
    table::{Align, Table},
};

/// The runs as text for a terminal; see [`summary_table`].
pub fn runs_table(runs: &[Run]) -> String {
    summary_table(runs).to_text()
}

/// The runs as a table: throughput, miss, joined and idle ratio, delays, busy shares, and the throughput over that of
/// the first run's policy on the same number of back-ends; and the requests not answered, when there are any.
pub fn summary_table(runs: &[Run]) -> Table {
    let first_policy = runs.first().map_or_else(|| "first".to_owned(), |run| run.policy.clone());
    let ratio = format!("× {}", if first_policy.chars().count() <= 8 { &first_policy } else { "first" });
    let mut header: Vec<(&str, Align)> = vec![("policy", Align::Left)];
    let columns =
        ["back-ends", "req/s", "miss %", "joined %", "idle %", "mean delay", "p50", "p99", "CPU %", "disk %"];
    header.extend(columns.map(|column| (column, Align::Right)));
    header.push((&ratio, Align::Right));
    // Figures over answered requests mislead when many were not answered, so show how many. Omit the column
    // if all were.
    let failures = runs.iter().any(|run| run.unanswered() > 0);
    if failures {
        header.push(("not answered", Align::Right));
    }
    let mut table = Table::new(header);
    for run in runs {
        let delay = |pick: fn(&Summary) -> f64| or_dash(run.response_time_s.as_ref().map(pick), duration);
        let mut cells = vec![
            run.policy.clone(),
            count(run.backends as u64),
            number(run.throughput_rps),
            or_dash(run.miss_ratio, percent_number),
            or_dash(run.joined_ratio, percent_number),
            percent_number(run.idle_ratio),
            delay(|summary| summary.mean),
            delay(|summary| summary.p50),
            delay(|summary| summary.p99),
            percent_number(run.utilization.cpu),
            or_dash(run.utilization.disk, percent_number),
            speedup(run, runs).map_or_else(|| NOT_APPLICABLE.to_owned(), |ratio| format!("{ratio:.2}")),
        ];
        if failures {
            cells.push(count(run.unanswered()));
        }
        table.row(cells);
    }
    table
}

/// Throughput of a run over that of the first run's policy with the same back-ends and the same seed.
fn speedup(run: &Run, runs: &[Run]) -> Option<f64> {
    let first = runs.first()?;
    let peers = || runs.iter().filter(|other| other.policy == first.policy && other.backends == run.backends);
    let base = peers().find(|other| other.seed == run.seed).or_else(|| peers().next())?;
    let ratio = run.throughput_rps / base.throughput_rps;
    ratio.is_finite().then_some(ratio)
}
