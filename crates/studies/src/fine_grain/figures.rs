//! The figures as plots, and the report around them.

use std::collections::BTreeSet;

use plimsoll_report::{
    Align, AxisUnit, Claim, Plot, Report, Section, Series, SeriesStyle, Table, claims_conclusion,
    claims_table, measurements_table,
};

use super::figures_prototype;
use super::plan::{
    DISCARD_MS, FineGrainRun, Grain, INTERVALS_US, LOADS, LoadsFrom, POLL_SIZES, READINGS, SWEEP_CPU_US,
    SWEEP_US, swept,
};
use super::prototype::ServicePrototype;
use super::results::{AGE_LOADS, AGES, FineGrainResults};
use super::rule::BroadcastReading;
use super::theory;
use crate::lard::Effort;

/// The report: verdicts first, then the figures in the paper's order, then what goes beyond it.
pub(super) fn report(
    effort: Effort,
    figure: Option<u32>,
    (theory, claims): (&[Claim], &[Claim]),
    seeds: &[FineGrainResults],
    prototype: &ServicePrototype,
) -> Report {
    let measured = prototype.seeds.iter().map(|runs| runs.seed);
    let used: BTreeSet<u64> = seeds.iter().map(|results| results.seed).chain(measured).collect();
    let names: Vec<String> = used.iter().map(u64::to_string).collect();
    let mut report = Report::new(
        "Fine-grain services, reproduced",
        "Shen, Yang and Chu, “Cluster load balancing for fine-grain network services”, IPDPS 2002",
    )
    .fact("Effort", if effort == Effort::Full { "full" } else { "quick" })
    .fact("Seeds", names.join(", "))
    .fact("Workloads", Grain::PAPER.map(Grain::title).join(", "))
    .conclusion(claims_conclusion(claims));
    for (title, text, list) in
        [("Claims", CLAIMS_TEXT, claims), ("Theory and calibration", THEORY_TEXT, theory)]
    {
        if !list.is_empty() {
            let section = Section::new(title).paragraph(text).table(claims_table(list));
            report = report.section(section.folded_table("Every measurement", measurements_table(list)));
        }
    }
    let wanted = |number: u32| figure.is_none_or(|figure| figure == number);
    if wanted(2) {
        report = report.section(figure_2(seeds));
    }
    if wanted(3) {
        report = report.section(figure_3(seeds));
    }
    if wanted(4) {
        report = report.section(figure_4(seeds));
    }
    if figure.is_none() {
        report = report.section(slow_answers(seeds)).section(sweeps(seeds)).section(jitter(seeds));
        report = report.section(distributions(seeds));
    }
    figures_prototype::sections(prototype).into_iter().fold(report, Report::section)
}

const CLAIMS_TEXT: &str = "Each sentence of the paper that has a number or an order, on workloads with the means and deviations of its \
                           table 1 (the traces were never published). A claim that depends on what the paper leaves open is judged \
                           under each reading.";

const THEORY_TEXT: &str = "Mean response times without network delays beside what theory gives: the simulator and its policies, \
                           not the paper, are on trial here. Below, the paper's profile of slow answers, to which the simulated \
                           ones are calibrated.";

/// Mean over the seeds with least and greatest; `None` without a value.
fn spread(
    seeds: &[FineGrainResults],
    value: impl Fn(&FineGrainResults) -> Option<f64>,
) -> Option<(f64, f64, f64)> {
    let values: Vec<f64> = seeds.iter().filter_map(value).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (!values.is_empty()).then_some((mean, least, most))
}

/// A line over `xs`, with the spread of the seeds.
fn line(
    seeds: &[FineGrainResults],
    name: &str,
    xs: impl IntoIterator<Item = f64>,
    value: impl Fn(&FineGrainResults, f64) -> Option<f64>,
) -> Series {
    let mut points = Vec::new();
    let mut errors = Vec::new();
    for x in xs {
        if let Some((mean, least, most)) = spread(seeds, |r| value(r, x)) {
            points.push((x, mean));
            errors.push((least, most));
        }
    }
    Series::new(name, SeriesStyle::Line, points).with_errors(errors)
}

