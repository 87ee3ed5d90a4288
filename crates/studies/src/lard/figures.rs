//! The figures as plots, and the report around them.

use plimsoll_report::{
    Align, Claim, Plot, Report, Section, Series, SeriesStyle, Table, claims_conclusion, claims_table,
    measurements_table,
};

use super::calibration::calibration_conclusion;
use super::plan::{ALL, Effort, Family, HOT_SHARES, HOT_SIZES, Instance, Variant};
use super::results::{LARD, LARD_R, LardResults, View, WRR};
use crate::strategy::strategy_look;

fn is(family: Family) -> impl Fn(Family) -> bool {
    move |f| f == family
}

/// The report: verdicts first, then the figures in the paper's order.
pub(super) fn report(
    effort: Effort,
    figure: Option<u32>,
    calibration: &[Claim],
    claims: &[Claim],
    results: &LardResults,
) -> Report {
    let mut report = Report::new(
        "LARD, reproduced",
        "Pai et al., “Locality-aware request distribution in cluster-based network servers”, ASPLOS 1998, sections 3 and 4",
    )
    .fact("Effort", if effort == Effort::Full { "full" } else { "quick" })
    .conclusion(conclusion(calibration, claims));
    if !claims.is_empty() {
        report = report.section(
            Section::new("Claims")
                .paragraph(
                    "Each claim is measured on several workloads that meet the published statistics of the trace \
                     equally well but differ where nothing is published. Ours is the median with the smallest and \
                     the largest value. A claim holds when the measurement on every workload agrees, partly when \
                     some do. Where the paper's sentence speaks of all cluster sizes, the size that departs most is \
                     judged.",
                )
                .table(claims_table(claims))
                .folded_table("Every measurement", measurements_table(claims)),
        );
    }
    if !calibration.is_empty() {
        report = report.section(
            Section::new("Calibration")
                .paragraph(
                    "The published statistics that the workloads are made to meet. They are no findings and are not \
                     counted among the claims.",
                )
                .table(claims_table(calibration)),
        );
    }
    let wants = |n: u32| figure.is_none_or(|f| f == n);
    for (n, family) in [(5, Family::Rice), (6, Family::Ibm)] {
        if wants(n) {
            report = report.section(workloads(n, family, results));
        }
    }
    for section in main_figures(results).into_iter().filter(|(n, _)| wants(*n)).map(|(_, s)| s) {
        report = report.section(section);
    }
    if figure.is_none() {
        report = report.section(hot_targets(results));
    }
    report.section(names())
}

/// The paper's names of the strategies; a claim quotes them.
const PAPER_NAMES: [(&str, &str); 6] = [
    ("WRR", WRR),
    ("LB", "uri_hash"),
    ("LB/GC", "lb_gc"),
    ("LARD", LARD),
    ("LARD/R", LARD_R),
    ("WRR/GMS", "wrr_gms"),
];

fn names() -> Section {
    let mut table = Table::new([("in the paper and the claims", Align::Left), ("here", Align::Left)]);
    for (paper, ours) in PAPER_NAMES {
        table.row([paper, ours]);
    }
    Section::new("Names").table(table)
}

