//! Tables of the report: the paper's figures beside ours.

use plimsoll_report::{Section, Table};

use super::cells::{
    CLUSTER_SIZES, CsldPart, DEVIATIONS_PERCENT, HEAVY, counted_from_syn, deviating, low_locality, of_case,
    of_rate, of_size, persistent, short_trips,
};
use super::plan::{WebRun, WebStrategy as S};
use super::predictions::Predictions;
use super::published::{REJECTED_AT_PEAK, TABLE_4, TABLE_5};
use super::results::{CsldResults, columns, seed_cell};

fn latency(seeds: &[CsldResults], run: WebRun) -> String {
    seed_cell(seeds, (1.0, 4), |r| r.latency_s(run))
}

/// Tables 4 and 5.
pub(super) fn sections(part: CsldPart, seeds: &[CsldResults]) -> Vec<Section> {
    let mut sections = Vec::new();
    if part.wants(CsldPart::Table(4)) {
        let text = "Mean server latencies in seconds: the paper's in brackets, with an asterisk where it rejected connections; ours with \
                    the confidence interval of 95 % over the seeds, and an asterisk where connections were lost after all attempts.";
        let section = Section::new("Table 4").paragraph(text).table(table_4(seeds));
        sections.push(
            section
                .folded_table("User latency, s", measured(seeds, (1.0, 3), CsldResults::user_latency_s))
                .folded_table("Refused attempts, %", measured(seeds, (1.0, 3), CsldResults::refused_percent))
                .folded_table("Lost connections, %", measured(seeds, (1.0, 3), CsldResults::lost_percent))
                .folded_table("Answers per second", measured(seeds, (1.0, 1), CsldResults::throughput_rps))
                .folded_table("CPUs busy, %", measured(seeds, (1.0, 1), CsldResults::cpu_percent)),
        );
        sections.push(predictions(seeds));
    }
    if part.wants(CsldPart::Table(5)) || part.wants(CsldPart::Figure(6)) {
        let section = Section::new("Table 5, and figure 6 in numbers");
        sections.push(section.table(table_5(seeds)).table(rejected(seeds)));
    }
    sections
}

fn table_4(seeds: &[CsldResults]) -> Table {
    let mut table = columns(TABLE_4.iter().map(|case| format!("case {}", case.number)));
    for strategy in S::TABLE_4 {
        let cell = |case: &super::published::PublishedCase| {
            let run = of_case(strategy, case.number);
            let star = |lost: bool| if lost { "*" } else { "" };
            let lost = seeds.iter().any(|r| r.lost_percent(run).is_some_and(|lost| lost > 0.0));
            let (paper_s, rejecting) = case.of(strategy).unwrap_or((f64::NAN, false));
            format!("{}{} ({paper_s:.4}{})", latency(seeds, run), star(lost), star(rejecting))
        };
        table.row(std::iter::once(strategy.title()).chain(TABLE_4.iter().map(cell)));
    }
    table
}

fn measured(
    seeds: &[CsldResults],
    form: (f64, usize),
    value: fn(&CsldResults, WebRun) -> Option<f64>,
) -> Table {
    let mut table = columns(TABLE_4.iter().map(|case| format!("case {}", case.number)));
    for strategy in S::TABLE_4 {
        let cell = |case: &super::published::PublishedCase| {
            seed_cell(seeds, form, |r| value(r, of_case(strategy, case.number)))
        };
        table.row(std::iter::once(strategy.title()).chain(TABLE_4.iter().map(cell)));
    }
    table
}

fn table_5(seeds: &[CsldResults]) -> Table {
    let rate = |rate: u32| format!("{:.1} K/s", f64::from(rate) / 1000.0);
    let mut table =
        columns(TABLE_5.iter().map(|&(rps, _)| rate(rps))).captioned("Mean server latencies in seconds");
    let paper = TABLE_5.iter().map(|(_, paper_s)| format!("{paper_s:.4}"));
    table.row(std::iter::once("RR, paper".to_owned()).chain(paper));
    for strategy in S::FIGURES {
        let cells = TABLE_5.iter().map(|&(rps, _)| latency(seeds, of_rate(strategy, rps)));
        table.row(std::iter::once(strategy.title()).chain(cells));
    }
    table
}

fn rejected(seeds: &[CsldResults]) -> Table {
    let names = ["paper", "refused attempts", "lost connections", "CPUs busy"].map(str::to_owned);
    let mut table = columns(names).captioned("At 6.3 K/s, in per cent");
    for (strategy, paper) in REJECTED_AT_PEAK {
        let run = of_rate(strategy, 6300);
        table.row([
            strategy.title(),
            format!("{paper:.1}"),
            seed_cell(seeds, (1.0, 2), |r| r.refused_percent(run)),
            seed_cell(seeds, (1.0, 2), |r| r.lost_percent(run)),
            seed_cell(seeds, (1.0, 1), |r| r.cpu_percent(run)),
        ]);
    }
    table
}

