//! The tables of an advice.

use plimsoll_report::format::{bytes, count, duration, number, or_dash, percent_number};
use plimsoll_report::{Align, Cell, Table, TableColumn, Tone};

use super::advice::Advice;
use super::contestants::{BASELINE, CONTESTANTS};
use super::notes::back_ends;
use super::stress::StressMeasure;
use super::verdict::policy_gain;
use super::words::{AdviceWords, interval};

/// A table of an advice.
#[derive(Debug)]
pub struct AdviceTable {
    /// Its heading.
    pub heading: String,
    /// The table.
    pub table: Table,
    /// What it says, in sentences.
    pub sentences: Vec<String>,
}

/// The tables of an advice, of which these are the words.
#[must_use]
pub fn advice_tables(advice: &Advice, words: &AdviceWords) -> Vec<AdviceTable> {
    let of = |heading: &str, table, sentences: &[String]| AdviceTable {
        heading: heading.to_owned(),
        table,
        sentences: sentences.to_vec(),
    };
    let mut out = vec![of("The policies on this cluster", policies(advice), &[])];
    if !advice.memory_steps.is_empty() {
        let heading = format!("Memory for documents of each of {}", back_ends(advice.memory_backends));
        out.push(of(&heading, memory(advice), &[]));
    }
    out.push(of("What matters: each changed alone", levers(advice), &words.matters));
    let heading = "Under other conditions: share of the best there, in per cent";
    out.push(of(heading, stress(advice), &words.loses));
    out
}

fn right(title: &str, meaning: &str) -> TableColumn {
    TableColumn::new(title, Align::Right).meaning(meaning)
}

pub(super) fn policies(advice: &Advice) -> Table {
    let mut table = Table::new([
        TableColumn::new("policy", Align::Left),
        right(
            "needs",
            "the fewest back-ends that carry the peak; - where none that was tried does, or where no peak is known",
        ),
        right("req/s", "requests per second at saturation"),
        right("× round_robin", "req/s over those of round_robin, with the 95 % interval"),
        right("miss%", "disk reads per 100 requests at saturation"),
        right("mean", "mean response time at the peak; - where queues grow").rank(2),
        right("p99", "response time at the peak that one request of 100 exceeds; - where queues grow")
            .rank(1),
    ]);
    for figures in &advice.finals {
        let gain = policy_gain(&advice.finals, figures.policy, BASELINE, advice.target.peak_rps, advice.seed);
        let tone = if figures.policy == advice.verdict.policy { Tone::Good } else { Tone::Neutral };
        let mark = if tone == Tone::Good { " *" } else { "" };
        let time = |s| or_dash(Some(s).filter(|_| !advice.overloads(figures)), duration);
        table.row([
            Cell::toned(format!("{}{mark}", figures.policy), tone),
            or_dash(advice.fewest(figures.policy).map(|n| n as f64), |n| count(n as u64)).into(),
            number(figures.capacity_rps).into(),
            interval(gain.capacity).into(),
            percent_number(figures.miss_ratio).into(),
            time(figures.peak_mean_s).into(),
            time(figures.peak_p99_s).into(),
        ]);
    }
    table
}

pub(super) fn memory(advice: &Advice) -> Table {
    let policies = CONTESTANTS.iter().map(|of| right(of.short, of.policy));
    let mut table =
        Table::new([right("memory", "of each back-end for documents")].into_iter().chain(policies));
    for step in &advice.memory_steps {
        let mark = if step.memory_bytes == advice.memory_bytes { " *" } else { "" };
        let cells = step.capacity_rps.iter().map(|&rps| number(rps));
        table.row([format!("{}{mark}", bytes(step.memory_bytes as f64))].into_iter().chain(cells));
    }
    table
}

pub(super) fn levers(advice: &Advice) -> Table {
    let mut table = Table::new([
        TableColumn::new("change", Align::Left).wraps_at(30),
        right("req/s", "at saturation"),
        right("change", "of the requests per second"),
    ]);
    for lever in &advice.levers {
        let change = format!("{:+.1} %", 100.0 * (lever.ratio - 1.0));
        table.row([lever.change.clone(), number(lever.capacity_rps), change]);
    }
    table
}

pub(super) fn stress(advice: &Advice) -> Table {
    let policies = CONTESTANTS.iter().map(|of| right(of.short, of.policy));
    let columns = [TableColumn::new("condition", Align::Left).wraps_at(24)].into_iter().chain(policies);
    let mut table = Table::new(columns);
    for outcome in &advice.stress {
        let best = match outcome.measure {
            StressMeasure::Throughput => outcome.values.iter().copied().fold(0.0, f64::max),
            StressMeasure::Slowdown => outcome.values.iter().copied().fold(f64::INFINITY, f64::min),
        };
        let share = |&value: &f64| match outcome.measure {
            StressMeasure::Throughput => value / best,
            StressMeasure::Slowdown => best / value,
        };
        let cells = outcome.values.iter().map(|value| {
            let share = share(value);
            let tone = if share >= 0.97 { Tone::Good } else { Tone::Neutral };
            Cell::toned(format!("{:.0}", 100.0 * share), tone)
        });
        let what = match outcome.measure {
            StressMeasure::Throughput => "req/s",
            StressMeasure::Slowdown => "slowdown",
        };
        table.row([Cell::from(format!("{} ({what})", outcome.condition))].into_iter().chain(cells));
    }
    table
}
