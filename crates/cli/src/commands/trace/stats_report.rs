//! The statistics of a trace as an HTML report, and the data behind its plots as CSV.

use std::path::Path;

use plimsoll_report::format::{bytes, count, percent};
use plimsoll_report::{Align, AxisUnit, Plot, Report, Section, Series, SeriesStyle, Table};
use plimsoll_studies::Workload;
use plimsoll_trace::{ArrivalBins, SizeBin, TraceStats};

use super::ranked::{Ranked, places, ranked};
use super::stats_text::{
    class_name, coverage_table, date, fact_list, notes, per_minute, sizes_table, without_gap,
};
use crate::error::CliError;
use crate::out_dir::OutDir;
use crate::output;

/// Points of a curve: more than a screen has columns for.
const POINTS: usize = 600;

const MIB: f64 = 1_048_576.0;

/// The files beside the report.
pub(super) const DATA: [&str; 3] = ["targets.csv", "sizes.csv", "arrivals.csv"];

/// Writes `report.html` and the files of [`DATA`].
pub(super) fn write(out: &OutDir, workload: &Workload, stats: &TraceStats) -> Result<(), CliError> {
    let targets = ranked(&workload.trace);
    out.write(report(workload, stats, &targets))?;
    write_csv(
        &out.file("targets.csv"),
        ["rank", "target", "requests", "size_bytes", "cumulative_requests", "cumulative_bytes"],
        (1u64..).zip(&targets).map(|(rank, t)| {
            let name = workload.trace.targets.name(t.id).to_owned();
            let numbers = [t.requests, t.size_bytes, t.requests_so_far, t.bytes_so_far];
            let mut row = vec![rank.to_string().into_bytes(), name];
            row.extend(numbers.map(|n| n.to_string().into_bytes()));
            row
        }),
    )?;
    write_csv(
        &out.file("sizes.csv"),
        ["from_bytes", "below_bytes", "requests", "documents"],
        classes(stats).iter().map(|(bin, requests, documents)| {
            [bin.from_bytes, bin.below_bytes, *requests, *documents].map(|n| n.to_string())
        }),
    )?;
    let arrivals = &stats.arrivals;
    write_csv(
        &out.file("arrivals.csv"),
        ["start_s", "length_s", "requests"],
        (0u64..).zip(&arrivals.requests).map(|(bin, requests)| {
            [arrivals.start_s + bin * arrivals.bin_s, arrivals.bin_s, *requests].map(|n| n.to_string())
        }),
    )
}

fn write_csv<R, F>(
    path: &Path,
    header: impl IntoIterator<Item = &'static str>,
    rows: impl Iterator<Item = R>,
) -> Result<(), CliError>
where
    R: IntoIterator<Item = F>,
    F: AsRef<[u8]>,
{
    let failed = |error: csv::Error| CliError::Failed(format!("cannot write {}: {error}", path.display()));
    let mut writer = csv::Writer::from_path(path).map_err(failed)?;
    writer.write_record(header).map_err(failed)?;
    for row in rows {
        writer.write_record(row).map_err(failed)?;
    }
    writer.flush().map_err(|error| CliError::writing(path, &error))
}

fn report(workload: &Workload, stats: &TraceStats, targets: &[Ranked]) -> Report {
    let mut report = Report::new("What this trace is like", format!("Trace {}", workload.name));
    for note in notes(workload) {
        report = report.fact("Input", note);
    }
    if stats.lines_rejected > 0 {
        report = report.warning(format!(
            "{} of {} lines could not be used; the first are listed under Errors.",
            count(stats.lines_rejected),
            count(stats.lines)
        ));
    }
    for sentence in conclusion(stats) {
        report = report.conclusion(sentence);
    }
    let mut facts = Table::new([("Statistic", Align::Left), ("Value", Align::Left)]);
    for (name, value) in fact_list(stats) {
        facts.row([name.to_owned(), value]);
    }
    let report = report
        .section(
            Section::new("In numbers").table(facts).table(sizes_table(stats)).table(coverage_table(stats)),
        )
        .section(
            Section::new("Popularity and memory")
                .two_columns()
                .plot(cumulative(stats, targets))
                .plot(memory(stats, targets))
                .plot(popularity(stats, targets)),
        )
        .section(Section::new("Sizes").plot(sizes(stats)))
        .section(Section::new("Arrivals").plot(arrivals(&stats.arrivals)))
        .section(top_targets(workload, targets, stats))
        .section(errors(stats))
        .section(world_cup(workload));
    let sha256 = workload.info.sha256.as_deref();
    report
        .footer("Command", output::command_line())
        .footer("Version", format!("plimsoll {}", env!("CARGO_PKG_VERSION")))
        .footer("Input", &workload.info.path)
        .footer("SHA-256", sha256.unwrap_or("none (not a file that was read whole)"))
}

