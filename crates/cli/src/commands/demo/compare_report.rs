//! Table and report of `plimsoll demo --compare`.

use plimsoll_experiments::compare::{CellLoser, CompareCell, ComparedChooser, MeasuredSystem};
use plimsoll_report::format::{duration, number, or_dash, percent_number, whole_percent};
use plimsoll_report::{
    Align, Cell, Plot, Report, Row, Section, Series, SeriesStyle, Table, TableColumn, Tone,
};

/// A system in a cell, live and simulated.
pub(super) struct ComparedOutcome {
    pub(super) measured: MeasuredSystem,
    pub(super) simulated_rps: f64,
    /// Share of the time for which the CPUs of this machine were busy, start and warm-up included.
    pub(super) machine_busy: Option<f64>,
}

/// A cell with all systems.
pub(super) struct ComparedCell {
    pub(super) cell: &'static CompareCell,
    pub(super) outcomes: Vec<ComparedOutcome>,
}

fn measured_rps(outcome: &ComparedOutcome) -> f64 {
    outcome.measured.trial.summary.throughput_rps()
}

fn best(of: &ComparedCell, value: fn(&ComparedOutcome) -> f64) -> f64 {
    of.outcomes.iter().map(value).fold(f64::MIN_POSITIVE, f64::max)
}

/// All cells, each under a heading.
pub(super) fn cells_table(compared: &[ComparedCell]) -> Table {
    let right = |title: &str, meaning: &str| TableColumn::new(title, Align::Right).meaning(meaning);
    let mut table = Table::new([
        TableColumn::new("balancer", Align::Left),
        right("req/s", "measured"),
        right("of best%", "its share of the best system of the cell"),
        right("miss%", "disk reads per 100 requests").rank(2),
        right("p99", "response time that one request of 100 exceeded").rank(1),
        right("simulated", "the simulator's requests per second for the policy that stands for it"),
        right("of best%", "its share of the best one in the simulator"),
    ]);
    for of in compared {
        let (most, most_simulated) = (best(of, measured_rps), best(of, |outcome| outcome.simulated_rps));
        let heading = format!("{}. {}: {}", of.cell.number, of.cell.loser.words(), of.cell.title());
        for (place, outcome) in of.outcomes.iter().enumerate() {
            let rps = measured_rps(outcome);
            let summary = &outcome.measured.trial.summary;
            let tone = if rps >= 0.97 * most { Tone::Good } else { Tone::Neutral };
            table.rows.push(Row {
                cells: vec![
                    outcome.measured.system.name.into(),
                    number(rps).into(),
                    Cell::toned(whole_percent(rps / most), tone),
                    or_dash(summary.miss_ratio(), percent_number).into(),
                    duration(summary.quantile(0.99).as_secs_f64()).into(),
                    number(outcome.simulated_rps).into(),
                    whole_percent(outcome.simulated_rps / most_simulated).into(),
                ],
                heading: (place == 0).then(|| heading.clone()),
                ..Row::default()
            });
        }
    }
    table
}

/// The best of those that a cell is meant to show losing.
fn loser(of: &ComparedCell) -> Option<&ComparedOutcome> {
    let loses = |outcome: &&ComparedOutcome| {
        let system = outcome.measured.system;
        match of.cell.loser {
            CellLoser::Hashing => system.simulated_as == "uri_hash",
            CellLoser::BoundedHashing => system.simulated_as == "bounded_load_hash",
            CellLoser::LardR => system.chooser == ComparedChooser::Policy("lard_r"),
        }
    };
    of.outcomes.iter().filter(loses).max_by(|a, b| measured_rps(a).total_cmp(&measured_rps(b)))
}

/// Whether what is meant to lose did, in a sentence.
pub(super) fn verdict(of: &ComparedCell) -> Option<String> {
    let lost = loser(of)?;
    let won = of.outcomes.iter().max_by(|a, b| measured_rps(a).total_cmp(&measured_rps(b)))?;
    let share = measured_rps(lost) / measured_rps(won);
    let simulated = lost.simulated_rps / best(of, |outcome| outcome.simulated_rps);
    let names = [lost.measured.system.name, won.measured.system.name];
    Some(sentence(of.cell, names, share, simulated))
}

/// The sentence on a cell in which what was meant to lose, the first of these, served this share of what the best one did, the second.
fn sentence(cell: &CompareCell, [lost, won]: [&str; 2], share: f64, simulated: f64) -> String {
    let (number, words, simulated) = (cell.number, cell.loser.words(), whole_percent(simulated));
    if share >= 1.0 {
        return format!(
            "Cell {number}, {words}: not in this run, in which {lost} served the most ({simulated} % of the best simulated). It is meant to \
             lose because {}.",
            cell.why
        );
    }
    format!(
        "Cell {number}, {words}: {lost} served {} % of what {won} did, the best ({simulated} % of the best simulated); {}.",
        whole_percent(share),
        cell.why
    )
}

fn plot(of: &ComparedCell) -> Plot {
    let title = format!("{}. {}", of.cell.number, of.cell.title());
    let mut plot = Plot::new(title, "", "requests/s");
    plot.categories = of.outcomes.iter().map(|outcome| outcome.measured.system.name.to_owned()).collect();
    let bars = |name: &str, value: fn(&ComparedOutcome) -> f64| {
        let points = of.outcomes.iter().enumerate().map(|(place, outcome)| (place as f64, value(outcome)));
        Series::new(name, SeriesStyle::Bars, points.collect())
    };
    plot.note = of.cell.why.to_owned();
    plot.with(bars("measured", measured_rps)).with(bars("simulated", |outcome| outcome.simulated_rps))
}

/// The report.
pub(super) fn cells_report(compared: &[ComparedCell]) -> Report {
    let title = "Plimsoll beside HAProxy and nginx";
    let mut report =
        Report::new(title, "live on loopback, and simulated, where one way of choosing is known to lose");
    for line in compared.iter().filter_map(verdict) {
        report = report.conclusion(line);
    }
    let plots = compared
        .iter()
        .fold(Section::new("Cell by cell").two_columns(), |section, of| section.plot(plot(of)));
    report.section(plots).section(Section::new("All figures").explained_table(cells_table(compared)))
}

#[cfg(test)]
mod tests {
    use plimsoll_experiments::compare::CELLS;

    use super::*;

    #[test]
    fn who_was_to_lose_and_won_is_not_said_to_have_lost() {
        let cell = CELLS.iter().find(|cell| cell.loser == CellLoser::LardR).unwrap();
        let won = sentence(cell, ["lard_r"; 2], 1.0, 0.9);
        assert!(won.contains("LARD/R loses: not in this run, in which lard_r served the most"), "{won}");
        let lost = sentence(cell, ["lard_r", "lard_auto"], 0.7, 0.9);
        assert!(lost.contains("lard_r served 70 % of what lard_auto did, the best (90 %"), "{lost}");
    }
}
