//! The runs of the study, with queries for claims and figures.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_report::{LoadSeries, Run};
use plimsoll_sim::{SeriesPoint, SizeClasses};

use super::day::Day;
use super::plan::{Contender, DayRun};

/// One run with its recordings.
pub(super) struct Done {
    pub(super) run: Run,
    pub(super) points: Vec<SeriesPoint>,
    pub(super) classes: Option<SizeClasses>,
}

/// Answers that means without the cold start leave out, rounded to whole points. Requests that wait beyond
/// them are counted.
const COLD_REQUESTS: u64 = 500_000;

/// See the module's documentation.
#[derive(Clone)]
pub(super) struct AdaptLoadResults {
    pub(super) day: Arc<Day>,
    pub(super) done: Arc<BTreeMap<DayRun, Done>>,
    /// Number of points at the beginning that means of a whole day leave out.
    skipped: usize,
}

impl AdaptLoadResults {
    pub(super) fn new(day: Day, done: BTreeMap<DayRun, Done>) -> Self {
        Self { day: Arc::new(day), done: Arc::new(done), skipped: 0 }
    }

    /// The same results with means of a whole day that leave out the cold start; `None` if that would leave
    /// out most of the day.
    pub(super) fn warm(&self) -> Option<Self> {
        let skipped = COLD_REQUESTS.div_ceil(self.day.point_every);
        let enough = 2 * COLD_REQUESTS <= self.day.workload.trace.len();
        enough.then(|| Self { skipped: skipped as usize, ..self.clone() })
    }

    pub(super) fn get(&self, cell: DayRun) -> Option<&Done> {
        self.done.get(&cell)
    }

    /// Mean slowdown of the day.
    pub(super) fn slowdown(&self, cell: DayRun) -> Option<f64> {
        self.mean_of_day(cell, |run| run.slowdown.map(|s| s.mean), |p| p.mean_slowdown)
    }

    /// Mean response time of the day in seconds.
    pub(super) fn response_s(&self, cell: DayRun) -> Option<f64> {
        self.mean_of_day(cell, |run| run.response_time_s.map(|s| s.mean), |p| p.mean_response_s)
    }

    /// Requests of the whole day answered without a read of their own, 0 to 1.
    pub(super) fn hit_ratio(&self, cell: DayRun) -> Option<f64> {
        self.get(cell)?.run.miss_ratio.map(|missed| 1.0 - missed)
    }

    fn mean_of_day(
        &self,
        cell: DayRun,
        whole: impl Fn(&Run) -> Option<f64>,
        of_point: impl Fn(&SeriesPoint) -> f64,
    ) -> Option<f64> {
        let done = self.get(cell)?;
        if self.skipped == 0 {
            return whole(&done.run);
        }
        mean_over(done.points.get(self.skipped..)?.iter(), of_point)
    }

    /// Mean slowdown of `a` over that of `b` at this cache.
    pub(super) fn ratio(&self, a: Contender, b: Contender, cache: u32) -> Option<f64> {
        Some(self.slowdown(DayRun::day(a, cache))? / self.slowdown(DayRun::day(b, cache))?)
    }

    /// When a point ends, in seconds of the day.
    pub(super) fn time_s(&self, point: &SeriesPoint) -> f64 {
        point.end.since(plimsoll_policy::Time::ZERO).as_secs_f64() / self.day.scale
    }

    /// The points that end between two times of the day; `None` without any.
    pub(super) fn within(&self, cell: DayRun, (from_s, to_s): (f64, f64)) -> Option<Vec<&SeriesPoint>> {
        let points = self.get(cell)?.points.iter();
        let inside: Vec<_> = points.filter(|p| (from_s..to_s).contains(&self.time_s(p))).collect();
        (!inside.is_empty()).then_some(inside)
    }

    /// Mean of `value` over the answers between two times of the day.
    pub(super) fn mean_within(
        &self,
        cell: DayRun,
        period: (f64, f64),
        value: impl Fn(&SeriesPoint) -> f64,
    ) -> Option<f64> {
        mean_over(self.within(cell, period)?.into_iter(), value)
    }

    /// A curve over the day.
    pub(super) fn curve(&self, cell: DayRun, value: impl Fn(&SeriesPoint) -> f64) -> Vec<(f64, f64)> {
        let points = self.get(cell).map(|done| &done.points[..]).unwrap_or_default();
        points.iter().map(|p| (self.time_s(p), value(p))).collect()
    }

    /// The caches at which the whole day was run with this contender.
    pub(super) fn caches(&self, contender: Contender) -> Vec<u32> {
        let mut caches: Vec<u32> = self.done.keys().map(|cell| cell.cache_percent).collect();
        caches.sort_unstable();
        caches.dedup();
        caches.retain(|&cache| self.done.contains_key(&DayRun::day(contender, cache)));
        caches
    }

    pub(super) fn into_runs(self) -> Vec<Run> {
        let runs = self.done.values().map(|done| done.run.clone());
        runs.map(|run| Run { load_series: LoadSeries::default(), ..run }).collect()
    }
}

/// Mean over the answers of these points; `None` without any.
fn mean_over<'a>(
    points: impl Iterator<Item = &'a SeriesPoint>,
    value: impl Fn(&SeriesPoint) -> f64,
) -> Option<f64> {
    let (sum, answers) = points.fold((0.0, 0.0), |(sum, answers), p| {
        let answered = p.answered as f64;
        (sum + value(p) * answered, answers + answered)
    });
    (answers > 0.0).then(|| sum / answers)
}

/// Mean over the back-ends.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Inequality of back-ends: the largest minus the smallest value, as a share of the mean.
pub(super) fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    let mean = mean(values);
    if mean > 0.0 { (most - least) / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point with so many answers and this mean slowdown.
    fn point(answered: u64, mean_slowdown: f64) -> SeriesPoint {
        SeriesPoint { answered, mean_slowdown, ..SeriesPoint::default() }
    }

    #[test]
    fn means_weigh_answers() {
        let points = [point(1, 8.0), point(3, 4.0)];
        assert_eq!(mean_over(points.iter(), |p| p.mean_slowdown), Some(5.0));
        assert_eq!(mean_over(points[..0].iter(), |p| p.mean_slowdown), None);
    }

    /// The results of a day of so many requests, without a run.
    fn results(requests: &str) -> AdaptLoadResults {
        AdaptLoadResults::new(super::super::testing::day(requests), BTreeMap::new())
    }

    #[test]
    fn the_cold_start_can_be_left_out() {
        let results = results("1000000");
        let cold = COLD_REQUESTS.div_ceil(results.day.point_every) as usize;
        assert_eq!((results.skipped, results.warm().unwrap().skipped), (0, cold));
    }

    #[test]
    fn a_day_that_is_mostly_cold_start_has_no_means_without_it() {
        assert!(results("900000").warm().is_none());
    }

    #[test]
    fn spread_by_hand() {
        assert_eq!(spread(&[1.0, 3.0]), 1.0);
        assert_eq!(spread(&[0.0, 0.0]), 0.0);
        assert_eq!(mean(&[1.0, 3.0]), 2.0);
    }
}
