//! The statistics of a trace as text with small drawings.

use plimsoll_report::format::{bytes, count, duration, number, percent};
use plimsoll_report::{Align, Table, bar_chart, sparkline};
use plimsoll_studies::Workload;
use plimsoll_trace::{ArrivalBins, SizeBin, TraceStats};

use crate::input;
use crate::output::wrapped;

/// Widest drawing: longer bars say no more.
const DRAWING_WIDTH: usize = 100;

/// All statistics of the trace, at most `width` columns wide if the names of targets allow.
pub(super) fn text(workload: &Workload, stats: &TraceStats, width: usize) -> String {
    let drawing = width.min(DRAWING_WIDTH);
    let mut out = format!("{}\n", workload.name);
    for note in notes(workload) {
        out += &wrapped(&note, width, 2);
    }
    out += "\n";
    out += &facts(stats, width);
    out += "\n";
    out += &sizes_table(stats).to_text();
    out += "\n";
    out += &coverage_table(stats).to_text();
    out += &errors(stats, width);
    if let Some(check) = &workload.trace.report.world_cup {
        out += &format!("\nTotals as in the .check files of the World Cup logs\n{check}");
    }
    for (title, bins) in
        [("Sizes of requests", &stats.request_sizes), ("Sizes of documents", &stats.document_sizes)]
    {
        let rows: Vec<(String, f64)> =
            without_gap(bins).map(|bin| (class_name(bin), bin.count as f64)).collect();
        out += &format!("\n{title}\n{}", bar_chart(&rows, drawing));
    }
    out += &format!("\n{}", arrivals(&stats.arrivals, drawing, width));
    out
}

/// How the trace was read, in sentences; empty for a synthetic workload.
pub(super) fn notes(workload: &Workload) -> Vec<String> {
    let report = &workload.trace.report;
    if report.format.is_none() {
        return vec!["A synthetic workload.".to_owned()];
    }
    let mut notes = input::notes(report);
    // Statistics use the stamps unchanged.
    if report.times_spread {
        notes.push("All times are whole seconds; a simulation spreads requests within their second.".into());
    }
    notes.extend(input::hints(&workload.trace));
    notes
}

/// The names and values of the statistics that are single numbers.
pub(super) fn fact_list(stats: &TraceStats) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Requests", count(stats.requests)), ("Targets", count(stats.targets))];
    if stats.clients > 0 {
        facts.push(("Clients", count(stats.clients)));
    }
    facts.push(("Time", span(stats)));
    facts.push(("Bytes sent", exact_bytes(stats.sent_bytes)));
    facts.push(("All documents", exact_bytes(stats.documents_bytes)));
    facts.push(("Top target", format!("{} of requests: {}", percent(stats.top_share), stats.top_target)));
    facts.push(("Zipf exponent", zipf(stats)));
    facts
}

fn facts(stats: &TraceStats, width: usize) -> String {
    let indent = 15;
    fact_list(stats)
        .iter()
        .map(|(name, value)| {
            // The name of a target may be of any length.
            let words: Vec<String> =
                cut(&printable(value), 2 * width).split(' ').map(|word| cut(word, width - indent)).collect();
            let value = words.join(" ");
            wrapped(&format!("{name:<indent$}{value}"), width, indent)
        })
        .collect()
}

pub(super) fn zipf(stats: &TraceStats) -> String {
    stats.zipf.map_or_else(
        || "none: fewer than ten targets have ten requests each".to_owned(),
        |fit| {
            format!(
                "{:.3} (maximum likelihood over the {} targets with at least ten requests)",
                fit.exponent,
                count(fit.ranks)
            )
        },
    )
}

/// First request to last. Seconds that lie after 1989 are taken for those of the Unix epoch.
fn span(stats: &TraceStats) -> String {
    let length = if stats.duration_s >= 48.0 * 3600.0 {
        format!("{} days", number(stats.duration_s / 86_400.0))
    } else {
        duration(stats.duration_s)
    };
    match (date(stats.first_s), date(stats.first_s + stats.duration_s)) {
        (Some(first), Some(last)) => format!("{length}, from {first} to {last}"),
        _ => format!("{length}, from second {}", number(stats.first_s)),
    }
}

/// A time as a date in UTC, if it is plausible as one.
pub(super) fn date(time_s: f64) -> Option<String> {
    const YEAR_1989_S: f64 = 6e8;
    (time_s >= YEAR_1989_S)
        .then(|| jiff::Timestamp::from_second(time_s as i64).ok())
        .flatten()
        .map(|moment| moment.to_string().replace('T', " ").replace('Z', " UTC"))
}

fn exact_bytes(size_bytes: u64) -> String {
    if size_bytes < 1024 {
        return format!("{size_bytes} B");
    }
    format!("{} ({} B)", bytes(size_bytes as f64), count(size_bytes))
}

pub(super) fn sizes_table(stats: &TraceStats) -> Table {
    let mut table = Table::new([
        ("Size", Align::Left),
        ("Mean", Align::Right),
        ("Median", Align::Right),
        ("Largest", Align::Right),
    ]);
    for (name, mean, median, largest) in [
        ("of a request", stats.request_mean_bytes, stats.request_median_bytes, stats.request_max_bytes),
        ("of a document", stats.document_mean_bytes, stats.document_median_bytes, stats.document_max_bytes),
    ] {
        table.row([name.to_owned(), bytes(mean), bytes(median), bytes(largest as f64)]);
    }
    table
}

