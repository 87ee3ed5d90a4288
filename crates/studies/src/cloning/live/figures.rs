//! Figures and tables of what was measured live.

use plimsoll_report::{Plot, Section, Series, SeriesStyle, Table};

use super::super::micro::MicroMechanism as M;
use super::super::plan::NodeStrategy as S;
use super::super::results::{columns, size_words};
use super::results::{LiveMicro, LiveSeed, mean};
use super::scaled::SimulatedRun;
use super::{LiveCloning, LiveRun, LiveSetting};
use crate::seed_mean::SeedMean;

/// Why nothing was measured.
pub(in super::super) fn left_out(why: &str) -> Section {
    Section::new("Measured live: left out").paragraph(format!("Nothing was measured live: {why}."))
}

fn words(of: Option<SeedMean>, scale: f64, decimals: usize) -> String {
    of.map_or_else(|| "–".to_owned(), |mean| mean.words(scale, decimals))
}

/// Figure 8.
pub(in super::super) fn efficiency(live: &LiveCloning, micro: &LiveMicro) -> Section {
    let mut plot = Plot::new("live", "bytes", "normalized efficiency");
    plot.x_log = true;
    for mechanism in M::FIGURE {
        let (mut points, mut errors) = (Vec::new(), Vec::new());
        for size in micro.sizes() {
            if let (Some(value), Some(range)) =
                (micro.efficiency(mechanism, size), micro.range(mechanism, size))
            {
                points.push((size as f64, value));
                errors.push(range);
            }
        }
        plot = plot.with(Series::new(mechanism.title(), SeriesStyle::Line, points).with_errors(errors));
    }
    let sizes = micro.sizes();
    let mut table = columns(sizes.iter().map(|&size| size_words(size)))
        .captioned("Normalized efficiency in per cent, live: median (least to greatest round)");
    let mut rates =
        columns(sizes.iter().map(|&size| size_words(size))).captioned("Requests per second, live");
    for mechanism in M::FIGURE {
        let cell = |&size: &u64| match (micro.efficiency(mechanism, size), micro.range(mechanism, size)) {
            (Some(value), Some((least, greatest))) => {
                format!("{:.1} ({:.1}–{:.1})", 100.0 * value, 100.0 * least, 100.0 * greatest)
            }
            _ => "–".to_owned(),
        };
        table.row(std::iter::once(mechanism.title().to_owned()).chain(sizes.iter().map(cell)));
        let of = |alone: bool| {
            let value = move |&size: &u64| {
                let rps = micro.throughputs_rps(mechanism, size);
                rps.map_or_else(|| "–".to_owned(), |rps| format!("{:.0}", if alone { rps.1 } else { rps.0 }))
            };
            sizes.iter().map(value).collect::<Vec<_>>()
        };
        rates.row(std::iter::once(mechanism.title().to_owned()).chain(of(false)));
        let alone = format!("{}, single server", mechanism.title());
        rates.row(std::iter::once(alone).chain(of(true)));
    }
    Section::new("Figure 8, live: normalized efficiency by size")
        .paragraph(format!("{}.", live.micro_setting))
        .plot(plot)
        .table(table)
        .folded_table("Requests per second", rates)
}

/// A table with a row for each strategy and a column for each number of nodes.
fn by_nodes(seeds: &[LiveSeed], caption: &str, cell: impl Fn(S, usize) -> String) -> Table {
    let nodes = seeds.first().map(LiveSeed::nodes).unwrap_or_default();
    let mut table = columns(nodes.iter().map(usize::to_string)).captioned(caption);
    for strategy in S::FIGURE {
        let cells = nodes.iter().map(|&n| cell(strategy, n));
        table.row(std::iter::once(strategy.title().to_owned()).chain(cells));
    }
    table
}

/// Something of a run, or of its simulation.
type RunValue = fn(&LiveRun, &SimulatedRun) -> f64;

