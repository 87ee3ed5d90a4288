//! The figures as plots, and the report around them.

use plimsoll_report::format::bytes;
use plimsoll_report::{
    Align, AxisUnit, Claim, Plot, Report, Section, Series, SeriesStyle, Table, claims_conclusion,
    claims_table, measurements_table,
};
use plimsoll_sim::{SeriesPoint, SizeClasses};

use super::cluster::DayLoad;
use super::plan::{ADAPTLOAD, Contender, DayRun, IMPROVED_CACHE, JSQ, LARD_BEST, LARD_R, MAIN};
use super::results::{AdaptLoadResults, mean};
use crate::lard::{Effort, calibration_conclusion};

/// Document sizes in rising order, each with the requests for it.
fn sizes(r: &AdaptLoadResults) -> Vec<(u64, u64)> {
    let table = &r.day.workload.trace.targets;
    let mut pairs: Vec<(u64, u64)> =
        (0..table.len() as u32).map(|t| (table.document_size_bytes(t), table.requests(t))).collect();
    pairs.sort_unstable();
    pairs
}

/// The median size of files, each weighed by `weight` of its requests.
pub(super) fn median_size(r: &AdaptLoadResults, weight: impl Fn(u64) -> u64) -> Option<f64> {
    let sizes = sizes(r);
    let total: u64 = sizes.iter().map(|&(_, requests)| weight(requests)).sum();
    let mut seen = 0;
    let middle = sizes.into_iter().find(|&(_, requests)| {
        seen += weight(requests);
        2 * seen >= total
    });
    middle.map(|(size, _)| size as f64)
}

/// Share of the requests for files up to this size.
pub(super) fn share_up_to(r: &AdaptLoadResults, bytes: u64) -> Option<f64> {
    let sizes = sizes(r);
    let total: u64 = sizes.iter().map(|&(_, requests)| requests).sum();
    let small: u64 = sizes.iter().filter(|&&(size, _)| size <= bytes).map(|&(_, requests)| requests).sum();
    (total > 0).then(|| small as f64 / total as f64)
}

/// Correlation between the requests of a minute and the C.V. of their sizes.
pub(super) fn correlation(r: &AdaptLoadResults) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = r.day.minutes.iter().filter_map(|m| Some((m.requests, m.cv()?))).collect();
    let count = pairs.len() as f64;
    let (x, y) =
        (pairs.iter().map(|p| p.0).sum::<f64>() / count, pairs.iter().map(|p| p.1).sum::<f64>() / count);
    let sum = |f: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>();
    let covariance = sum(&|p| (p.0 - x) * (p.1 - y));
    let variances = sum(&|p| (p.0 - x).powi(2)) * sum(&|p| (p.1 - y).powi(2));
    (variances > 0.0).then(|| covariance / variances.sqrt())
}

/// The report: verdicts first, then the figures in the paper's order.
pub(super) fn report(
    effort: Effort,
    figure: Option<u32>,
    (calibration, claims): (&[Claim], &[Claim]),
    days: &[AdaptLoadResults],
    others: &[AdaptLoadResults],
    synthetic: bool,
) -> Report {
    let r = &days[0];
    let parts = [
        (!claims.is_empty()).then(|| claims_conclusion(claims)),
        (!calibration.is_empty()).then(|| calibration_conclusion(calibration)),
    ];
    let speed = r.day.speed(DayLoad::Day);
    let mut report = Report::new(
        "AdaptLoad, reproduced",
        "Zhang, Riska, Sun, Smirni and Ciardo, “Workload-aware load balancing for clustered web servers”",
    )
    .fact("Effort", if effort == Effort::Full { "full" } else { "quick" })
    .fact("Workloads of the claims", names(days))
    .fact("Workload of the figures", name(r))
    .fact("Requests", r.day.workload.trace.len().to_string())
    .fact("Speed of back-ends over the day", format!("{speed:.3} times the paper's costs"))
    .conclusion(parts.into_iter().flatten().collect::<Vec<_>>().join(" "));
    if !others.is_empty() {
        report = report.fact("Workloads of another day", names(others));
    }
    if synthetic && effort == Effort::Quick {
        report = report.warning(format!(
            "A shortened day: arrivals come as fast as in the whole one, but there are only {:.0} % as many, for the same \
             files. First reads weigh {:.1} times as much, most of all under join_shortest_queue, where every back-end \
             reads every file; so it comes out worse than in a whole day, and its crossing with adaptload cannot be judged. The mix drifts \
             faster by the same factor against the batches of adaptload.",
            100.0 * r.day.scale,
            1.0 / r.day.scale,
        ));
    }
    for (title, text, list) in
        [("Claims", CLAIMS_TEXT, claims), ("Calibration", CALIBRATION_TEXT, calibration)]
    {
        if !list.is_empty() {
            let section = Section::new(title).paragraph(text).table(claims_table(list));
            report = report.section(section.folded_table("Every measurement", measurements_table(list)));
        }
    }
    let figures: [(u32, DrawFigure); 11] = [
        (1, figure_1),
        (2, figure_2),
        (5, figure_5),
        (6, figure_6),
        (7, figure_7),
        (8, figure_8),
        (9, figure_9),
        (10, figure_10),
        (11, figure_11),
        (12, figure_12),
        (14, figure_14),
    ];
    for (number, section) in figures {
        if figure.is_none_or(|f| f == number) {
            report = report.section(section(r));
        }
    }
    if figure.is_none() {
        report = report.section(super::policies_table::section(r));
    }
    report.section(super::policies_table::names())
}

