//! Load over time, one plot per run.

use crate::{
    plot::{Plot, Series, SeriesStyle},
    report::Section,
    run::Run,
    runs_report::groups::on_backends,
    runs_table::Ranking,
};

/// The most lines that can be told apart; beyond that, mean and range are drawn.
const MOST_LINES: usize = 16;

/// Points per line; neighbouring buckets beyond that are averaged. The CSV holds them all.
const MOST_POINTS: usize = 240;

/// Load of every back-end over time, for the runs that recorded it; folded for policies that matter less, where there are many.
pub(super) fn section(runs: &[Run], saturated: bool) -> Section {
    let ranking = Ranking::of(runs, saturated);
    let several_seeds = runs.windows(2).any(|pair| pair[0].seed != pair[1].seed);
    let (mut shown, mut folded) = (Vec::new(), Vec::new());
    for run in runs.iter().filter(|run| run.load_series.load.iter().any(|load| !load.is_empty())) {
        let mut title = format!("{} {}", run.policy.clone(), on_backends(run.backends));
        if several_seeds {
            title.push_str(&format!(", seed {}", run.seed));
        }
        let place = if ranking.notable.contains(&run.policy.as_str()) { &mut shown } else { &mut folded };
        place.push(plot(run, title));
    }
    let section = Section::new("Load over time").two_columns();
    if shown.is_empty() {
        return section;
    }
    let section = section
        .paragraph("Requests assigned to a back-end and not completed, averaged over each stretch of time.");
    let line = format!("The same of {}", ranking.others.join(", "));
    shown.into_iter().fold(section, Section::plot).folded_plots(line, folded)
}

fn plot(run: &Run, title: String) -> Plot {
    let series = &run.load_series;
    let buckets = series.load.iter().map(Vec::len).max().unwrap_or(0);
    let merged = buckets.div_ceil(MOST_POINTS).max(1);
    let width_s = series.bucket_s * merged as f64;
    // Each mean stands at the middle of its stretch.
    let at = |index: usize| (index as f64 + 0.5) * width_s;
    let lines: Vec<Vec<f64>> = series.load.iter().map(|load| averaged(load, merged)).collect();
    let mut plot = Plot::new(title, "time (s)", "load (requests)");
    if lines.len() <= MOST_LINES {
        for (backend, line) in lines.iter().enumerate() {
            let points = line.iter().enumerate().map(|(index, &load)| (at(index), load)).collect();
            plot.series.push(Series::new(format!("back-end {backend}"), SeriesStyle::Line, points));
        }
        return plot;
    }
    let mut points = Vec::new();
    let mut errors = Vec::new();
    for index in 0..buckets.div_ceil(merged) {
        let loads: Vec<f64> = lines.iter().filter_map(|line| line.get(index)).copied().collect();
        points.push((at(index), loads.iter().sum::<f64>() / loads.len() as f64));
        errors.push(
            loads.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &load| {
                (low.min(load), high.max(load))
            }),
        );
    }
    plot.series.push(Series::new("mean", SeriesStyle::Band, points).with_errors(errors));
    plot.note = format!(
        "Mean over {} back-ends; the shaded range is from the least to the most loaded.",
        lines.len()
    );
    plot
}

fn averaged(load: &[f64], merged: usize) -> Vec<f64> {
    load.chunks(merged).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_averaged() {
        assert_eq!(averaged(&[1.0, 3.0, 5.0], 2), [2.0, 5.0]);
        assert_eq!(averaged(&[], 1), Vec::<f64>::new());
    }
}