/// What the numbers mean for a cluster, in words.
fn conclusion(stats: &TraceStats) -> Vec<String> {
    let mut sentences = vec![format!(
        "{} requests ask for {} documents of {} in all.",
        count(stats.requests),
        count(stats.targets),
        bytes(stats.documents_bytes as f64)
    )];
    if let Some(most) = stats.coverage.last() {
        sentences.push(format!(
            "The most popular documents, {} of memory, serve {} of the requests. Where the caches of all back-ends \
             together hold that, policies that keep each document on few back-ends read hardly any of it from disk twice.",
            bytes(most.bytes as f64),
            percent(most.share)
        ));
    }
    sentences.push(format!(
        "The most popular target gets {} of the requests: that much one back-end must bear alone as long as no other \
         serves the target too.",
        percent(stats.top_share)
    ));
    sentences
}

/// As figures 5 and 6 of the LARD paper.
fn cumulative(stats: &TraceStats, targets: &[Ranked]) -> Plot {
    let mut plot =
        Plot::new("Cumulative requests and sizes", "targets by falling number of requests", "share of all");
    plot.y_unit = AxisUnit::Percent;
    // Evenly spaced, and denser where the curve bends.
    let mut at = places(targets.len(), POINTS / 2, false);
    at.extend(places(targets.len(), POINTS / 2, true));
    at.sort_unstable();
    at.dedup();
    let curve = |value: fn(&Ranked) -> u64, all: u64| {
        let start = std::iter::once((0.0, 0.0));
        start
            .chain(at.iter().map(|&i| {
                let share = value(&targets[i]) as f64 / all.max(1) as f64;
                ((i + 1) as f64, 100.0 * share)
            }))
            .collect()
    };
    let requests = curve(|t| t.requests_so_far, stats.requests);
    let sizes = curve(|t| t.bytes_so_far, stats.documents_bytes);
    plot.with(Series::new("requests", SeriesStyle::Line, requests)).with(Series::new(
        "sizes",
        SeriesStyle::Line,
        sizes,
    ))
}

fn memory(stats: &TraceStats, targets: &[Ranked]) -> Plot {
    let mut plot = Plot::new(
        "Memory to cover requests",
        "memory for the most popular documents, MiB",
        "share of requests",
    );
    plot.y_unit = AxisUnit::Percent;
    plot.x_log = true;
    "What an ideal cache of this size would serve, if it held the most popular documents from the start."
        .clone_into(&mut plot.note);
    let points =
        places(targets.len(), POINTS, true).into_iter().filter(|&i| targets[i].bytes_so_far > 0).map(|i| {
            let t = &targets[i];
            let share = t.requests_so_far as f64 / stats.requests.max(1) as f64;
            (t.bytes_so_far as f64 / MIB, 100.0 * share)
        });
    plot.with(Series::new("requests", SeriesStyle::Line, points.collect()))
}

fn popularity(stats: &TraceStats, targets: &[Ranked]) -> Plot {
    let mut plot = Plot::new("Popularity", "rank of the target", "requests");
    (plot.x_log, plot.y_log) = (true, true);
    let points = places(targets.len(), POINTS / 2, true)
        .into_iter()
        .map(|i| ((i + 1) as f64, targets[i].requests as f64));
    plot = plot.with(Series::new("targets", SeriesStyle::Points, points.collect()));
    let Some(fit) = stats.zipf else {
        return plot;
    };
    // Scaled to the number of requests over the ranks of the fit.
    let weight = |rank: u64| (rank as f64).powf(-fit.exponent);
    let weights: f64 = (1..=fit.ranks).map(weight).sum();
    let requests = targets.get(fit.ranks as usize - 1).map_or(0.0, |last| last.requests_so_far as f64);
    let line = [1, fit.ranks].map(|rank| (rank as f64, requests * weight(rank) / weights));
    plot.note = format!(
        "Zipf: requests fall as rank^-{:.3}, fitted over the {} targets with at least ten requests.",
        fit.exponent,
        count(fit.ranks)
    );
    plot.with(Series::new("Zipf", SeriesStyle::Line, line.to_vec()))
}

/// Classes of sizes with the number of requests and of documents in each.
fn classes(stats: &TraceStats) -> Vec<(SizeBin, u64, u64)> {
    let mut all: Vec<SizeBin> =
        without_gap(&stats.request_sizes).chain(without_gap(&stats.document_sizes)).copied().collect();
    all.sort_by_key(|bin| bin.from_bytes);
    all.dedup_by_key(|bin| bin.from_bytes);
    let of = |bins: &[SizeBin], from| {
        let found = bins.iter().find(|bin| bin.from_bytes == from);
        found.map_or(0, |bin| bin.count)
    };
    all.into_iter()
        .map(|bin| (bin, of(&stats.request_sizes, bin.from_bytes), of(&stats.document_sizes, bin.from_bytes)))
        .collect()
}