fn name(r: &AdaptLoadResults) -> String {
    format!("{}, seed {}", r.day.workload.name, r.day.seed)
}

fn names(days: &[AdaptLoadResults]) -> String {
    days.iter().map(name).collect::<Vec<_>>().join("; ")
}

/// A function that draws a figure.
type DrawFigure = fn(&AdaptLoadResults) -> Section;

/// A value of each back-end at a point.
type OfBackends = fn(&SeriesPoint) -> &[f64];

const CLAIMS_TEXT: &str = "Each sentence of the paper that has a number or an order, on \
    several days that meet the published statistics equally well. A claim holds when every measurement agrees, partly when \
    some do. Where the paper speaks of all points of a curve, the one that departs most, or the mean over the answers, is judged, as \
    the claim says. LARD has the thresholds 200/600, the best found, unless its own 25/65 are named. \
    Claims on mean slowdowns and response times of the whole day have two measurements on each day and one verdict: with \
    the cold start, as in the paper, and after it, without the day's first 500,000 answers, in which caches fill.";

const CALIBRATION_TEXT: &str = "What the workload and the speeds are made to meet. They are no findings and are not \
    counted among the claims. The paper scales the speed of network and disk together and gives no factor: speeds \
    follow here from the utilizations that it states, and for a whole day from the slowdowns that it reads off figure 9.";

const SECONDS: &str = "time of day, s";

fn figure_1(r: &AdaptLoadResults) -> Section {
    let sizes = sizes(r);
    let curve = |weight: fn(u64) -> u64| {
        let total: u64 = sizes.iter().map(|&(_, n)| weight(n)).sum();
        let step = (sizes.len() / 300).max(1);
        let mut seen = 0;
        let mut points = Vec::new();
        for (at, &(size, requests)) in sizes.iter().enumerate() {
            seen += weight(requests);
            if (at + 1) % step == 0 || at + 1 == sizes.len() {
                points.push((size as f64, seen as f64 / total.max(1) as f64));
            }
        }
        points
    };
    let mut plot = Plot::new("Sizes", "bytes", "cumulative share")
        .with(Series::new("unique files", SeriesStyle::Line, curve(|_| 1)))
        .with(Series::new("transfers", SeriesStyle::Line, curve(|n| n)));
    plot.x_log = true;
    Section::new("Figure 1: sizes of files and transfers").plot(plot)
}

fn figure_2(r: &AdaptLoadResults) -> Section {
    let curve = |title: &str, label: &str, value: fn(&super::day::Minute) -> Option<f64>| {
        let minutes = r.day.minutes.iter().enumerate();
        let points = minutes.filter_map(|(m, minute)| Some((60.0 * m as f64, value(minute)?))).collect();
        Plot::new(title, SECONDS, label).with(Series::new(title, SeriesStyle::Line, points))
    };
    Section::new("Figure 2: requests, and their sizes, minute by minute")
        .plot(curve("Arrivals", "requests per minute", |m| Some(m.requests)))
        .plot(curve("Mean size", "bytes", |m| (m.requests > 0.0).then(|| m.mean_bytes())))
        .plot(curve("Coefficient of variation of sizes", "C.V.", super::day::Minute::cv))
}

fn line(contender: Contender, points: Vec<(f64, f64)>) -> Series {
    Series::new(contender.name(), SeriesStyle::Line, points).with_look(contender.look())
}

