//! The report: verdicts, then figures 8 and 9.

use plimsoll_report::{
    Claim, Plot, Report, Section, Series, SeriesStyle, claims_conclusion, claims_table, controls_conclusion,
    measurements_table,
};

use super::cells::CloningPart;
use super::live::LiveCloning;
use super::live::results::{LiveMicro, LiveSeed};
use super::micro::{MicroLoad, MicroMechanism};
use super::plan::{NodeRun, NodeStrategy, NodesExtent};
use super::results::{MicroResults, SiteResults, of_site, seed_mean};
use super::sites::Site;
use super::{live, startup, tables};
use crate::lard::{Effort, calibration_conclusion};

/// What has a verdict.
pub(super) struct JudgedCloning {
    pub(super) calibration: Vec<Claim>,
    pub(super) claims: Vec<Claim>,
    pub(super) controls: Vec<Claim>,
}

/// What was run.
#[derive(Clone, Copy)]
pub(super) struct CloningRuns<'a> {
    pub(super) micro: &'a [MicroResults],
    pub(super) trace: &'a [SiteResults],
    pub(super) live: &'a LiveCloning,
    pub(super) live_micro: Option<&'a LiveMicro>,
    pub(super) live_seeds: &'a [LiveSeed],
}

/// The report.
pub(super) fn report(
    (effort, part): (Effort, CloningPart),
    extent: &NodesExtent,
    judged: &JudgedCloning,
    runs: CloningRuns<'_>,
) -> Report {
    let mut report = Report::new(
        "Socket Cloning, reproduced",
        "Sit, Wang and Lau, “Socket Cloning for cluster-based web servers”, IEEE CLUSTER 2002, section 4",
    )
    .fact("Effort", if effort == Effort::Full { "full" } else { "quick" });
    if part.wants(CloningPart::Trace) {
        let mut seeds: Vec<u64> = runs.trace.iter().map(|r| r.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        report = report
            .fact("Seeds", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
            .fact("Requests", format!("{}, the first {} of them warm-up", extent.requests, extent.warmup));
    }
    if !judged.calibration.is_empty() {
        report = report.conclusion(calibration_conclusion(&judged.calibration));
    }
    if !judged.claims.is_empty() {
        report = report.conclusion(claims_conclusion(&judged.claims));
    }
    if !judged.controls.is_empty() {
        report = report.conclusion(controls_conclusion(&judged.controls));
    }
    for (title, text, list) in [
        ("Claims", CLAIMS_TEXT, &judged.claims),
        ("Readings and what is expected", CONTROLS_TEXT, &judged.controls),
        ("Calibration", CALIBRATION_TEXT, &judged.calibration),
    ] {
        if !list.is_empty() {
            let section = Section::new(title).paragraph(text).table(claims_table(list));
            report = report.section(section.folded_table("Every measurement", measurements_table(list)));
        }
    }
    let started = runs.live.startup;
    if !runs.micro.is_empty() || started.is_some() {
        report = report.section(startup::section(started));
    }
    for micro in runs.micro {
        report = report.section(figure_8(micro));
    }
    if let Some(micro) = runs.live_micro.filter(|micro| !micro.sizes().is_empty()) {
        report = report.section(live::figures::efficiency(runs.live, micro));
    }
    if let Some(why) = &runs.live.left_out {
        report = report.section(live::figures::left_out(why));
    }
    if !runs.live_seeds.is_empty() {
        report = report.section(live::figures::nodes(runs.live, runs.live_seeds));
    }
    if !runs.live.thresholds.is_empty() {
        report = report.section(live::figures::thresholds(runs.live));
    }
    if part.wants(CloningPart::Trace) {
        report = report.section(figure_9(runs.trace));
        let others = Site::ALL.into_iter().skip(1).filter(|&site| of_site(runs.trace, site).next().is_some());
        for site in others {
            report = report.section(site_section(runs.trace, site));
        }
    }
    if part.wants(CloningPart::Trace) && effort == Effort::Full {
        report = report.section(tables::readings(runs.trace));
    }
    report
}

const CLAIMS_TEXT: &str = "Each sentence of section 4 that has a number or an order. Claims of figure 8 are measured with many requests at \
                           a time and with one: the paper does not say how many. Those of figure 9 are measured on several workloads that meet \
                           what is published of the log equally well. Where a sentence speaks of all numbers of nodes, the one that departs most is \
                           judged.";

const CONTROLS_TEXT: &str = "What the paper leaves open, changed one at a time; what it expects of LFU; and a mapping that it does not have.";

const CALIBRATION_TEXT: &str = "What is published of the log, to which the workloads are made. It is no finding, and not counted among the claims.";

fn figure_8(micro: &MicroResults) -> Section {
    let text = "Throughput of two nodes that apply a mechanism to each request, over that of a single web server on the same machine, from \
                published costs. The document is in memory.";
    let mut section = Section::new("Figure 8: normalized efficiency by size").two_columns().paragraph(text);
    for load in MicroLoad::ALL {
        let mut plot = Plot::new(load.title(), "bytes", "normalized efficiency");
        plot.x_log = true;
        for mechanism in MicroMechanism::FIGURE {
            let points = micro.curve(mechanism, load).into_iter().map(|(size, value)| (size as f64, value));
            plot = plot.with(Series::new(mechanism.title(), SeriesStyle::Line, points.collect()));
        }
        section = section.plot(plot);
    }
    for load in MicroLoad::ALL {
        section = section.table(tables::efficiencies(micro, load));
    }
    MicroLoad::ALL.into_iter().fold(section, |section, load| {
        section
            .folded_table(format!("Requests per second, {}", load.title()), tables::throughputs(micro, load))
    })
}

/// Throughput by the number of nodes, with confidence intervals over the seeds.
fn throughput(trace: &[SiteResults], site: Site) -> Plot {
    let nodes = of_site(trace, site).next().map(SiteResults::nodes).unwrap_or_default();
    let mut plot = Plot::new(site.title(), "nodes", "requests per second");
    for strategy in NodeStrategy::FIGURE {
        let (mut points, mut errors) = (Vec::new(), Vec::new());
        for &n in &nodes {
            let run = NodeRun::new(strategy, n);
            if let Some(of) = seed_mean(trace, site, |r| r.throughput_rps(run)) {
                let half = of.half_width.unwrap_or(0.0);
                points.push((n as f64, of.mean));
                errors.push((of.mean - half, of.mean + half));
            }
        }
        plot = plot.with(Series::new(strategy.title(), SeriesStyle::Line, points).with_errors(errors));
    }
    plot
}

fn rps(trace: &[SiteResults], site: Site) -> plimsoll_report::Table {
    tables::by_nodes(trace, site, ("Requests per second", 0), SiteResults::throughput_rps)
}

fn figure_9(trace: &[SiteResults]) -> Section {
    let site = Site::Berkeley;
    let (reads, server) = ("Read from the file server, % of the requests", "File server busy, %");
    let folded = |caption: &'static str, decimals, value: fn(&SiteResults, NodeRun) -> Option<f64>| {
        (caption, tables::by_nodes(trace, site, (caption, decimals), value))
    };
    let more = [
        folded(reads, 1, SiteResults::read_percent),
        folded(server, 1, SiteResults::file_server_percent),
        folded("CPUs busy, %", 1, SiteResults::cpu_percent),
        folded("Sent to clients, bytes per second and node", 0, SiteResults::sent_bytes_per_s),
    ];
    let section = Section::new("Figure 9: throughput by the number of nodes")
        .plot(throughput(trace, site))
        .table(tables::ratios(trace))
        .table(rps(trace, site));
    more.into_iter().fold(section, |section, (caption, table)| section.folded_table(caption, table))
}

fn site_section(trace: &[SiteResults], site: Site) -> Section {
    Section::new(format!("Figure 9 with {}", site.title()))
        .plot(throughput(trace, site))
        .table(rps(trace, site))
}
