//! The comparison with other policies, as text and as JSON.

use plimsoll_decisions::{Comparison, Other, Score};
use plimsoll_report::format::{bytes, count, number, or_dash, percent_number};
use plimsoll_report::{Align, Table, TableColumn};
use serde_json::{Value, json};

use super::proof::{describe, settings, started};
use crate::output;

pub(super) fn text(run: usize, c: &Comparison) -> String {
    let start = if c.whole { "" } else { "; its start is missing, so the caches start empty in between" };
    let mut text = format!(
        "Run {}: live {}{start}\nPredicted misses: {} of {} per back-end, empty at the start\n\n",
        run + 1,
        describe(&c.header),
        c.cache.name,
        bytes(c.cache_bytes as f64),
    );
    let width = output::width();
    let mut table = summary(c);
    let dropped = table.drop_columns(width);
    text += &table.to_text();
    if !dropped.is_empty() {
        text += &format!("\nNo room for {}: --json has them.\n", dropped.join(", "));
    }
    text += "\nRequests by back-end\n";
    for table in by_backend(c, width.into()) {
        text += "\n";
        text += &table.to_text();
    }
    text
}

fn summary(c: &Comparison) -> Table {
    // Those that say least about the choice of a policy go first where there is no room.
    let columns = [
        ("requests", 0),
        ("moved%", 0),
        ("refused", 2),
        ("miss%", 0),
        ("joined%", 3),
        ("peak", 0),
        ("load peak", 1),
    ];
    let numbers = columns.map(|(title, rank)| TableColumn::new(title, Align::Right).rank(rank));
    let mut table = Table::new(std::iter::once(TableColumn::new("policy", Align::Left)).chain(numbers));
    let mut row = |name: &str, score: &Score, moved: Option<u64>, refused: u64| {
        let of = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        table.row([
            name.to_owned(),
            count(score.requests),
            or_dash(moved.and_then(|moved| of(moved, c.live.requests)), percent_number),
            count(refused),
            or_dash(score.miss_ratio, percent_number),
            or_dash(score.joined_ratio(), percent_number),
            or_dash(score.imbalance, number),
            or_dash(score.load_imbalance, number),
        ]);
    };
    row(&format!("{} (live)", c.header.policy), &c.live, None, 0);
    for other in &c.others {
        row(&other.policy, &other.score, Some(other.moved), other.refused);
    }
    table
}

/// The requests of each back-end under each policy: as many policies beside one another as `width` has room for.
fn by_backend(c: &Comparison, width: usize) -> Vec<Table> {
    let live = (format!("{} (live)", c.header.policy), &c.live);
    let all: Vec<_> = std::iter::once(live)
        .chain(c.others.iter().map(|other| (other.policy.clone(), &other.score)))
        .collect();
    let names = c.names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("back-end".len());
    let mut tables = Vec::new();
    let mut rest = &all[..];
    while !rest.is_empty() {
        let mut used = names;
        let fits = |(name, _): &&(String, &Score)| {
            used += name.len().max(MOST_COUNT) + GAP;
            used <= width
        };
        let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
        tables.push(one_by_backend(c, now));
        rest = later;
    }
    tables
}

/// Between two columns.
const GAP: usize = 2;
/// The width of the numbers of requests that a table is made for.
const MOST_COUNT: usize = "999,999,999".len();

fn one_by_backend(c: &Comparison, policies: &[(String, &Score)]) -> Table {
    let titles = policies.iter().map(|(name, _)| (name.clone(), Align::Right));
    let mut table = Table::new(std::iter::once(("back-end".to_owned(), Align::Left)).chain(titles));
    for (i, name) in c.names.iter().enumerate() {
        let counts = policies.iter().map(|(_, score)| count(score.per_backend.get(i).copied().unwrap_or(0)));
        table.row(std::iter::once(name.clone()).chain(counts));
    }
    table
}

/// One line for the live policy and one for each other.
pub(super) fn json(run: usize, c: &Comparison) -> Vec<String> {
    let live = object(run, c, &c.live, None);
    let others = c.others.iter().map(|other| object(run, c, &other.score, Some(other)));
    std::iter::once(live).chain(others).map(|value| value.to_string()).collect()
}

fn object(run: usize, c: &Comparison, score: &Score, other: Option<&Other>) -> Value {
    let share = |moved: u64| (c.live.requests > 0).then(|| moved as f64 / c.live.requests as f64);
    let per_backend: Vec<Value> = c
        .names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            json!({"name": name, "requests": score.per_backend.get(i), "mean_load": score.mean_load.get(i)})
        })
        .collect();
    json!({
        "run": run + 1, "policy": other.map_or(&c.header.policy, |o| &o.policy), "live": other.is_none(),
        "settings": settings(other.map_or(&c.header.settings, |o| &o.settings)), "seed": c.header.seed,
        "started": started(&c.header), "whole": c.whole, "cache": c.cache.name, "cache_bytes": c.cache_bytes,
        "requests": score.requests, "moved": other.map(|o| o.moved),
        "moved_ratio": other.and_then(|o| share(o.moved)), "refused": other.map(|o| o.refused),
        "hits": score.hits, "misses": score.misses, "joined": score.joined, "miss_ratio": score.miss_ratio,
        "joined_ratio": score.joined_ratio(), "imbalance": score.imbalance,
        "load_imbalance": score.load_imbalance, "per_backend": per_backend,
    })
}