fn predictions(seeds: &[CsldResults]) -> Section {
    let names = ["right", "precision", "recall", "always a hit"].map(str::to_owned);
    let mut table = columns(names).captioned("Predictions of misses by CSLD, in per cent");
    for case in TABLE_4 {
        let run = of_case(S::Csld, case.number);
        let cell = |value: fn(&Predictions) -> f64| {
            seed_cell(seeds, (100.0, 1), |r| Predictions::of(r, run).map(|p| value(&p)))
        };
        table.row([
            format!("case {}", case.number),
            cell(Predictions::accuracy),
            cell(Predictions::precision),
            cell(Predictions::recall),
            cell(Predictions::always_hit),
        ]);
    }
    let text = "The paper: 79 to 92 % right. Precision: of the predicted misses, those that were some. Recall: of the misses, those that \
                were predicted. Always a hit: what is right of that.";
    Section::new("Predictions of misses").paragraph(text).table(table)
}

/// Refused attempts by share of dynamic requests.
pub(super) fn refusals(seeds: &[CsldResults], percents: &[f64], run: impl Fn(S, f64) -> WebRun) -> Table {
    let mut table = columns(percents.iter().map(|x| format!("{x:.1} %"))).captioned("Refused attempts");
    for strategy in S::FIGURES {
        let cells = percents.iter().map(|&x| seed_cell(seeds, (1.0, 0), |r| r.refused(run(strategy, x))));
        table.row(std::iter::once(strategy.title()).chain(cells));
    }
    table
}

/// A table of latencies: a row for each strategy, a column for each case under some condition.
fn grid(
    seeds: &[CsldResults],
    caption: &str,
    strategies: &[S],
    cells: &[(String, &dyn Fn(S) -> WebRun)],
) -> Table {
    let mut table = columns(cells.iter().map(|(name, _)| name.clone())).captioned(caption);
    for &strategy in strategies {
        let row = cells.iter().map(|(_, run)| latency(seeds, run(strategy)));
        table.row(std::iter::once(strategy.title()).chain(row));
    }
    table
}

/// Tables for what has no figure.
pub(super) fn beyond(part: CsldPart, seeds: &[CsldResults]) -> Vec<Section> {
    if !part.wants(CsldPart::Robustness) {
        return Vec::new();
    }
    let name = |number: u32| format!("case {number}");
    let adapted = [S::RoundRobin, S::WrrI, S::WrrA, S::WrrAHalf, S::Csld, S::CsldAdaptive];
    let with_lc = [S::RoundRobin, S::LeastConnections, S::WrrI, S::WrrA, S::Csld];
    let sizes = CLUSTER_SIZES.map(|nodes| (format!("{nodes} servers"), move |s| of_size(s, nodes)));
    let sizes: Vec<(String, &dyn Fn(S) -> WebRun)> = sizes.iter().map(|(n, f)| (n.clone(), f as _)).collect();
    let http: Vec<_> = HEAVY.iter().map(|&n| (name(n), move |s| persistent(s, n))).collect();
    let http: Vec<(String, &dyn Fn(S) -> WebRun)> = http.iter().map(|(n, f)| (n.clone(), f as _)).collect();
    let deviations: Vec<_> = HEAVY
        .iter()
        .flat_map(|&n| {
            DEVIATIONS_PERCENT.map(|sd| (format!("case {n}, {sd} %"), move |s| deviating(s, n, sd)))
        })
        .collect();
    let deviations: Vec<(String, &dyn Fn(S) -> WebRun)> =
        deviations.iter().map(|(n, f)| (n.clone(), f as _)).collect();
    let robust = Section::new("Robustness: sections 4.2.2 and 4.3")
        .paragraph("Mean server latencies in seconds.")
        .table(grid(seeds, "Cluster sizes, at case 4's rate for each server", &S::FIGURES, &sizes))
        .table(grid(seeds, "HTTP/1.1 as the log has it", &adapted, &http))
        .table(grid(seeds, "Standard deviation of dynamic costs", &[S::WrrA, S::Csld], &deviations))
        .table(grid(
            seeds,
            "Round trips of 20 ms, and twice as many files",
            &with_lc,
            &[
                ("20 ms, case 1".to_owned(), &|s| short_trips(s, 1)),
                ("20 ms, case 4".to_owned(), &|s| short_trips(s, 4)),
                ("files, case 1".to_owned(), &|s| low_locality(s, 1)),
                ("files, case 4".to_owned(), &|s| low_locality(s, 4)),
            ],
        ));
    vec![robust, controls(seeds)]
}

fn controls(seeds: &[CsldResults]) -> Section {
    let mut table = columns(TABLE_4.iter().map(|case| format!("case {}", case.number)))
        .captioned("Mean server latencies in seconds");
    let strategies = [
        S::RoundRobin,
        S::Csld,
        S::CsldRunsOn,
        S::CsldUncleared,
        S::CsldFine,
        S::CsldAdaptive,
        S::CsldStamped,
        S::CsldHits,
        S::WrrA,
        S::WrrDearA,
        S::WrrDearLate,
        S::LeastConnections,
    ];
    for strategy in strategies {
        let cells = TABLE_4.iter().map(|case| latency(seeds, of_case(strategy, case.number)));
        table.row(std::iter::once(strategy.title()).chain(cells));
    }
    let cells = TABLE_4.iter().map(|case| latency(seeds, counted_from_syn(case.number)));
    table.row(std::iter::once("LC, counted from the SYN".to_owned()).chain(cells));
    Section::new("Readings changed one at a time, and future work").table(table)
}
