//! The report: verdicts, then tables and figures in the paper's order.

use plimsoll_report::{
    Claim, Plot, Report, Section, Series, SeriesStyle, claims_conclusion, claims_table, controls_conclusion,
    measurements_table,
};

use super::cells::{CsldPart, MIX_FIGURES, of_rate};
use super::handoff_tables;
use super::mixes::{of_figure, shares};
use super::plan::{WebExtent, WebRun, WebStrategy};
use super::published::TABLE_5;
use super::results::{CsldResults, seed_mean};
use super::tables;
use crate::lard::Effort;

/// What has a verdict.
#[derive(Clone, Copy)]
pub(super) struct JudgedCsld<'a> {
    pub(super) claims: &'a [Claim],
    pub(super) controls: &'a [Claim],
}

/// The report.
pub(super) fn report(
    (effort, part): (Effort, CsldPart),
    extent: &WebExtent,
    judged: JudgedCsld<'_>,
    seeds: &[CsldResults],
) -> Report {
    let names: Vec<String> = seeds.iter().map(|results| results.seed.to_string()).collect();
    let minutes = |s: f64| format!("{:.1}", s / 60.0);
    let mut report = Report::new(
        "Content sniffer based load distribution, reproduced",
        "Hyun, Jung, Lee and Maeng, “Content sniffer based load distribution in a web server cluster”, IEICE Transactions 2003",
    )
    .fact("Effort", if effort == Effort::Full { "full" } else { "quick" })
    .fact("Seeds", names.join(", "))
    .fact(
        "Simulated time",
        format!(
            "tables: {} minutes after {} of warm-up; figures 7 to 11: {} minutes in all",
            minutes(extent.measured_s),
            minutes(extent.warmup_s),
            minutes(extent.window.length_s)
        ),
    );
    report = report.conclusion(claims_conclusion(judged.claims));
    if !judged.controls.is_empty() {
        report = report.conclusion(controls_conclusion(judged.controls));
    }
    for (title, text, list) in
        [("Claims", CLAIMS_TEXT, judged.claims), ("Readings and future work", CONTROLS_TEXT, judged.controls)]
    {
        if !list.is_empty() {
            let section = Section::new(title).paragraph(text).table(claims_table(list));
            report = report.section(section.folded_table("Every measurement", measurements_table(list)));
        }
    }
    for section in tables::sections(part, seeds) {
        report = report.section(section);
    }
    if part.wants(CsldPart::Figure(6)) {
        report = report.section(figure_6(seeds));
    }
    for figure in MIX_FIGURES.iter().filter(|figure| part.wants(CsldPart::Figure(figure.number))) {
        report = report.section(mix_figure(seeds, figure.number));
    }
    for section in tables::beyond(part, seeds) {
        report = report.section(section);
    }
    if part.wants(CsldPart::Handoff) {
        report = report.section(handoff_tables::section(seeds));
    }
    report
}

const CLAIMS_TEXT: &str = "Each sentence of the paper that has a number or an order. Latencies are server latencies: from a request's \
                           arrival at the front-end to the first segment of its answer, means over all requests.";

const CONTROLS_TEXT: &str = "What must fail: readings that the paper leaves open, changed one at a time. And what the paper plans: thresholds \
                             that adapt, and a cheaper prediction of misses.";

/// A line of means over the seeds with their confidence intervals.
fn line(
    seeds: &[CsldResults],
    name: &str,
    xs: &[f64],
    value: impl Fn(&CsldResults, f64) -> Option<f64>,
) -> Series {
    let (mut points, mut errors) = (Vec::new(), Vec::new());
    for &x in xs {
        if let Some(of) = seed_mean(seeds, |r| value(r, x)) {
            let half = of.half_width.unwrap_or(0.0);
            points.push((x, of.mean));
            errors.push((of.mean - half, of.mean + half));
        }
    }
    Series::new(name, SeriesStyle::Line, points).with_errors(errors)
}

const OVER_RR: [WebStrategy; 3] = [WebStrategy::WrrI, WebStrategy::WrrA, WebStrategy::Csld];

fn figure_6(seeds: &[CsldResults]) -> Section {
    let rates: Vec<f64> = TABLE_5.iter().map(|&(rate, _)| f64::from(rate)).collect();
    let mut plot = Plot::new("C = {4}, P = 5 %", "requests per second", "latency over RR's");
    for strategy in OVER_RR {
        let ratio = |r: &CsldResults, rate: f64| {
            r.ratio(of_rate(strategy, rate as u32), of_rate(WebStrategy::RoundRobin, rate as u32))
        };
        plot = plot.with(line(seeds, &strategy.title(), &rates, ratio));
    }
    Section::new("Figure 6: normalized server latency by request rate").plot(plot)
}

/// A set of classes as the paper writes it.
pub(super) fn classes_words(classes: u64) -> String {
    let digits = classes.to_string();
    let class = |digit: char| if digit == '0' { "10".to_owned() } else { digit.to_string() };
    format!("{{{}}}", digits.chars().map(class).collect::<Vec<_>>().join(", "))
}

fn mix_figure(seeds: &[CsldResults], number: u32) -> Section {
    let classes =
        MIX_FIGURES.iter().find(|figure| figure.number == number).map_or(0, |figure| figure.classes);
    let title = format!("Figure {number}: C = {}, peak day", classes_words(classes));
    let mut section = Section::new(title).two_columns();
    let Some(first) = seeds.first() else { return section };
    let percents: Vec<f64> = shares(first, number).into_iter().map(|p| f64::from(p) / 10.0).collect();
    let of = |strategy, percent: f64| of_figure(strategy, number, (percent * 10.0).round() as u32);
    let mut normalized = Plot::new("Normalized server latency", "dynamic requests, %", "latency over RR's");
    for strategy in OVER_RR {
        let ratio = |r: &CsldResults, x: f64| r.ratio(of(strategy, x), of(WebStrategy::RoundRobin, x));
        normalized = normalized.with(line(seeds, &strategy.title(), &percents, ratio));
    }
    let mut absolute = Plot::new("Server latency", "dynamic requests, %", "seconds");
    absolute.y_log = true;
    for strategy in WebStrategy::FIGURES {
        let value = |r: &CsldResults, x: f64| r.latency_s(of(strategy, x));
        absolute = absolute.with(line(seeds, &strategy.title(), &percents, value));
    }
    section = section.plot(normalized).plot(absolute);
    section.table(tables::refusals(seeds, &percents, |strategy, x| -> WebRun { of(strategy, x) }))
}