fn figure_2(seeds: &[FineGrainResults]) -> Section {
    let mut section = Section::new("Figure 2: inaccuracy of the load index by its age, one server")
        .paragraph(
            "The mean difference between the queue length at a time and one so many service times later.",
        )
        .two_columns();
    for load in AGE_LOADS {
        let mut plot = Plot::new(
            format!("Server {load} % busy"),
            "age of the load index, mean service times",
            "inaccuracy, requests",
        );
        let bound = theory::inaccuracy_bound(f64::from(load) / 100.0);
        for grain in Grain::PAPER {
            let value = |r: &FineGrainResults, age: f64| r.inaccuracy(grain, load, age);
            plot = plot.with(line(seeds, grain.title(), AGES[1..].iter().copied(), value));
        }
        let ends = [AGES[1], AGES[AGES.len() - 1]].map(|age| (age, bound));
        plot = plot.with(Series::new("2ρ/(1−ρ²)", SeriesStyle::Line, ends.to_vec()));
        plot.x_log = true;
        section = section.plot(plot);
    }
    section
}

fn reading_words((clients, counts_own): BroadcastReading) -> String {
    format!(
        "{clients} client{}, {}",
        if clients == 1 { "" } else { "s" },
        if counts_own { "counting" } else { "not counting" }
    )
}

fn figure_3(seeds: &[FineGrainResults]) -> Section {
    let mut section = Section::new("Figure 3: mean interval of broadcasts, 16 servers")
        .paragraph(
            "The paper says neither how many clients there are nor whether they count what they send between two announcements: one \
             line for each reading.",
        )
        .two_columns();
    for load in [90, 50] {
        for grain in Grain::PAPER {
            let mut plot = Plot::new(
                format!("{}, servers {load} % busy", grain.title()),
                "mean interval, ms",
                "response over ideal",
            );
            for condition in READINGS {
                let value = |r: &FineGrainResults, ms: f64| {
                    r.over_ideal(FineGrainRun::broadcast(grain, load, (ms * 1000.0) as u32, condition))
                };
                let xs = INTERVALS_US.map(|us| f64::from(us) / 1000.0);
                plot = plot.with(line(seeds, &reading_words(condition), xs, value));
            }
            (plot.x_log, plot.y_log) = (true, true);
            section = section.plot(plot);
        }
    }
    section
}

fn figure_4(seeds: &[FineGrainResults]) -> Section {
    let mut section = Section::new("Figure 4: poll size, 16 servers").two_columns();
    for grain in Grain::PAPER {
        let mut plot = Plot::new(grain.title(), "servers busy, %", "mean response time");
        let loads = || LOADS.map(f64::from);
        let mut add = |name: &str, run: &dyn Fn(u32) -> FineGrainRun| {
            let value = |r: &FineGrainResults, load: f64| r.response_s(run(load as u32));
            plot.series.push(line(seeds, name, loads(), value));
        };
        add("random", &|load| FineGrainRun::random(grain, load));
        for size in POLL_SIZES {
            add(&format!("poll of {size}"), &|load| FineGrainRun::polled(grain, load, size));
        }
        add("ideal", &|load| FineGrainRun::ideal(grain, load));
        if grain == Grain::PoissonExp {
            let service_s = FineGrainRun::ideal(grain, 90).service_s();
            for (name, exact) in
                [("M/M/1", theory::random as fn(f64) -> f64), ("supermarket model", theory::two_choices)]
            {
                let points = LOADS.map(|load| (f64::from(load), service_s * exact(f64::from(load) / 100.0)));
                plot = plot.with(Series::new(name, SeriesStyle::Points, points.to_vec()));
            }
        }
        (plot.y_unit, plot.y_log) = (AxisUnit::Seconds, true);
        section = section.plot(plot);
    }
    section
}

fn right(text: &'static str) -> (&'static str, Align) {
    (text, Align::Right)
}

fn cell(value: Option<f64>, scale: f64, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.decimals$}", value * scale))
}

fn mean(seeds: &[FineGrainResults], value: impl Fn(&FineGrainResults) -> Option<f64>) -> Option<f64> {
    spread(seeds, value).map(|(mean, ..)| mean)
}

