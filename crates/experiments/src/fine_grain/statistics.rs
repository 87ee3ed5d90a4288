//! From accesses to the figures of a run.

use plimsoll_studies::fine_grain::{ServiceChoice, ServicePoint};

use super::access::ClientTally;
use super::plan::{PlannedPoint, PointLength};

/// Batches of which the standard error of a mean is taken.
const BATCHES: usize = 10;

/// A mean, with its standard error from batches of successive values, which depend on one another less than the values do.
pub(super) fn mean_with_error(values: &[f64]) -> (f64, f64) {
    let mean_of = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mean = mean_of(values);
    if values.len() < 2 * BATCHES {
        return (mean, f64::NAN);
    }
    let batches: Vec<f64> = values.chunks_exact(values.len() / BATCHES).take(BATCHES).map(mean_of).collect();
    let square = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
    (mean, (square / BATCHES as f64).sqrt())
}

/// What a run has shown.
pub(super) fn point(
    planned: PlannedPoint,
    length: PointLength,
    tally: &ClientTally,
    machine_busy: Option<f64>,
) -> ServicePoint {
    let [from_ns, to_ns] =
        [length.warmup_s, length.warmup_s + length.measured_s].map(|seconds| (seconds * 1e9) as u64);
    let is_measured = |due_ns: u64| (from_ns..to_ns).contains(&due_ns);
    let mut measured: Vec<_> = tally.answered.iter().filter(|access| is_measured(access.due_ns)).collect();
    measured.sort_unstable_by_key(|access| access.due_ns);
    let responses: Vec<f64> = measured.iter().map(|access| access.response_ns as f64 / 1e9).collect();
    let (response_s, response_error_s) = mean_with_error(&responses);
    let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
    let over = |limit_ns: u64| {
        let count = measured.iter().filter(|access| access.asking_ns > limit_ns).count();
        share(count as f64, measured.len() as f64)
    };
    let polls = matches!(planned.choice, ServiceChoice::Polled { .. });
    ServicePoint {
        grain: planned.grain,
        load_percent: planned.load_percent,
        choice: planned.choice,
        accesses: measured.len() as u64,
        unanswered: tally.sent.saturating_sub(tally.answered.len() as u64),
        response_s,
        response_error_s,
        asking_s: share(
            measured.iter().map(|access| access.asking_ns as f64 / 1e9).sum(),
            measured.len() as f64,
        ),
        over_10_ms: if polls { over(10_000_000) } else { 0.0 },
        over_20_ms: if polls { over(20_000_000) } else { 0.0 },
        discarded: share(tally.discarded as f64, tally.inquiries as f64),
        machine_busy,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_studies::fine_grain::Grain;

    use super::super::access::AnsweredAccess;
    use super::*;

    #[test]
    fn a_mean_and_its_error_by_hand() {
        assert!(mean_with_error(&[1.0, 3.0]).1.is_nan());
        let values: Vec<f64> = (0..20).map(|n| f64::from(n / 2 % 2)).collect();
        let (mean, error) = mean_with_error(&values);
        // Ten batches of 0 and 1 in turn: deviation √(10 · 0.25 / 9), over √10.
        assert!((mean - 0.5).abs() < 1e-12 && (error - (0.25_f64 / 9.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn only_what_arrives_in_the_time_of_measurement_counts() {
        let access = |due_ms: u64, asking_ms: u64| AnsweredAccess {
            due_ns: due_ms * 1_000_000,
            response_ns: 40_000_000,
            asking_ns: asking_ms * 1_000_000,
        };
        let tally = ClientTally {
            answered: vec![
                access(5, 90),
                access(1500, 1),
                access(1600, 11),
                access(1700, 30),
                access(2500, 1),
            ],
            polls: 6,
            inquiries: 18,
            discarded: 9,
            sent: 6,
        };
        let planned = PlannedPoint {
            grain: Grain::Fine,
            load_percent: 90,
            choice: ServiceChoice::Polled { size: 3, discards: true },
        };
        let point = point(planned, PointLength { warmup_s: 1.0, measured_s: 1.0 }, &tally, None);
        assert_eq!((point.accesses, point.unanswered), (3, 1));
        assert!((point.response_s - 0.04).abs() < 1e-12 && (point.asking_s - 0.014).abs() < 1e-12);
        assert!((point.over_10_ms - 2.0 / 3.0).abs() < 1e-12 && (point.over_20_ms - 1.0 / 3.0).abs() < 1e-12);
        assert!((point.discarded - 0.5).abs() < 1e-12);
    }
}
