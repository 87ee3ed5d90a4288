//! Days and results made up for the tests of claims.

use std::collections::BTreeMap;

use plimsoll_sim::SeriesPoint;

use super::day::{Day, DaySource};
use super::plan::DayRun;
use super::results::{AdaptLoadResults, Done};
use crate::lard::Effort;
use crate::testing::{run, summary};

/// A short synthetic day of so many requests.
pub(super) fn day(requests: &str) -> Day {
    let made = plimsoll_synth::build("worldcup", &[("requests", requests)], 1).unwrap();
    let workload = crate::Workload::of_synthetic(&made, None).unwrap();
    let source = DaySource::Trace(Box::new(workload));
    Day::all(source, Effort::Quick, Default::default()).unwrap().remove(0)
}

/// A run with this mean slowdown.
pub(super) fn done(slowdown: f64) -> Done {
    let run = plimsoll_report::Run { slowdown: Some(summary(slowdown)), ..run() };
    Done { run, points: Vec::new(), classes: None }
}

/// A run with these points, each of one answer: when it ends in seconds, and its mean slowdown.
pub(super) fn done_over(points: &[(f64, f64)]) -> Done {
    let point = |&(end_s, mean_slowdown): &(f64, f64)| SeriesPoint {
        end: plimsoll_policy::Time::from_nanos((end_s * 1e9) as u64),
        answered: 1,
        mean_slowdown,
        ..SeriesPoint::default()
    };
    Done { points: points.iter().map(point).collect(), ..done(1.0) }
}

/// Results of a short day with these runs.
pub(super) fn results<const N: usize>(runs: [(DayRun, Done); N]) -> AdaptLoadResults {
    AdaptLoadResults::new(day("60000"), BTreeMap::from(runs))
}
