//! Runs by policy and number of back-ends; several seeds of one combination become a median with a spread.

use crate::{
    claim::{largest, median, smallest},
    plot::{Series, SeriesLook, SeriesStyle},
    run::Run,
};

/// `8 back-ends`.
pub(crate) fn backends_text(backends: usize) -> String {
    format!("{backends} back-end{}", if backends == 1 { "" } else { "s" })
}

/// `on 8 back-ends`.
pub(super) fn on_backends(backends: usize) -> String {
    format!("on {}", backends_text(backends))
}

/// The policies in order of their first run.
pub(crate) fn policies(runs: &[Run]) -> Vec<&str> {
    let mut policies: Vec<&str> = Vec::new();
    for run in runs {
        if !policies.contains(&run.policy.as_str()) {
            policies.push(&run.policy);
        }
    }
    policies
}

/// The numbers of back-ends, rising.
pub(crate) fn backend_counts(runs: &[Run]) -> Vec<usize> {
    let mut counts: Vec<usize> = runs.iter().map(|run| run.backends).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The values of one policy on one number of back-ends, one per seed.
fn values(runs: &[Run], policy: &str, backends: usize, value: &dyn Fn(&Run) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter(|run| run.policy == policy && run.backends == backends).filter_map(value).collect()
}

/// Median over seeds; `None` where nothing was measured.
pub(crate) fn typical(
    runs: &[Run],
    policy: &str,
    backends: usize,
    value: &dyn Fn(&Run) -> Option<f64>,
) -> Option<f64> {
    median(&values(runs, policy, backends, value))
}

/// The look of a policy by name.
pub(super) type LookOf<'a> = &'a dyn Fn(&str) -> SeriesLook;

/// Adds a point at `x`, with minimum and maximum over the values; `false` without a value.
fn push(series: &mut Series, x: f64, mut values: Vec<f64>) -> bool {
    values.retain(|value| value.is_finite());
    let (Some(middle), Some(low), Some(high)) = (median(&values), smallest(&values), largest(&values)) else {
        return false;
    };
    series.points.push((x, middle));
    series.errors.get_or_insert_default().push((low, high));
    true
}

/// Drops error bars without extent.
fn finished(mut series: Series) -> Series {
    let spread = |errors: &Vec<(f64, f64)>| errors.iter().any(|(low, high)| low < high);
    series.errors = series.errors.filter(spread);
    series
}

/// One line per policy against the number of back-ends.
pub(super) fn by_backends(
    runs: &[Run],
    look: LookOf<'_>,
    value: &dyn Fn(&Run) -> Option<f64>,
) -> Vec<Series> {
    policies(runs)
        .into_iter()
        .map(|policy| {
            let mut series = Series::new(policy, SeriesStyle::Line, Vec::new()).with_look(look(policy));
            for backends in backend_counts(runs) {
                push(&mut series, backends as f64, values(runs, policy, backends, value));
            }
            finished(series)
        })
        .collect()
}

/// One bar per policy, for runs on one number of back-ends.
pub(super) fn by_policy(runs: &[Run], look: LookOf<'_>, value: &dyn Fn(&Run) -> Option<f64>) -> Vec<Series> {
    let mut series = Series::new("", SeriesStyle::Bars, Vec::new());
    for backends in backend_counts(runs) {
        for (index, policy) in policies(runs).into_iter().enumerate() {
            if push(&mut series, index as f64, values(runs, policy, backends, value)) {
                series.bar_looks.push(look(policy));
            }
        }
    }
    vec![finished(series)]
}
