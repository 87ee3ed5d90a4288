//! The measures of the claims.

use std::ops::RangeInclusive;

use super::day::{PEAK_S, QUIET_S};
use super::plan::{ADAPTLOAD, Contender, DayRun, JSQ};
use super::results::{AdaptLoadResults, mean, spread};
use super::rule::GREATLY;

/// The whole day.
pub(super) const DAY: (f64, f64) = (0.0, f64::MAX);

pub(super) fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

pub(super) fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.max_by(f64::total_cmp)
}

/// Mean response time at the afternoon's peak with caches of 25 %, of `a` over that of `b`.
pub(super) fn peak_response(r: &AdaptLoadResults, a: Contender, b: Contender) -> Option<f64> {
    let of = |c| r.mean_within(DayRun::day(c, 25), PEAK_S, |p| p.mean_response_s);
    Some(of(a)? / of(b)?)
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The usual slowdown in the hours before 45,000 s.
pub(super) fn usual(r: &AdaptLoadResults, contender: Contender, cache: u32) -> Option<f64> {
    let points = r.within(DayRun::day(contender, cache), QUIET_S)?;
    median(points.iter().map(|p| p.mean_slowdown).collect())
}

/// The period in which to look for the spike around 45,000 s.
const SPIKE_S: (f64, f64) = (44_000.0, 46_500.0);

/// The two parts of 58,000 to 68,000 s that the paper tells apart: its network is full from 65,800 s on.
pub(super) const JUDGED_PEAK_S: [(f64, f64); 2] = [(PEAK_S.0, 65_800.0), (65_800.0, PEAK_S.1)];

/// When the networks are fullest from 58,000 to 68,000 s.
pub(super) fn full_at_s(r: &AdaptLoadResults, cell: DayRun) -> Option<f64> {
    let points = r.within(cell, PEAK_S)?.into_iter();
    points.max_by(|a, b| mean(&a.cpu).total_cmp(&mean(&b.cpu))).map(|p| r.time_s(p))
}

/// When AdaptLoad's slowdown is largest from 35,000 to 58,000 s with caches of 15 %, and how large.
pub(super) fn largest_spike(r: &AdaptLoadResults) -> Option<(f64, f64)> {
    let points = r.within(DayRun::day(ADAPTLOAD, 15), (QUIET_S.0, PEAK_S.0))?.into_iter();
    let largest = points.max_by(|a, b| a.mean_slowdown.total_cmp(&b.mean_slowdown))?;
    Some((r.time_s(largest), largest.mean_slowdown))
}

/// The largest slowdown around 45,000 s over the usual one.
pub(super) fn spike_of(r: &AdaptLoadResults, contender: Contender, cache: u32) -> Option<f64> {
    let points = r.within(DayRun::day(contender, cache), SPIKE_S)?;
    Some(most(points.iter().map(|p| p.mean_slowdown))? / usual(r, contender, cache)?)
}

/// AdaptLoad's.
pub(super) fn spike(r: &AdaptLoadResults, cache: u32) -> Option<f64> {
    spike_of(r, ADAPTLOAD, cache)
}

/// Whether AdaptLoad's slowdown has a spike around 45,000 s; what is claimed of it cannot be measured without.
pub(super) fn has_spike(r: &AdaptLoadResults, cache: u32) -> bool {
    spike(r, cache).is_some_and(|spike| spike >= GREATLY)
}

/// AdaptLoad's slowdown at the point after its largest one around 45,000 s, over the usual one.
pub(super) fn recovery(r: &AdaptLoadResults, cache: u32) -> Option<f64> {
    let points = r.within(DayRun::day(ADAPTLOAD, cache), (SPIKE_S.0, PEAK_S.0))?;
    let around = points.iter().take_while(|p| r.time_s(p) < SPIKE_S.1).count();
    let largest = (0..around).max_by(|&a, &b| points[a].mean_slowdown.total_cmp(&points[b].mean_slowdown))?;
    Some(points.get(largest + 1)?.mean_slowdown / usual(r, ADAPTLOAD, cache)?)
}

/// How unequally the networks are used at 15 %, as the mean over the points.
pub(super) fn uneven(r: &AdaptLoadResults, contender: Contender, period: (f64, f64)) -> Option<f64> {
    r.mean_within(DayRun::day(contender, 15), period, |p| spread(&p.cpu))
}

/// Mean disk utilization of the day at 15 %.
pub(super) fn disk(r: &AdaptLoadResults, contender: Contender) -> Option<f64> {
    r.get(DayRun::day(contender, 15))?.run.utilization.disk
}

/// What [`crossover`] gives where JSQ is ahead at every cache, and where it is at none.
const CROSSED_BEFORE: f64 = 0.0;
const NEVER_CROSSED: f64 = 200.0;

/// The cache at which JSQ's mean slowdown falls below AdaptLoad's, interpolated between the caches run.
pub(super) fn crossover(r: &AdaptLoadResults) -> Option<f64> {
    let ratios: Vec<(f64, f64)> = r
        .caches(JSQ)
        .into_iter()
        .filter_map(|cache| Some((f64::from(cache), r.ratio(JSQ, ADAPTLOAD, cache)?.ln())))
        .collect();
    let crossing = ratios.windows(2).rev().find(|pair| pair[0].1 >= 0.0 && pair[1].1 < 0.0).map(|pair| {
        let share = pair[0].1 / (pair[0].1 - pair[1].1);
        pair[0].0 + share * (pair[1].0 - pair[0].0)
    });
    crossing.or_else(|| match ratios.last() {
        Some((_, ratio)) if ratios.len() > 1 => {
            Some(if *ratio < 0.0 { CROSSED_BEFORE } else { NEVER_CROSSED })
        }
        _ => None,
    })
}

/// Share of a category of slowdowns among the sizes of these bins at 15 %, in per cent.
pub(super) fn class(
    r: &AdaptLoadResults,
    contender: Contender,
    bins: RangeInclusive<usize>,
    category: usize,
) -> Option<f64> {
    let shares = r.get(DayRun::day(contender, 15))?.classes.as_ref()?.shares(bins)?;
    Some(100.0 * shares[category])
}

/// Share of slowdowns of 5 and more, in per cent.
pub(super) fn slow(r: &AdaptLoadResults, contender: Contender, bins: RangeInclusive<usize>) -> Option<f64> {
    class(r, contender, bins, 0).map(|share| 100.0 - share)
}

/// Slowdown with `to` back-ends over that with `from`.
pub(super) fn scaled(r: &AdaptLoadResults, contender: Contender, from: usize, to: usize) -> Option<f64> {
    let of = |backends| r.slowdown(DayRun::cluster(contender, backends));
    Some(of(to)? / of(from)?)
}

/// Slowdown of `a` over that of `b` with this many back-ends.
pub(super) fn across(r: &AdaptLoadResults, a: Contender, b: Contender, backends: usize) -> Option<f64> {
    let of = |c| r.slowdown(DayRun::cluster(c, backends));
    Some(of(a)? / of(b)?)
}

/// Mean slowdown of `a` over that of `b` in a period.
pub(super) fn in_period(r: &AdaptLoadResults, a: DayRun, b: DayRun, period: (f64, f64)) -> Option<f64> {
    let of = |cell| r.mean_within(cell, period, |p| p.mean_slowdown);
    Some(of(a)? / of(b)?)
}

/// Share of the points of a period at which `a` has a smaller slowdown than `b`, in per cent.
pub(super) fn points_ahead(r: &AdaptLoadResults, a: DayRun, b: DayRun, period: (f64, f64)) -> Option<f64> {
    let (ours, theirs) = (r.within(a, period)?, r.within(b, period)?);
    let pairs = ours.iter().zip(&theirs);
    let ahead = pairs.clone().filter(|(a, b)| a.mean_slowdown < b.mean_slowdown).count();
    Some(100.0 * ahead as f64 / pairs.count() as f64)
}

pub(super) fn disks(r: &AdaptLoadResults, cell: DayRun, period: (f64, f64)) -> Option<f64> {
    r.mean_within(cell, period, |p| mean(&p.disk))
}

pub(super) fn networks(r: &AdaptLoadResults, cell: DayRun, period: (f64, f64)) -> Option<f64> {
    r.mean_within(cell, period, |p| mean(&p.cpu))
}

#[cfg(test)]
mod tests {
    use super::super::plan::LARD_BEST;
    use super::super::testing::{done, done_over, results};
    use super::*;

    #[test]
    fn a_spike_and_the_point_after_it() {
        let points =
            [(36e3, 2.0), (40e3, 2.0), (44e3, 2.0), (45e3, 30.0), (46e3, 3.0), (50e3, 90.0), (51e3, 2.0)];
        let r = results([
            (DayRun::day(ADAPTLOAD, 15), done_over(&points)),
            (DayRun::day(LARD_BEST, 15), done_over(&[(36e3, 4.0), (40e3, 4.0), (45e3, 8.0)])),
        ]);
        assert_eq!((spike(&r, 15), recovery(&r, 15), has_spike(&r, 15)), (Some(15.0), Some(1.5), true));
        assert_eq!(spike_of(&r, LARD_BEST, 15), Some(2.0));
        assert_eq!(largest_spike(&r), Some((50e3, 90.0)));
        assert_eq!(
            (spike(&r, 5), recovery(&r, 5), has_spike(&r, 5)),
            (None, None, false),
            "runs are missing"
        );
        let flat =
            results([(DayRun::day(ADAPTLOAD, 15), done_over(&[(36e3, 2.0), (45e3, 3.0), (46e3, 2.0)]))]);
        assert!(!has_spike(&flat, 15));
    }

    #[test]
    fn the_points_at_which_a_policy_is_ahead() {
        let cells = [DayRun::day(ADAPTLOAD, 15), DayRun::day(JSQ, 15)];
        let ours = done_over(&[(36e3, 1.0), (37e3, 1.0), (38e3, 9.0), (39e3, 2.0)]);
        let theirs = done_over(&[(36e3, 2.0), (37e3, 2.0), (38e3, 2.0), (39e3, 2.0)]);
        let r = results([(cells[0], ours), (cells[1], theirs)]);
        assert_eq!(points_ahead(&r, cells[0], cells[1], QUIET_S), Some(50.0), "equal is not ahead");
        assert_eq!(points_ahead(&r, cells[0], cells[1], PEAK_S), None, "there are no points");
    }

    #[test]
    fn where_jsq_catches_up() {
        let crossing = |jsq: [f64; 3]| {
            let at = |cache, slowdown| (DayRun::day(JSQ, cache), done(slowdown));
            let base = |cache| (DayRun::day(ADAPTLOAD, cache), done(1.0));
            let [a, b, c] = jsq;
            crossover(&results([at(15, a), at(25, b), at(60, c), base(15), base(25), base(60)]))
        };
        assert_eq!(crossing([0.9, 0.8, 0.7]), Some(CROSSED_BEFORE));
        assert_eq!(crossing([9.0, 8.0, 7.0]), Some(NEVER_CROSSED));
        // Half way between 25 and 60 on a logarithmic axis of ratios.
        assert!((crossing([4.0, 2.0, 0.5]).unwrap() - 42.5).abs() < 1e-9);
        assert_eq!(crossover(&results([(DayRun::day(JSQ, 15), done(1.0))])), None);
    }
}