/// Figure 9.
pub(in super::super) fn nodes(live: &LiveCloning, seeds: &[LiveSeed]) -> Section {
    let numbers = seeds.first().map(LiveSeed::nodes).unwrap_or_default();
    let mut section = Section::new("Figure 9, live: throughput by the number of nodes")
        .two_columns()
        .paragraph(format!("{}.", live.nodes_setting));
    let rate = |run: &LiveRun, _: &SimulatedRun| run.throughput_rps;
    let simulated = |_: &LiveRun, of: &SimulatedRun| of.as_read_rps;
    let beside = |_: &LiveRun, of: &SimulatedRun| of.reads_beside_rps;
    let values: [(&str, RunValue); 3] = [
        ("live", rate),
        ("simulated at this scale", simulated),
        ("simulated, reads beside what is sent", beside),
    ];
    for (title, value) in values {
        let mut plot = Plot::new(title, "nodes", "requests per second");
        for strategy in S::FIGURE {
            let (mut points, mut errors) = (Vec::new(), Vec::new());
            for &n in &numbers {
                if let Some(of) = mean(seeds, strategy, n, value) {
                    let half = of.half_width.unwrap_or(0.0);
                    points.push((n as f64, of.mean));
                    errors.push((of.mean - half, of.mean + half));
                }
            }
            plot = plot.with(Series::new(strategy.title(), SeriesStyle::Line, points).with_errors(errors));
        }
        section = section.plot(plot);
    }
    let percent = |caption: &str, value: fn(&LiveRun) -> f64| {
        by_nodes(seeds, caption, |s, n| words(mean(seeds, s, n, |run, _| value(run)), 100.0, 1))
    };
    let over = by_nodes(seeds, "Live over round robin live", |s, n| {
        let ratios: Vec<f64> = seeds.iter().filter_map(|seed| seed.at(n, s, S::RoundRobin)).collect();
        words(SeedMean::of(&ratios), 1.0, 2)
    });
    for (title, value) in values {
        let caption = format!("Requests per second, {title}");
        section = section.table(by_nodes(seeds, &caption, |s, n| words(mean(seeds, s, n, value), 1.0, 0)));
    }
    section = section.table(over);
    for table in [
        percent("Read from the file server, % of the requests", |run| run.read_share),
        percent("Fetched from other nodes, %", |run| run.fetched_share),
        percent("Answered by clones, %", |run| run.cloned_share),
        percent("File server's link busy, %", |run| run.file_server_busy),
        percent("Nodes' links busy with what is sent to clients, %", |run| run.sending),
        percent("Time in which a node had used up its CPU time, % (the most of all)", |run| run.throttled),
        percent("CPUs of the machine busy, %", |run| run.machine_busy.unwrap_or(f64::NAN)),
    ] {
        let caption = table.caption.clone().unwrap_or_default();
        section = section.folded_table(caption, table);
    }
    section
}

/// Throughput where documents below a size are answered by the node that is asked.
pub(in super::super) fn thresholds(live: &LiveCloning) -> Section {
    let (mut sizes, mut rows) = (Vec::new(), Vec::new());
    for run in &live.thresholds {
        let LiveSetting { nodes, min_bytes, fetches, .. } = run.setting;
        if !sizes.contains(&min_bytes) {
            sizes.push(min_bytes);
        }
        if !rows.contains(&(nodes, fetches)) {
            rows.push((nodes, fetches));
        }
    }
    let names = sizes.iter().map(|&bytes| if bytes == 0 { "0".to_owned() } else { size_words(bytes) });
    let mut table = columns(names).captioned("Requests per second");
    for (nodes, fetches) in rows {
        let cell = |&min_bytes: &u64| {
            let is_it = |run: &&LiveRun| {
                let of = run.setting;
                (of.nodes, of.fetches, of.min_bytes) == (nodes, fetches, min_bytes)
            };
            let values: Vec<f64> =
                live.thresholds.iter().filter(is_it).map(|run| run.throughput_rps).collect();
            words(SeedMean::of(&values), 1.0, 0)
        };
        let how =
            if fetches { "others fetched from other nodes" } else { "others read from the file server" };
        let name = format!("{nodes} nodes, {how}");
        table.row(std::iter::once(name).chain(sizes.iter().map(cell)));
    }
    Section::new("From which size on documents are cloned")
        .paragraph(
            "Socket Cloning as in figure 9, live, where a node answers documents itself that it knows to be smaller than this \
             (`--clone-min-size`): from its memory, or if they are not there as the row says.",
        )
        .table(table)
}
