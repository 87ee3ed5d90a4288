//! The figures as plots, and the report around them.

use std::collections::BTreeSet;

use plimsoll_report::{
    AxisUnit, Claim, Plot, Report, Section, Series, SeriesStyle, claims_conclusion, claims_table,
    measurements_table,
};

use super::exact::{ExactCheck, exact_conclusion, exact_table};
use super::figure_parts::line;
use super::plan::{FineGrainRun, Grain, INTERVALS_US, LOADS, POLL_SIZES, READINGS};
use super::prototype::ServicePrototype;
use super::results::{AGE_LOADS, AGES, FineGrainResults};
use super::rule::BroadcastReading;
use super::theory;
use super::{figures_beyond, figures_prototype};
use crate::lard::Effort;

/// What has a verdict.
#[derive(Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) exact: &'a [ExactCheck],
    pub(super) calibration: &'a [Claim],
    pub(super) claims: &'a [Claim],
}

/// The report: verdicts first, then the figures in the paper's order, then what goes beyond it.
pub(super) fn report(
    (effort, figure): (Effort, Option<u32>),
    judged: Judged<'_>,
    seeds: &[FineGrainResults],
    prototype: &ServicePrototype,
) -> Report {
    let measured = prototype.seeds.iter().map(|runs| runs.seed);
    let used: BTreeSet<u64> = seeds.iter().map(|results| results.seed).chain(measured).collect();
    let names: Vec<String> = used.iter().map(u64::to_string).collect();
    let report = Report::new(
        "Fine-grain services, reproduced",
        "Shen, Yang and Chu, “Cluster load balancing for fine-grain network services”, IPDPS 2002",
    )
    .fact("Effort", if effort == Effort::Full { "full" } else { "quick" })
    .fact("Seeds", names.join(", "))
    .fact("Workloads", Grain::PAPER.map(Grain::title).join(", "));
    let mut report = verdicts(report, judged);
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
        report = figures_beyond::sections(seeds).into_iter().fold(report, Report::section);
    }
    figures_prototype::sections(prototype).into_iter().fold(report, Report::section)
}

/// The verdicts as tables.
fn verdicts(report: Report, judged: Judged<'_>) -> Report {
    let Judged { exact, calibration, claims } = judged;
    let mut report = report.conclusion(claims_conclusion(claims));
    if !exact.is_empty() {
        report = report.conclusion(exact_conclusion(exact));
    }
    let of = |title, text, list| {
        let section = Section::new(title).paragraph(text).table(claims_table(list));
        section.folded_table("Every measurement", measurements_table(list))
    };
    if !claims.is_empty() {
        report = report.section(of("Claims", CLAIMS_TEXT, claims));
    }
    if !exact.is_empty() {
        report = report.section(Section::new("Exact checks").paragraph(EXACT_TEXT).table(exact_table(exact)));
    }
    if !calibration.is_empty() {
        report = report.section(of("Calibration", CALIBRATION_TEXT, calibration));
    }
    report
}

const CLAIMS_TEXT: &str = "Each sentence of the paper that has a number or an order, on workloads with the means and deviations of its \
                           table 1 (the traces were never published). A claim that depends on what the paper leaves open is judged \
                           under each reading.";

const EXACT_TEXT: &str = "Mean response times without delays, in mean service times, beside what theory gives: the simulator and its policies, \
                          not the paper, are on trial here. Each run has a workload of its own. A check holds when theory, which is \
                          known to the digits that are shown, lies within the confidence interval of 99 %, and when that is narrow \
                          enough to say something. The command fails where one of them does.";

const CALIBRATION_TEXT: &str = "The paper's profile of slow answers, to which those of simulation and prototype are calibrated, and what counts as \
                                full load: settings, not findings.";

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
            "The paper leaves open how many clients there are, and what they do between two announcements: go by the last one alone, so that \
             all requests of that time go to the same server, or count each request that they send as load of its server. One line for \
             each reading.",
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
            // At 50 % no line reaches far enough for powers of ten.
            (plot.x_log, plot.y_log) = (true, load > 50);
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