fn conclusion(calibration: &[Claim], claims: &[Claim]) -> String {
    let parts = [
        (!claims.is_empty()).then(|| claims_conclusion(claims)),
        (!calibration.is_empty()).then(|| calibration_conclusion(calibration)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn workloads(number: u32, family: Family, results: &LardResults) -> Section {
    let trace = if family == Family::Ibm { "IBM" } else { "Rice" };
    let mut section = Section::new(format!("Figure {number}: {trace} trace")).two_columns();
    let left = |t: &'static str| (t, Align::Left);
    let right = |t: &'static str| (t, Align::Right);
    let mut table = Table::new([
        left("Workload"),
        right("Targets"),
        right("MiB"),
        right("97 %, MiB"),
        right("98 %, MiB"),
        right("99 %, MiB"),
        right("Top target"),
    ]);
    let paper: [&str; 7] = if family == Family::Ibm {
        ["published", "38527", "1029", "51", "80", "182", "5 %"]
    } else {
        ["published", "37703", "1418", "560", "705", "927", "2 %"]
    };
    table.row(paper);
    let instances = results.instances(is(family));
    for instance in &instances {
        let Some(p) = results.profile(instance) else {
            continue;
        };
        let whole = |x: f64| format!("{x:.0}");
        table.row([
            label(instance),
            whole(p.targets),
            whole(p.total_mib),
            whole(p.cover_mib[0]),
            whole(p.cover_mib[1]),
            whole(p.cover_mib[2]),
            format!("{:.2} %", 100.0 * p.top_share),
        ]);
    }
    let first_seed = instances.iter().map(|i| i.seed).min();
    for instance in instances.iter().filter(|i| Some(i.seed) == first_seed) {
        let Some(p) = results.profile(instance) else {
            continue;
        };
        let title = format!("{trace}, generator {}", instance.generator);
        let mut plot = Plot::new(title, "targets by falling request frequency", "cumulative share");
        plot = plot.with(Series::new("requests", SeriesStyle::Line, p.requests_curve.clone()));
        plot = plot.with(Series::new("bytes", SeriesStyle::Line, p.bytes_curve.clone()));
        section = section.plot(plot);
    }
    section.table(table)
}

/// Median over the workloads with the spread, for each cluster size.
fn curve(
    title: &str,
    instances: &[Instance],
    results: &LardResults,
    strategy: &str,
    variant: Variant,
    value: impl Fn(&View<'_>, usize) -> Option<f64>,
) -> Series {
    let sizes = instances.first().map(|i| results.on(*i).sizes(strategy, variant)).unwrap_or_default();
    let (mut points, mut spread) = (Vec::new(), Vec::new());
    for backends in sizes {
        let mut values: Vec<f64> =
            instances.iter().filter_map(|i| value(&results.on(*i), backends)).collect();
        values.sort_by(f64::total_cmp);
        if let (Some(first), Some(last)) = (values.first(), values.last()) {
            points.push((backends as f64, values[values.len() / 2]));
            spread.push((*first, *last));
        }
    }
    Series::new(title, SeriesStyle::Line, points).with_errors(spread)
}

fn by_strategy(
    title: &str,
    y_label: &str,
    instances: &[Instance],
    results: &LardResults,
    value: fn(&View<'_>, &str, usize) -> Option<f64>,
) -> Plot {
    let mut plot = Plot::new(title, "back-ends", y_label);
    for strategy in ALL {
        let of = |v: &View<'_>, n| value(v, strategy, n);
        let curve = curve(strategy, instances, results, strategy, Variant::Base, of);
        plot = plot.with(curve.with_look(strategy_look(strategy)));
    }
    plot.note = "Median over the workloads; bars from the smallest to the largest.".into();
    plot
}

fn by_variant(
    title: &str,
    strategy: &str,
    variants: [(&str, Variant); 4],
    instances: &[Instance],
    results: &LardResults,
) -> Plot {
    let mut plot = Plot::new(format!("{strategy}: {title}"), "back-ends", "requests/s");
    for (label, variant) in variants {
        let of = |v: &View<'_>, n| v.rps_of(strategy, n, variant);
        let curve = curve(label, instances, results, strategy, variant, of);
        if !curve.points.is_empty() {
            plot = plot.with(curve);
        }
    }
    plot
}

/// Figures 7 to 14 by number, and the delays of section 4.4 as number 0.
fn main_figures(results: &LardResults) -> Vec<(u32, Section)> {
    let mut sections = by_strategies(results);
    sections.extend(by_speeds(results));
    let rice = results.instances(is(Family::Rice));
    let delay = by_strategy("Mean delay, Rice", "s", &rice, results, |v, s, n| v.delay_s(s, n));
    sections.push((0, Section::new("Section 4.4: delay").plot(delay)));
    sections
}

/// Figures 7 to 10: the strategies side by side.
fn by_strategies(results: &LardResults) -> Vec<(u32, Section)> {
    let rice = results.instances(is(Family::Rice));
    let ibm = results.instances(is(Family::Ibm));
    let misses = "disk reads per request, %";
    let idle = "time below 40 % of t_low, %";
    let plots = [
        by_strategy("Throughput, Rice", "requests/s", &rice, results, |v, s, n| v.rps(s, n)),
        by_strategy("Cache miss ratio, Rice", misses, &rice, results, |v, s, n| v.miss_percent(s, n)),
        by_strategy("Idle time, Rice", idle, &rice, results, |v, s, n| v.idle_percent(s, n)),
        by_strategy("Throughput, IBM", "requests/s", &ibm, results, |v, s, n| v.rps(s, n)),
    ];
    let section = |(number, plot)| (number, Section::new(format!("Figure {number}")).plot(plot));
    (7..).zip(plots).map(section).collect()
}

/// Figures 11 to 14: one strategy at several speeds or numbers of disks.
fn by_speeds(results: &LardResults) -> Vec<(u32, Section)> {
    // Compare only workloads that were run at every speed.
    let varied: Vec<Instance> = results
        .instances(is(Family::Rice))
        .into_iter()
        .filter(|i| {
            let v = results.on(*i);
            [Variant::Cpu(4), Variant::Disks(4)].iter().any(|&variant| !v.sizes(WRR, variant).is_empty())
        })
        .collect();
    let cpus =
        [("1x", Variant::Base), ("2x", Variant::Cpu(2)), ("3x", Variant::Cpu(3)), ("4x", Variant::Cpu(4))];
    let disks = [
        ("1 disk", Variant::Base),
        ("2 disks", Variant::Disks(2)),
        ("3 disks", Variant::Disks(3)),
        ("4 disks", Variant::Disks(4)),
    ];
    let plot = |title, strategy, variants| by_variant(title, strategy, variants, &varied, results);
    vec![
        (11, Section::new("Figure 11").plot(plot("CPU speed, Rice", WRR, cpus))),
        (
            12,
            Section::new("Figure 12").two_columns().plot(plot("CPU speed, Rice", LARD_R, cpus)).plot(plot(
                "CPU speed, Rice",
                LARD,
                cpus,
            )),
        ),
        (13, Section::new("Figure 13").plot(plot("disks, Rice", WRR, disks))),
        (14, Section::new("Figure 14").plot(plot("disks, Rice", LARD_R, disks))),
    ]
}

fn hot_targets(results: &LardResults) -> Section {
    let mut plot = Plot::new(
        "lard_r against lard with hot targets, eight back-ends",
        "share of the requests for hot targets, %",
        "throughput gain of lard_r, %",
    );
    for size in HOT_SIZES {
        let mut points = Vec::new();
        for share in HOT_SHARES {
            let family = Family::Hot { size_bytes: size, share_percent: share };
            for instance in results.instances(is(family)) {
                if let Some(ratio) = results.on(instance).ratio(LARD_R, LARD, 8) {
                    points.push((f64::from(share), 100.0 * (ratio - 1.0)));
                }
            }
        }
        if !points.is_empty() {
            plot = plot.with(Series::new(format!("{} KB", size / 1024), SeriesStyle::Line, points));
        }
    }
    Section::new("Section 4.2: hot targets").plot(plot)
}

/// A workload instance in the words of the report.
fn label(instance: &Instance) -> String {
    format!("{}, seed {}", instance.name(), instance.seed)
}