fn slow_answers(seeds: &[FineGrainResults]) -> Section {
    let mut table = Table::new([
        ("workload", Align::Left),
        right("poll size"),
        right("response, all answers, ms"),
        right("polling, ms"),
        right("response, slow ones discarded, ms"),
        right("polling, ms"),
        right("discarded, %"),
        right("improvement, %"),
    ]);
    for grain in Grain::PAPER {
        for size in [2, 3, 8] {
            let [all, kept] = [0, DISCARD_MS].map(|discard_ms| FineGrainRun::late(grain, size, discard_ms));
            let discarded = |r: &FineGrainResults| {
                let traffic = r.runs.get(&kept)?.load_traffic.as_ref()?;
                Some(traffic.discarded as f64 / traffic.inquiries as f64)
            };
            let better = |r: &FineGrainResults| Some(1.0 - r.ratio(kept, all)?);
            table.row([
                grain.title().to_owned(),
                size.to_string(),
                cell(mean(seeds, |r| r.response_s(all)), 1e3, 1),
                cell(mean(seeds, |r| r.poll_time_s(all)), 1e3, 2),
                cell(mean(seeds, |r| r.response_s(kept)), 1e3, 1),
                cell(mean(seeds, |r| r.poll_time_s(kept)), 1e3, 2),
                cell(mean(seeds, discarded), 1e2, 1),
                cell(mean(seeds, better), 1e2, 1),
            ]);
        }
    }
    Section::new("Slow answers, simulated: sections 3.2 and 4.2")
        .paragraph(
            "Calibration, not finding: a busy back-end reads 4.5 % of its inquiries late, by an exponential time of 26.4 ms in the mean. \
             At 90 % this gives the paper's profile: 8.1 % of the polls of three not completed within 10 ms, 5.6 % not within 20 ms. \
             Slow answers are discarded after 10 ms.",
        )
        .table(table)
}

fn sweeps(seeds: &[FineGrainResults]) -> Section {
    let responses = |run: FineGrainRun| cell(mean(seeds, |r| r.response_s(run)), 1e3, 2);
    let cpu = |run: FineGrainRun| mean(seeds, |r| Some(r.runs.get(&run)?.load_traffic.as_ref()?.cpu));
    let heads = |first: &'static str| {
        Table::new([
            right(first),
            right("poll of 2, ms"),
            right("poll of 8, ms"),
            right("CPU of inquiries, polls of 8, %"),
        ])
    };
    let mut latencies = heads("one way, µs").captioned("Network latency of an inquiry");
    for us in SWEEP_US {
        let [two, eight] = [2, 8].map(|size| swept(size, us, 0));
        latencies.row([us.to_string(), responses(two), responses(eight), cell(cpu(eight), 1e2, 2)]);
    }
    let mut costs = heads("CPU time, µs").captioned("CPU time of an inquiry at its back-end");
    for us in SWEEP_CPU_US {
        let [two, eight] = [2, 8].map(|size| swept(size, 145, us));
        costs.row([us.to_string(), responses(two), responses(eight), cell(cpu(eight), 1e2, 2)]);
    }
    Section::new("Section 5's open question: faster networks, cheaper messages")
        .paragraph("Mean response times of the Fine-Grain trace, servers 90 % busy with requests.")
        .table(latencies)
        .table(costs)
}

fn jitter(seeds: &[FineGrainResults]) -> Section {
    let mut plot = Plot::new(
        "Poisson/Exp, servers 90 % busy, 6 clients that do not count what they send",
        "mean interval, ms",
        "response over ideal",
    );
    for (name, jittered) in [("drawn from 0.5 to 1.5 times the mean", true), ("fixed, all at once", false)] {
        let value = |r: &FineGrainResults, ms: f64| {
            let source =
                LoadsFrom::Broadcast { interval_us: (ms * 1000.0) as u32, counts_own: false, jittered };
            r.over_ideal(FineGrainRun { source, ..FineGrainRun::ideal(Grain::PoissonExp, 90) })
        };
        plot = plot.with(line(seeds, name, INTERVALS_US.map(|us| f64::from(us) / 1000.0), value));
    }
    (plot.x_log, plot.y_log) = (true, true);
    Section::new("Fixed against drawn intervals of broadcasts").plot(plot)
}

fn distributions(seeds: &[FineGrainResults]) -> Section {
    let mut table = Table::new([
        ("workload", Align::Left),
        right("random"),
        right("poll of 2"),
        right("poll of 8"),
        right("broadcast, 1 s"),
        right("ideal"),
    ]);
    for grain in [Grain::Fine, Grain::FineWeibull] {
        let runs = [
            FineGrainRun::random(grain, 90),
            FineGrainRun::polled(grain, 90, 2),
            FineGrainRun::polled(grain, 90, 8),
            FineGrainRun::broadcast(grain, 90, INTERVALS_US[5], READINGS[0]),
            FineGrainRun::ideal(grain, 90),
        ];
        let cells = runs.map(|run| cell(mean(seeds, |r| r.response_s(run)), 1e3, 1));
        table.row(std::iter::once(grain.title().to_owned()).chain(cells));
    }
    Section::new("Other distributions with the same means and deviations")
        .paragraph(
            "Mean response times in ms, servers 90 % busy: gamma distributions, and Weibull distributions.",
        )
        .table(table)
}
