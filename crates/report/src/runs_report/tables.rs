//! The report's tables of details.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    format::{NOT_APPLICABLE, bytes, count, duration, number, or_dash, percent_number},
    report::Section,
    run::{Run, Summary},
    runs_report::{groups::on_backends, plots::PERCENTILES},
    table::Table,
    table_column::{Align, TableColumn},
};

/// Longer tables of details are folded.
const MOST_ROWS: usize = 16;

/// A section with the response time and slowdown of every run, folded where there are many.
pub(super) fn delays(section: Section, runs: &[Run]) -> Section {
    let table = delay_table(runs);
    match table.rows.len() > MOST_ROWS {
        true => section.folded_table("Delays of every run", table),
        false => section.table(table),
    }
}

fn delay_table(runs: &[Run]) -> Table {
    let column = |title: &str, meaning: &str| TableColumn::new(title, Align::Right).meaning(meaning);
    let mut columns = vec![TableColumn::new("policy", Align::Left), column("back-ends", "")];
    let shares = "response time that the others of 100 (or 1,000) requests exceeded";
    columns.extend(PERCENTILES.iter().map(|(label, _)| match *label {
        "mean" => column(label, "mean response time"),
        "max" => column(label, "longest response time"),
        _ => column(label, shares),
    }));
    let slowdown = "response time over the time alone on an idle back-end with the document cached; no unit";
    columns.extend(["slowdown, mean", "slowdown, p99"].map(|label| column(label, slowdown)));
    let mut table = Table::new(columns);
    for run in runs {
        let mut cells = vec![run.policy.clone(), count(run.backends as u64)];
        let delay = |pick: &fn(&Summary) -> f64| or_dash(run.response_time_s.as_ref().map(pick), duration);
        cells.extend(PERCENTILES.iter().map(|(_, pick)| delay(pick)));
        cells.push(or_dash(run.slowdown.map(|summary| summary.mean), number));
        cells.push(or_dash(run.slowdown.map(|summary| summary.p99), number));
        table.row(cells);
    }
    table
}

/// What each back-end did, one folded table per run.
pub(super) fn backends(runs: &[Run]) -> Section {
    let mut section = Section::new("Back-ends");
    for run in runs.iter().filter(|run| !run.per_backend.is_empty()) {
        let column = |title: &str, meaning: &str| TableColumn::new(title, Align::Right).meaning(meaning);
        let mut table = Table::new([
            column("back-end", ""),
            column("requests", "requests answered"),
            column("miss%", "disk reads per 100 requests"),
            column("idle%", "time with a load below 40 % of t_low"),
            column("CPU%", "time that the CPUs were busy"),
            column("disk%", "time that the disks were busy"),
            column("load", "requests assigned and not completed, mean over time"),
        ]);
        for (index, backend) in run.per_backend.iter().enumerate() {
            table.row([
                index.to_string(),
                count(backend.requests),
                or_dash(backend.miss_ratio, percent_number),
                percent_number(backend.idle_ratio),
                percent_number(backend.cpu),
                or_dash(backend.disk, percent_number),
                number(backend.mean_load),
            ]);
        }
        let line = format!("{} {}: {}", run.policy.clone(), on_backends(run.backends), spread(run));
        section = section.folded_table(line, table);
    }
    section
}

/// How evenly the requests were spread, in words.
fn spread(run: &Run) -> String {
    let requests = || run.per_backend.iter().map(|backend| backend.requests);
    let (least, most) = (requests().min().unwrap_or(0), requests().max().unwrap_or(0));
    format!("{} to {} requests each", count(least), count(most))
}

/// The policies' own counters, one row per run.
pub(super) fn counters(runs: &[Run]) -> Section {
    let section = Section::new("Policy counters");
    let names: BTreeSet<&str> =
        runs.iter().flat_map(|run| run.policy_stats.keys().map(String::as_str)).collect();
    if names.is_empty() {
        return section;
    }
    let mut columns = vec![("policy", Align::Left), ("back-ends", Align::Right)];
    columns.extend(names.iter().map(|name| (*name, Align::Right)));
    let mut table = Table::new(columns);
    for run in runs.iter().filter(|run| !run.policy_stats.is_empty()) {
        let mut cells = vec![run.policy.clone(), count(run.backends as u64)];
        cells.extend(names.iter().map(|name| or_dash(run.policy_stats.get(*name).copied(), number)));
        table.row(cells);
    }
    match table.rows.len() > MOST_ROWS {
        true => section.folded_table("Counters of every run", table),
        false => section.table(table),
    }
}

/// Every parameter with its values, and the runs that had them where not all runs did.
pub(super) fn parameters(runs: &[Run]) -> Section {
    let section = Section::new("Parameters");
    let mut users: BTreeMap<(&str, String), Vec<&Run>> = BTreeMap::new();
    for run in runs {
        for (key, value) in &run.params {
            users.entry((key, value_text(value))).or_default().push(run);
        }
    }
    if users.is_empty() {
        return section;
    }
    let mut table = Table::new([("parameter", Align::Left), ("value", Align::Right), ("runs", Align::Left)]);
    table.reflows = true;
    for ((key, value), users) in users {
        let value = if key.ends_with("_bytes") { sized(&value) } else { value };
        table.row([key.to_owned(), value, users_text(&users, runs)]);
    }
    section.table(table)
}

/// Which runs, as short as is exact: all, all of some policies, or each by its number of back-ends.
fn users_text(users: &[&Run], runs: &[Run]) -> String {
    if users.len() == runs.len() {
        return "all".to_owned();
    }
    let mut texts: Vec<String> = Vec::new();
    for user in users {
        let same = |run: &&Run| run.policy == user.policy;
        let whole_policy = users.iter().copied().filter(same).count() == runs.iter().filter(same).count();
        let text = if whole_policy {
            user.policy.clone()
        } else {
            format!("{} {}", user.policy.clone(), on_backends(user.backends))
        };
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}

/// A number of bytes as a size.
fn sized(value: &str) -> String {
    value.parse().map_or_else(|_| value.to_owned(), bytes)
}

fn value_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => NOT_APPLICABLE.to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