fn sizes(stats: &TraceStats) -> Plot {
    let mut plot = Plot::new("Sizes by powers of two", "size", "share");
    plot.y_unit = AxisUnit::Percent;
    let classes = classes(stats);
    plot.categories = classes.iter().map(|(bin, ..)| class_name(bin)).collect();
    let bars = |value: fn(&(SizeBin, u64, u64)) -> u64, all: u64| {
        let shares = classes.iter().enumerate();
        shares.map(|(at, class)| (at as f64, 100.0 * value(class) as f64 / all.max(1) as f64)).collect()
    };
    let requests = bars(|class| class.1, stats.requests);
    let documents = bars(|class| class.2, stats.targets);
    "A request's size is what was sent: nothing for HEAD and for 304 (not modified)."
        .clone_into(&mut plot.note);
    plot.with(Series::new("requests", SeriesStyle::Bars, requests)).with(Series::new(
        "documents",
        SeriesStyle::Bars,
        documents,
    ))
}

fn arrivals(arrivals: &ArrivalBins) -> Plot {
    let rates = per_minute(arrivals);
    let length_s = rates.len() as f64 * arrivals.bin_s as f64;
    let (unit, unit_s) = if length_s > 4.0 * 86_400.0 {
        ("days", 86_400.0)
    } else if length_s > 4.0 * 3600.0 {
        ("hours", 3600.0)
    } else {
        ("minutes", 60.0)
    };
    let since = date(arrivals.start_s as f64).unwrap_or_else(|| "the start of the trace".to_owned());
    let mut plot = Plot::new("Requests per minute", format!("{unit} since {since}"), "requests per minute");
    if arrivals.bin_s > 60 {
        plot.note = format!("Each step is the mean over {} minutes.", count(arrivals.bin_s / 60));
    }
    let mut points: Vec<(f64, f64)> = rates
        .iter()
        .enumerate()
        .map(|(bin, &rate)| (bin as f64 * arrivals.bin_s as f64 / unit_s, rate))
        .collect();
    // The last step lasts as long as the others.
    if let Some(&(_, rate)) = points.last() {
        points.push((length_s / unit_s, rate));
    }
    plot.with(Series::new("requests", SeriesStyle::Step, points))
}

fn top_targets(workload: &Workload, targets: &[Ranked], stats: &TraceStats) -> Section {
    let mut table = Table::new([
        ("Rank", Align::Right),
        ("Target", Align::Left),
        ("Requests", Align::Right),
        ("Share", Align::Right),
        ("Size", Align::Right),
    ]);
    for (rank, target) in (1u64..).zip(targets.iter().take(20)) {
        let name = String::from_utf8_lossy(workload.trace.targets.name(target.id));
        table.row([
            count(rank),
            name.into_owned(),
            count(target.requests),
            percent(target.requests as f64 / stats.requests.max(1) as f64),
            bytes(target.size_bytes as f64),
        ]);
    }
    Section::new("Most popular targets").table(table)
}

fn errors(stats: &TraceStats) -> Section {
    let mut section = Section::new("Errors");
    if stats.lines_rejected > 0 {
        let mut table = Table::new([
            ("File", Align::Left),
            ("Line", Align::Right),
            ("Why it cannot be used", Align::Left),
        ]);
        for rejection in &stats.rejections {
            table.row([rejection.path.clone(), count(rejection.line), rejection.reason.clone()]);
        }
        section = section
            .paragraph(format!(
                "{} of {} lines could not be used; the first:",
                count(stats.lines_rejected),
                count(stats.lines)
            ))
            .table(table);
    }
    if !stats.not_counted.is_empty() {
        let mut table = Table::new([("Not counted", Align::Left), ("Requests", Align::Right)]);
        for (reason, requests) in &stats.not_counted {
            table.row([reason.clone(), count(*requests)]);
        }
        section = section.table(table);
    }
    section
}

/// The totals of a World Cup log, which its archive publishes too.
fn world_cup(workload: &Workload) -> Section {
    let section = Section::new("Totals as in the .check files of the World Cup logs");
    let Some(totals) = &workload.trace.report.world_cup else {
        return section;
    };
    let mut table = Table::new([("Total", Align::Left), ("Value", Align::Right)]);
    // Behind the line `Check:` the first lines are repeated.
    let text = totals.to_string();
    let lines = text.lines().take_while(|line| *line != "Check:");
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        table.row([name.trim(), value.trim()]);
    }
    section.table(table)
}
