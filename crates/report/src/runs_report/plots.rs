//! Plots of throughput, cache misses, idleness and delays.

use crate::{
    plot::{AxisUnit, Plot, Series, SeriesStyle},
    report::Section,
    run::{Run, Summary},
    runs_report::groups::{LookOf, backend_counts, by_backends, by_policy, on_backends, policies, typical},
};

/// A point of a distribution, by name.
type Percentile = (&'static str, fn(&Summary) -> f64);

/// The points of a delay distribution that a [`Summary`] holds.
pub(super) const PERCENTILES: [Percentile; 6] = [
    ("mean", |summary| summary.mean),
    ("p50", |summary| summary.p50),
    ("p90", |summary| summary.p90),
    ("p99", |summary| summary.p99),
    ("p99.9", |summary| summary.p999),
    ("max", |summary| summary.max),
];

/// The percentiles alone, which rise from left to right.
const PROFILE: &[Percentile] = PERCENTILES.split_at(1).1;

/// Title, label and unit of the y axis, and the value of a run.
type Measure = (&'static str, &'static str, AxisUnit, fn(&Run) -> Option<f64>);

const MEASURES: &[Measure] = &[
    ("Throughput", "requests per second", AxisUnit::Plain, |run| Some(run.throughput_rps)),
    ("Miss ratio", "disk reads per request", AxisUnit::Percent, |run| run.miss_ratio.map(percent)),
    ("Idle ratio", "share of time", AxisUnit::Percent, |run| Some(percent(run.idle_ratio))),
    ("CPU busy", "share of time", AxisUnit::Percent, |run| Some(percent(run.utilization.cpu))),
    ("Disk busy", "share of time", AxisUnit::Percent, |run| run.utilization.disk.map(percent)),
];

/// Throughput, miss ratio, idle ratio and busy shares against the number of back-ends, or one bar per policy where
/// there is only one number.
pub(super) fn overview(runs: &[Run], look: LookOf<'_>) -> Section {
    let mut section = Section::new("Throughput, caches and balance").two_columns();
    for (title, y_label, y_unit, value) in MEASURES {
        if runs.iter().any(|run| value(run).is_some()) {
            let mut plot = compared(runs, title, look, &value);
            (*y_label).clone_into(&mut plot.y_label);
            plot.y_unit = *y_unit;
            if *title == "Idle ratio" {
                plot.note =
                    "Share of time with a load below 40 % of t_low, averaged over back-ends.".to_owned();
            }
            section = section.plot(plot);
        }
    }
    section
}

fn percent(share: f64) -> f64 {
    share * 100.0
}

/// A plot of one value for all policies.
fn compared(runs: &[Run], title: &str, look: LookOf<'_>, value: &dyn Fn(&Run) -> Option<f64>) -> Plot {
    let counts = backend_counts(runs);
    if let [only] = counts[..] {
        let mut plot = Plot::new(format!("{title} {}", on_backends(only)), "policy", "");
        plot.categories = policies(runs).into_iter().map(str::to_owned).collect();
        plot.series = by_policy(runs, look, value);
        plot.lying = true;
        return plot;
    }
    let mut plot = Plot::new(title, "back-ends", "");
    // 1, 2, 4, 8 … back-ends would crowd at the left.
    plot.x_log = matches!((counts.first(), counts.last()), (Some(least), Some(most)) if *most >= 6 * least);
    plot.series = by_backends(runs, look, value);
    plot
}

/// Delay by percentile on the largest number of back-ends, and median and 99th percentile against their number.
pub(super) fn delays(runs: &[Run], look: LookOf<'_>) -> Section {
    let section = Section::new("Delay").two_columns();
    let counts = backend_counts(runs);
    let Some(&most) = counts.last().filter(|_| runs.iter().any(|run| run.response_time_s.is_some())) else {
        return section;
    };
    let mut profile = Plot::new(
        format!("Response time by percentile {}", on_backends(most)),
        "percentile",
        "response time",
    );
    profile.categories = PROFILE.iter().map(|(label, _)| (*label).to_owned()).collect();
    profile.y_unit = AxisUnit::Seconds;
    profile.y_log = true;
    for policy in policies(runs) {
        let points = PROFILE.iter().enumerate().filter_map(|(index, (_, pick))| {
            let value = typical(runs, policy, most, &|run| run.response_time_s.as_ref().map(pick))?;
            Some((index as f64, value))
        });
        profile.series.push(Series::new(policy, SeriesStyle::Line, points.collect()).with_look(look(policy)));
    }
    let mut section = section.plot(profile);
    let chosen =
        PERCENTILES.iter().filter(|(label, _)| counts.len() > 1 && ["p50", "p90", "p99"].contains(label));
    for (label, pick) in chosen {
        let value = |run: &Run| run.response_time_s.as_ref().map(pick);
        let mut plot = compared(runs, &format!("Response time, {label}"), look, &value);
        "response time".clone_into(&mut plot.y_label);
        plot.y_unit = AxisUnit::Seconds;
        plot.y_log = true;
        section = section.plot(plot);
    }
    section
}
