//! Lines with the spread of the seeds, and cells of tables.

use plimsoll_report::{Align, Series, SeriesStyle};

use super::results::FineGrainResults;

/// Mean over the seeds with least and greatest; `None` without a value.
fn spread(
    seeds: &[FineGrainResults],
    value: impl Fn(&FineGrainResults) -> Option<f64>,
) -> Option<(f64, f64, f64)> {
    let values: Vec<f64> = seeds.iter().filter_map(value).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (!values.is_empty()).then_some((mean, least, most))
}

/// A line over `xs`, with the spread of the seeds.
pub(super) fn line(
    seeds: &[FineGrainResults],
    name: &str,
    xs: impl IntoIterator<Item = f64>,
    value: impl Fn(&FineGrainResults, f64) -> Option<f64>,
) -> Series {
    let mut points = Vec::new();
    let mut errors = Vec::new();
    for x in xs {
        if let Some((mean, least, most)) = spread(seeds, |r| value(r, x)) {
            points.push((x, mean));
            errors.push((least, most));
        }
    }
    Series::new(name, SeriesStyle::Line, points).with_errors(errors)
}

pub(super) fn right(text: &'static str) -> (&'static str, Align) {
    (text, Align::Right)
}

pub(super) fn cell(value: Option<f64>, scale: f64, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.decimals$}", value * scale))
}
