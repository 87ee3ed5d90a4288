//! The report on an advice: the story for somebody who decides, then what it rests on.

use plimsoll_report::format::{bytes, count, duration, number, percent};
use plimsoll_report::{AxisUnit, Plot, Report, Section, Series, SeriesStyle};

use super::advice::Advice;
use super::config_text::{haproxy_lines, nginx_lines, plimsoll_toml};
use super::contestants::{BASELINE, CONTESTANTS};
use super::notes::back_ends;
use super::tables;
use super::verdict::policy_gain;
use super::words::advice_words;
use crate::strategy::strategy_look;

/// The report of an advice on this log, which this command line repeats.
#[must_use]
pub fn advice_report(advice: &Advice, log: &str, command: &str) -> Report {
    let words = advice_words(advice);
    let mut report = Report::new("How to distribute the load of this site", format!("Log {log}"));
    for sentence in &words.answer {
        report = report.conclusion(sentence);
    }
    for (name, value) in facts(advice) {
        report = report.fact(name, value);
    }
    let paragraphs = |section: Section, texts: &[String]| {
        texts.iter().fold(section, |section, text| section.paragraph(text))
    };
    report
        .section(
            Section::new("What it gains")
                .paragraph(
                    "Each policy serves the same requests on the same back-ends, as many as they can bear. The bar is how many it serves beside \
                     turns; the line on it is the range in which that lies with 95 % certainty, judged by how much the parts of the log differ.",
                )
                .plot(gains(advice))
                .explained_table(tables::policies(advice)),
        )
        .section(
            Section::new("How many back-ends")
                .paragraph(
                    "What clusters of different sizes can serve. A cluster is large enough where the peak is at most 70 % of that, and where the \
                     99th percentile of response times keeps its bound.",
                )
                .plot(sizes(advice)),
        )
        .section(memory(advice))
        .section(paragraphs(
            Section::new("What matters").table(tables::levers(advice)),
            &words.matters,
        ))
        .section(
            paragraphs(Section::new("Where it would be wrong"), &words.loses)
                .paragraph(
                    "The table has all policies under other conditions: each as a share of the best one there, in per cent, by requests per second \
                     or by mean slowdown.",
                )
                .table(tables::stress(advice)),
        )
        .section(configuration(advice, command))
        .section(paragraphs(Section::new("How this was found"), &words.notes))
        .footer("Command", command)
        .footer("Seed", advice.seed.to_string())
}

fn facts(advice: &Advice) -> Vec<(&'static str, String)> {
    let facts = &advice.facts;
    let rate = |rps: Option<f64>| {
        rps.map_or_else(|| "unknown".to_owned(), |rps| format!("{} requests/s", number(rps)))
    };
    let mut out = vec![
        ("Requests", format!("{} in {}", count(facts.requests), duration(facts.duration_s))),
        ("Documents", format!("{}, {} together", count(facts.targets), bytes(facts.documents_bytes as f64))),
        ("Mean, busiest minute", format!("{}, {}", rate(facts.mean_rps), rate(facts.peak_rps))),
        ("99 % of the requests", format!("are for documents of {}", bytes(facts.cover99_bytes as f64))),
        ("Most requested", format!("{}, {} of the requests", facts.top_target, percent(facts.top_share))),
        ("Hardware", format!("{}, {}", advice.hardware.name, advice.hardware.summary)),
    ];
    if !advice.costs.is_empty() {
        out.push(("Costs given", advice.costs.join(", ")));
    }
    out
}

fn gains(advice: &Advice) -> Plot {
    let mut plot = Plot::new("Requests per second when saturated, beside turns", "", "times round_robin");
    let intervals: Vec<_> = CONTESTANTS
        .iter()
        .map(|of| {
            policy_gain(&advice.finals, of.policy, BASELINE, advice.target.peak_rps, advice.seed).capacity
        })
        .collect();
    plot.categories = CONTESTANTS.iter().map(|of| of.policy.to_owned()).collect();
    let points = intervals.iter().enumerate().map(|(place, of)| (place as f64, of.ratio)).collect();
    let mut series = Series::new("times as many", SeriesStyle::Bars, points)
        .with_errors(intervals.iter().map(|of| (of.low, of.high)).collect());
    series.bar_looks = CONTESTANTS.iter().map(|of| strategy_look(of.policy)).collect();
    plot.with(series)
}

fn sizes(advice: &Advice) -> Plot {
    let mut plot = Plot::new("What clusters can serve", "back-ends", "requests/s");
    (plot.x_log, plot.y_log) = (true, true);
    for size in &advice.sizes {
        let points = size.capacity_rps.iter().map(|(&backends, &rps)| (backends as f64, rps)).collect();
        let series = Series::new(size.policy, SeriesStyle::Line, points);
        plot = plot.with(series.with_look(strategy_look(size.policy)));
    }
    if !advice.target.assumed {
        plot.note = format!("To be carried at the peak: {} requests/s.", number(advice.target.peak_rps));
    }
    plot
}

fn memory(advice: &Advice) -> Section {
    let section = Section::new("How much memory");
    if advice.memory_steps.is_empty() {
        return section;
    }
    let mut plot = Plot::new(
        format!("What {} can serve with more and less memory", back_ends(advice.memory_backends)),
        "MiB of each back-end",
        "requests/s",
    );
    plot.x_log = true;
    plot.y_unit = AxisUnit::Plain;
    for (place, of) in CONTESTANTS.iter().enumerate() {
        let point = |step: &super::memory::MemoryStep| {
            Some((step.memory_bytes as f64 / f64::from(1 << 20), *step.capacity_rps.get(place)?))
        };
        let points = advice.memory_steps.iter().filter_map(point).collect();
        let series = Series::new(of.policy, SeriesStyle::Line, points);
        plot = plot.with(series.with_look(strategy_look(of.policy)));
    }
    section
        .paragraph(
            "The memory that is advised is the least with which nine tenths of the throughput are reached that the largest one gives. Where the \
             lines of turns and of the others meet, each back-end has room for what is asked for often, and locality gains nothing.",
        )
        .plot(plot)
        .folded_table("The figures", tables::memory(advice))
}

fn configuration(advice: &Advice, command: &str) -> Section {
    let mut section = Section::new("Ready to use")
        .paragraph("For plimsoll balance, in plimsoll.toml beside this report; only the addresses of your servers are missing:")
        .code(plimsoll_toml(advice, command));
    if let Some(lines) = haproxy_lines(advice) {
        section = section.paragraph("The same with HAProxy:").code(lines);
    }
    if let Some(lines) = nginx_lines(advice) {
        section = section.paragraph("And with nginx:").code(lines);
    }
    section
}