/// A plot over the day with one curve per contender.
fn over_time(
    r: &AdaptLoadResults,
    (title, label, log): (&str, &str, bool),
    cells: &[DayRun],
    value: impl Fn(&SeriesPoint) -> f64 + Copy,
) -> Plot {
    let mut plot = Plot::new(title, SECONDS, label);
    for cell in cells {
        let curve = r.curve(*cell, value);
        if !curve.is_empty() {
            plot = plot.with(line(cell.contender, curve));
        }
    }
    plot.y_log = log;
    if label == RESPONSE {
        plot.y_unit = AxisUnit::Seconds;
    }
    plot
}

const SLOWDOWN: &str = "mean slowdown";
const RESPONSE: &str = "mean response time, s";

fn slowdown_and_response(r: &AdaptLoadResults, what: &str, cells: &[DayRun]) -> [Plot; 2] {
    let (slowdown, response) = (format!("Slowdown, {what}"), format!("Response time, {what}"));
    [
        over_time(r, (&slowdown, SLOWDOWN, true), cells, |p| p.mean_slowdown),
        over_time(r, (&response, RESPONSE, true), cells, |p| p.mean_response_s),
    ]
}

fn with_plots(section: Section, plots: [Plot; 2]) -> Section {
    plots.into_iter().fold(section, Section::plot)
}

fn figure_5(r: &AdaptLoadResults) -> Section {
    let mut all = Section::new("Figure 5: slowdown and response time over the day").two_columns();
    for cache in [5, 15, 25] {
        let title = format!("caches of {cache} %");
        let cells = MAIN.map(|c| DayRun::day(c, cache));
        all = with_plots(all, slowdown_and_response(r, &title, &cells));
    }
    all
}

fn figure_6(r: &AdaptLoadResults) -> Section {
    let mut section =
        Section::new("Figure 6: utilization of networks and disks, caches of 15 %").two_columns();
    for contender in [ADAPTLOAD, JSQ, LARD_BEST] {
        let kinds: [(&str, OfBackends); 2] = [("network", |p| &p.cpu), ("disk", |p| &p.disk)];
        for (kind, of) in kinds {
            let mut plot = Plot::new(format!("{}: {kind}", contender.name()), SECONDS, "utilization");
            for backend in 0..super::cluster::BACKENDS {
                let curve =
                    r.curve(DayRun::day(contender, 15), |p| of(p).get(backend).copied().unwrap_or(0.0));
                plot = plot.with(Series::new(format!("back-end {}", backend + 1), SeriesStyle::Line, curve));
            }
            section = section.plot(plot);
        }
    }
    section
}

fn figure_7(r: &AdaptLoadResults) -> Section {
    let mut section = Section::new("Figure 7: hit ratio over the day").paragraph(
        "Requests that begin no disk read. Those that join a read under way are counted as hits here; the data of the \
         runs has their share.",
    );
    for cache in [5, 15, 25] {
        let title = format!("Caches of {cache} %");
        let cells = MAIN.map(|c| DayRun::day(c, cache));
        section = section.plot(over_time(r, (&title, "hit ratio", false), &cells, |p| 1.0 - p.miss_ratio));
    }
    section
}

/// A plot with one curve per contender over what `xs` gives for it.
fn over(
    (title, x_label, y_label): (&str, &str, &str),
    contenders: &[Contender],
    points: impl Fn(Contender) -> Vec<(f64, f64)>,
) -> Plot {
    let mut plot = Plot::new(title, x_label, y_label);
    for &contender in contenders {
        plot = plot.with(line(contender, points(contender)));
    }
    plot
}

fn figure_8(r: &AdaptLoadResults) -> Section {
    let x = "cache of a back-end, % of the working set";
    let curve = |c: Contender, value: fn(&AdaptLoadResults, DayRun) -> Option<f64>| -> Vec<(f64, f64)> {
        let caches = r.caches(c).into_iter();
        caches.filter_map(|k| Some((f64::from(k), value(r, DayRun::day(c, k))?))).collect()
    };
    let mut slowdown = over(("Slowdown", x, SLOWDOWN), &MAIN, |c| curve(c, AdaptLoadResults::slowdown));
    let mut response =
        over(("Response time", x, RESPONSE), &MAIN, |c| curve(c, AdaptLoadResults::response_s));
    (slowdown.y_log, response.y_log, response.y_unit) = (true, true, AxisUnit::Seconds);
    let hits = over(("Hit ratio", x, "hit ratio"), &MAIN, |c| curve(c, AdaptLoadResults::hit_ratio));
    Section::new("Figure 8: size of the caches").plot(slowdown).plot(response).plot(hits)
}

