//! The table of regrets, the picture, and the report around them.

use plimsoll_report::{Align, Plot, Report, Section, Series, SeriesStyle, Table, TableColumn, format};

use super::cell::Half;
use super::regret::{Standing, quantile, standings};
use super::run::CellResult;
use crate::strategy::strategy_look;

/// The bound: at most this share behind the best.
pub const BOUND: f64 = 0.03;
/// Curves in the picture: more cannot be told apart.
const CURVES: usize = 8;

/// The table of regrets over these cells.
#[must_use]
pub fn regrets_table(results: &[CellResult]) -> Table {
    let right = |title: &str, meaning: &str| TableColumn::new(title, Align::Right).meaning(meaning);
    let mut table = Table::new([
        TableColumn::new("policy", Align::Left)
            .meaning("with its defaults, or with the best parameters that were tried in each cell"),
        right("median", "median over the cells of the share behind the best policy with its best parameters"),
        right("90 %", "the same, 90th percentile"),
        right("worst", "the same, in the worst cell"),
        right("within 3 %", "cells in which it is at most 3 % behind"),
        right("99 %: median", "median share behind in the 99th percentile of slowdown, below saturation"),
        right("over hashing", "median of how many times as good as the best hashing"),
        right(
            "of the bound",
            "median share of what no policy can exceed: perfect balance, all memories as one",
        ),
    ]);
    for standing in standings(results) {
        let cells = standing.regrets.len();
        let within = standing.regrets.iter().filter(|&&regret| regret <= BOUND).count();
        let at = |share| format::percent(quantile(&standing.regrets, share));
        table.row([
            name(&standing),
            at(0.5),
            at(0.9),
            at(1.0),
            format!("{within} of {cells}"),
            format::percent(quantile(&standing.p99_regrets, 0.5)),
            format!("{:.2}", quantile(&standing.over_hashing, 0.5)),
            format::percent(quantile(&standing.of_bound, 0.5)),
        ]);
    }
    table
}

fn name(standing: &Standing) -> String {
    let suffix = if standing.searched { ", best parameters" } else { "" };
    format!("{}{suffix}", standing.policy)
}

/// Where each policy loses: its regrets in rising order.
#[must_use]
pub fn picture(results: &[CellResult]) -> Plot {
    let mut plot = Plot::new(
        "Share behind the best policy, cells in rising order",
        "share of the cells",
        "behind the best",
    );
    plot.y_unit = plimsoll_report::AxisUnit::Percent;
    for standing in standings(results).iter().filter(|standing| !standing.searched).take(CURVES) {
        let mut sorted = standing.regrets.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1).max(1) as f64;
        let points =
            sorted.iter().enumerate().map(|(at, regret)| (at as f64 / last, 100.0 * regret)).collect();
        let series = Series::new(&standing.policy, SeriesStyle::Line, points);
        plot = plot.with(series.with_look(strategy_look(&standing.policy)));
    }
    plot
}

/// The cells in which this policy is more than the bound behind, the worst first.
#[must_use]
pub fn lost_cells(results: &[CellResult], policy: &str) -> Table {
    let mut table = Table::new([
        ("cell", Align::Left),
        ("half", Align::Left),
        ("behind", Align::Right),
        ("best there", Align::Left),
        ("of the bound", Align::Right),
        ("best, of the bound", Align::Right),
    ]);
    let mut rows: Vec<(f64, [String; 6])> = Vec::new();
    for result in results {
        let one = std::slice::from_ref(result);
        let all = standings(one);
        let own = all.iter().find(|standing| standing.policy == policy && !standing.searched);
        let regret = own.and_then(|standing| standing.regrets.first()).copied().unwrap_or(0.0);
        let best = all.iter().find(|standing| standing.regrets.first() == Some(&0.0));
        let of_bound = |standing: Option<&Standing>| {
            standing.and_then(|of| of.of_bound.first()).map_or_else(String::new, |&of| format::percent(of))
        };
        if regret > BOUND {
            let row = [
                result.cell.title(),
                result.cell.half.name().to_owned(),
                format::percent(regret),
                best.map(name).unwrap_or_default(),
                of_bound(own),
                of_bound(best),
            ];
            rows.push((regret, row));
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, row) in rows {
        table.row(row);
    }
    table
}

/// One sentence on a policy in these cells.
#[must_use]
pub fn conclusion(results: &[CellResult], policy: &str) -> String {
    let all = standings(results);
    let Some(of) = all.iter().find(|standing| standing.policy == policy && !standing.searched) else {
        return format!("{policy} was not among the policies.");
    };
    let within = of.regrets.iter().filter(|&&regret| regret <= BOUND).count();
    format!(
        "{policy} is within 3 % of the best policy with its best parameters in {within} of {} cells; behind by {} at the median and {} at \
         the worst; {:.2} times as good as the best hashing at the median.",
        of.regrets.len(),
        format::percent(quantile(&of.regrets, 0.5)),
        format::percent(quantile(&of.regrets, 1.0)),
        quantile(&of.over_hashing, 0.5),
    )
}

/// The report on all cells.
#[must_use]
pub fn report(results: &[CellResult], policy: &str) -> Report {
    let mut report = Report::new("Stress matrix", "where does each policy lose, and how much?")
        .fact("Cells", results.len().to_string())
        .conclusion(conclusion(results, policy))
        .section(
            Section::new("Where each policy loses").plot(picture(results)).table(regrets_table(results)),
        );
    for half in [Half::Design, Half::Judging, Half::Traces] {
        let of_half: Vec<CellResult> = results.iter().filter(|of| of.cell.half == half).cloned().collect();
        if !of_half.is_empty() {
            let section = Section::new(match half {
                Half::Traces => "Real traces".to_owned(),
                Half::Design | Half::Judging => format!("The {} half", half.name()),
            })
            .table(regrets_table(&of_half));
            report = report.section(section);
        }
    }
    report.section(Section::new(format!("Where {policy} is behind")).table(lost_cells(results, policy)))
}