pub(super) fn coverage_table(stats: &TraceStats) -> Table {
    let mut table = Table::new([
        ("Requests covered", Align::Left),
        ("Memory needed", Align::Right),
        ("Share of all documents", Align::Right),
    ]);
    for coverage in &stats.coverage {
        let share = coverage.bytes as f64 / stats.documents_bytes as f64;
        table.row([percent(coverage.share), bytes(coverage.bytes as f64), percent(share)]);
    }
    table
}

/// Lines that could not be used; requests that do not count are among the notes.
fn errors(stats: &TraceStats, width: usize) -> String {
    if stats.lines_rejected == 0 {
        return "\nErrors: none; every line could be read.\n".to_owned();
    }
    let mut out = format!(
        "\nErrors: {} of {} lines ({}) could not be used:\n",
        count(stats.lines_rejected),
        count(stats.lines),
        percent(stats.lines_rejected as f64 / stats.lines as f64)
    );
    for rejection in &stats.rejections {
        out += &format!("  {}\n", cut(&printable(&rejection.to_string()), width - 2));
    }
    let more = stats.lines_rejected - stats.rejections.len() as u64;
    if more > 0 {
        out += &format!("  … and {} more\n", count(more));
    }
    out
}

/// The classes without the empty ones between size 0 and the first real size: there are often many.
pub(super) fn without_gap(bins: &[SizeBin]) -> impl Iterator<Item = &SizeBin> {
    let first = bins.iter().position(|bin| bin.from_bytes > 0 && bin.count > 0);
    bins.iter()
        .enumerate()
        .filter(move |(at, bin)| bin.from_bytes == 0 || first.is_some_and(|first| *at >= first))
        .map(|(_, bin)| bin)
}

/// A class of sizes by its ends, such as `2 – 4 KiB`.
pub(super) fn class_name(bin: &SizeBin) -> String {
    match bin.from_bytes {
        0 => "0 B".to_owned(),
        1 => "1 B".to_owned(),
        from => {
            let (from, below) = (bytes(from as f64), bytes(bin.below_bytes as f64));
            match (from.split_once(' '), below.split_once(' ')) {
                (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} – {below}"),
                _ => format!("{from} – {below}"),
            }
        }
    }
}

/// Requests per minute of each bin, which may be longer than a minute.
pub(super) fn per_minute(arrivals: &ArrivalBins) -> Vec<f64> {
    let minutes = arrivals.bin_s as f64 / 60.0;
    arrivals.requests.iter().map(|&n| n as f64 / minutes).collect()
}

fn arrivals(arrivals: &ArrivalBins, drawing: usize, width: usize) -> String {
    let rates = per_minute(arrivals);
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let busiest = rates.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
    let Some((at, peak)) = busiest else {
        return String::new();
    };
    let when = arrivals.start_s + at as u64 * arrivals.bin_s;
    let when = date(when as f64)
        .unwrap_or_else(|| format!("{} into the trace", duration((when - arrivals.start_s) as f64)));
    let bins = if arrivals.bin_s == 60 {
        String::new()
    } else {
        format!(" (counted in {})", duration(arrivals.bin_s as f64))
    };
    let idle = rates.iter().filter(|&&rate| rate == 0.0).count();
    let idle = if idle > 0 {
        format!(", {} of the time none", percent(idle as f64 / rates.len() as f64))
    } else {
        String::new()
    };
    let line = format!("mean {}, most {} at {when}{idle}", number(mean), number(*peak));
    format!("Arrivals per minute{bins}\n{}{}\n", wrapped(&line, width, 2), sparkline(&rates, drawing))
}

/// Text from a trace, safe for a terminal: control characters become visible.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// The text cut to this many characters, with an ellipsis.
fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(characters.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_short_names() {
        let name = |from_bytes, below_bytes| class_name(&SizeBin { from_bytes, below_bytes, count: 1 });
        assert_eq!(name(0, 1), "0 B");
        assert_eq!(name(1, 2), "1 B");
        assert_eq!(name(2, 4), "2 – 4 B");
        assert_eq!(name(512, 1024), "512 B – 1 KiB");
        assert_eq!(name(4 << 20, 8 << 20), "4 – 8 MiB");
    }

    #[test]
    fn empty_classes_after_zero_are_left_out() {
        let bin =
            |from_bytes: u64, count| SizeBin { from_bytes, below_bytes: (2 * from_bytes).max(1), count };
        let bins = [bin(0, 5), bin(1, 0), bin(2, 0), bin(4, 1), bin(8, 0), bin(16, 1)];
        let shown: Vec<u64> = without_gap(&bins).map(|bin| bin.from_bytes).collect();
        assert_eq!(shown, [0, 4, 8, 16]);
        assert_eq!(without_gap(&bins[..1]).count(), 1);
    }

    #[test]
    fn texts_of_traces_are_cut_and_printable() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
    }

    #[test]
    fn only_moments_after_1989_are_dates() {
        assert_eq!(date(893_971_817.0).as_deref(), Some("1998-04-30 21:30:17 UTC"));
        assert_eq!(date(59.5), None);
    }
}