fn figure_9(r: &AdaptLoadResults) -> Section {
    let mut section = Section::new("Figure 9: slowdown by size of the response, caches of 15 %");
    for contender in [ADAPTLOAD, JSQ, LARD_BEST] {
        let Some(classes) = r.get(DayRun::day(contender, 15)).and_then(|done| done.classes.as_ref()) else {
            continue;
        };
        let right = |text: &'static str| (text, Align::Right);
        let mut table = Table::new([
            right("size"),
            right("responses"),
            right("below 5, %"),
            right("5 to 20, %"),
            right("20 to 100, %"),
            right("above 100, %"),
        ])
        .captioned(contender.name());
        for bin in 1..=SizeClasses::BINS {
            if let Some(shares) = classes.shares(bin..=bin) {
                let range =
                    format!("{} … {}", bytes(2_f64.powi(bin as i32 - 1)), bytes(2_f64.powi(bin as i32)));
                let mut row = vec![range, classes.total(bin).to_string()];
                row.extend(shares.map(|share| format!("{:.3}", 100.0 * share)));
                table.row(row);
            }
        }
        section = section.table(table);
    }
    section
}

fn figure_10(r: &AdaptLoadResults) -> Section {
    let curve = |c: Contender, value: fn(&AdaptLoadResults, DayRun) -> Option<f64>| -> Vec<(f64, f64)> {
        let cell = |backends| DayRun::cluster(c, backends);
        let sizes = [4, 8, 12, 16, 20].into_iter();
        sizes.filter_map(|n| Some((n as f64, value(r, cell(n))?))).collect()
    };
    let mut slowdown =
        over(("Slowdown", "back-ends", SLOWDOWN), &MAIN, |c| curve(c, AdaptLoadResults::slowdown));
    let mut response =
        over(("Response time", "back-ends", RESPONSE), &MAIN, |c| curve(c, AdaptLoadResults::response_s));
    (slowdown.y_log, response.y_log, response.y_unit) = (true, true, AxisUnit::Seconds);
    Section::new("Figure 10: number of back-ends, caches of 15 %").two_columns().plot(slowdown).plot(response)
}

fn figure_11(r: &AdaptLoadResults) -> Section {
    let mut section = Section::new("Figure 11: two periods, light and heavy load, caches of 15 %")
        .paragraph("Each is run from the beginning of the day, so that caches are not cold.")
        .two_columns();
    let periods = [
        ("35,000 to 45,000 s, light load", DayLoad::Quiet { heavy: false }, super::day::QUIET_S),
        ("35,000 to 45,000 s, heavy load", DayLoad::Quiet { heavy: true }, super::day::QUIET_S),
        ("58,000 to 68,000 s, light load", DayLoad::Peak { heavy: false }, super::day::PEAK_S),
        ("58,000 to 68,000 s, heavy load", DayLoad::Peak { heavy: true }, super::day::PEAK_S),
    ];
    for (title, load, (from_s, to_s)) in periods {
        let contenders = [ADAPTLOAD, JSQ, LARD_BEST].into_iter().chain(LARD_R);
        let cells: Vec<DayRun> = contenders.map(|c| DayRun { load, ..DayRun::day(c, 15) }).collect();
        let mut plot = over_time(r, (title, SLOWDOWN, true), &cells, |p| p.mean_slowdown);
        for series in &mut plot.series {
            series.points.retain(|(time_s, _)| (from_s..to_s).contains(time_s));
        }
        let day = (from_s, to_s);
        let used = |of: fn(&SeriesPoint) -> f64| 100.0 * r.mean_within(cells[0], day, of).unwrap_or(f64::NAN);
        plot.note = format!(
            "{:.3} times the paper's speed; adaptload used the networks {:.0} % and the disks {:.0} % of the time.",
            r.day.speed(load),
            used(|p| mean(&p.cpu)),
            used(|p| mean(&p.disk)),
        );
        section = section.plot(plot);
    }
    section
}

fn figure_12(r: &AdaptLoadResults) -> Section {
    let mut all = Section::new("Figure 12: dynamic requests, caches of 30 %").two_columns();
    for dynamic_percent in [30, 70] {
        let cells = [ADAPTLOAD, JSQ].map(|c| DayRun::dynamic(c, dynamic_percent));
        let title = format!("{dynamic_percent} % dynamic");
        all = with_plots(all, slowdown_and_response(r, &title, &cells));
    }
    all
}

fn figure_14(r: &AdaptLoadResults) -> Section {
    let contenders = [ADAPTLOAD, JSQ, LARD_BEST, Contender::Improved];
    let cells = contenders.map(|c| DayRun::day(c, IMPROVED_CACHE));
    let section = Section::new("Figure 14: the improved policy, caches of 60 %").two_columns();
    with_plots(section, slowdown_and_response(r, "caches of 60 %", &cells))
}
