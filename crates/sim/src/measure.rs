//! Measurements of a run: time-weighted load, idle time, delay distributions and load over time.

use hdrhistogram::Histogram;
use plimsoll_policy::{Nanos, Time};

/// Slowdown is kept in thousandths.
pub(crate) const SLOWDOWN_SCALE: f64 = 1000.0;

/// Values are kept to three significant digits, up to this; 115 days in nanoseconds.
const HIGHEST: u64 = 10_000_000_000_000_000;

/// Values are counted with this many binary digits and the leading one: three decimal digits.
const DIGITS: u32 = 10;

/// A distribution of non-negative integers, to three significant digits, with an exact mean and maximum.
///
/// The cells are those of an HDR histogram, which finds the quantiles. Its own code to count a value takes four times as long.
#[derive(Debug, Clone)]
pub struct Distribution {
    cells: Vec<u64>,
    count: u64,
    sum: f64,
    max: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self { cells: vec![0; empty_histogram().distinct_values()], count: 0, sum: 0.0, max: 0 }
    }
}

fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST, 3).expect("the bounds are valid")
}

/// The cell of `value`: two for each number of leading zeros have as many values as fit.
#[inline]
fn cell_of(value: u64) -> usize {
    let dropped = u64::BITS - 1 - DIGITS - (value | ((2 << DIGITS) - 1)).leading_zeros();
    ((dropped as usize) << DIGITS) + (value >> dropped) as usize
}

/// The least value of a cell.
fn least_of(cell: usize) -> u64 {
    let dropped = (cell >> DIGITS).saturating_sub(1);
    ((cell - (dropped << DIGITS)) as u64) << dropped
}

impl Distribution {
    /// Counts `value`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        match self.cells.get_mut(cell_of(value)) {
            Some(cell) => *cell += 1,
            None => self.cells[cell_of(HIGHEST)] += 1,
        }
        self.count += 1;
        self.sum += value as f64;
        self.max = self.max.max(value);
    }

    /// Values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum / self.count() as f64)
    }

    /// Exact maximum; `None` without values.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// The `q`-quantile; `None` without values.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram().value_at_quantile(q).min(self.max))
    }

    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = empty_histogram();
        for (cell, &count) in self.cells.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(least_of(cell), count);
        }
        histogram
    }

    /// Forgets every value.
    pub fn reset(&mut self) {
        self.cells.fill(0);
        (self.count, self.sum, self.max) = (0, 0.0, 0);
    }
}

/// The load of one back-end, weighted by time.
#[derive(Debug, Clone, Copy, Default)]
struct LoadMeter {
    since: Time,
    load: u32,
    /// Request-nanoseconds.
    area: u128,
    idle: Nanos,
}

impl LoadMeter {
    #[inline]
    fn advance(&mut self, now: Time, idle_below: u32) {
        let span = now.since(self.since);
        self.since = now;
        self.area += u128::from(self.load) * u128::from(span.as_nanos());
        if self.load < idle_below {
            self.idle += span;
        }
    }
}

/// Loads of all back-ends over the measured time, and as a series of at most [`LoadMeters::BUCKETS`] buckets.
#[derive(Debug, Clone)]
pub struct LoadMeters {
    meters: Vec<LoadMeter>,
    /// Loads are whole numbers, so below 9.5 means below 10.
    idle_below: u32,
    started: Time,
    most_buckets: usize,
    bucket: Nanos,
    bucket_ends: Time,
    /// Request-nanoseconds per bucket, by back-end.
    series: Vec<Vec<u128>>,
    area_at_bucket_start: Vec<u128>,
}

impl LoadMeters {
    /// The most buckets. When they are full, neighbours are merged and the width doubles.
    pub const BUCKETS: usize = 480;
    /// The most buckets times back-ends: large clusters get a coarser series.
    const CELLS: usize = 1_000_000;
    /// Width of the buckets at the start.
    const FIRST_BUCKET: Nanos = Nanos::from_millis(10);

    /// Meters for `backends` back-ends; one counts as idle while its load is below `idle_below`.
    #[must_use]
    pub fn new(backends: usize, idle_below: f64) -> Self {
        Self {
            meters: vec![LoadMeter::default(); backends],
            idle_below: idle_below.ceil() as u32,
            started: Time::ZERO,
            most_buckets: (Self::CELLS / backends.max(1)).clamp(2, Self::BUCKETS) & !1,
            bucket: Self::FIRST_BUCKET,
            bucket_ends: Time::ZERO + Self::FIRST_BUCKET,
            series: vec![Vec::new(); backends],
            area_at_bucket_start: vec![0; backends],
        }
    }

    /// The load of back-end `index` is `load` from `now` on.
    #[inline]
    pub fn set(&mut self, index: usize, load: u32, now: Time) {
        self.pass(now);
        let meter = &mut self.meters[index];
        meter.advance(now, self.idle_below);
        meter.load = load;
    }

    /// Closes the buckets that end by `now`.
    #[inline]
    fn pass(&mut self, now: Time) {
        while now >= self.bucket_ends {
            self.close_bucket();
        }
    }

    fn close_bucket(&mut self) {
        for (index, meter) in self.meters.iter_mut().enumerate() {
            meter.advance(self.bucket_ends, self.idle_below);
            self.series[index].push(meter.area - self.area_at_bucket_start[index]);
            self.area_at_bucket_start[index] = meter.area;
        }
        if self.series.first().is_some_and(|s| s.len() >= self.most_buckets) {
            for series in &mut self.series {
                *series = series.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
            self.bucket = self.bucket + self.bucket;
        }
        self.bucket_ends += self.bucket;
    }

    /// Discards all measurements before `now`.
    pub fn restart(&mut self, now: Time) {
        let loads: Vec<u32> = self.meters.iter().map(|m| m.load).collect();
        *self = Self::new(loads.len(), f64::from(self.idle_below));
        self.started = now;
        self.bucket_ends = now + self.bucket;
        for (meter, load) in self.meters.iter_mut().zip(loads) {
            (meter.since, meter.load) = (now, load);
        }
    }

    /// Ends the measurement at `now` and returns mean load and idle share per back-end, and the series.
    #[must_use]
    pub fn finish(mut self, now: Time) -> (Vec<(f64, f64)>, LoadOverTime) {
        self.pass(now);
        let span = now.since(self.started).as_nanos().max(1) as f64;
        let mut totals = Vec::with_capacity(self.meters.len());
        for meter in &mut self.meters {
            meter.advance(now, self.idle_below);
            totals.push((meter.area as f64 / span, meter.idle.as_nanos() as f64 / span));
        }
        let width = self.bucket.as_nanos() as f64;
        let load = self.series.iter().map(|s| s.iter().map(|&area| area as f64 / width).collect()).collect();
        (totals, LoadOverTime { bucket_s: self.bucket.as_secs_f64(), load })
    }
}

/// Mean load per back-end and time bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadOverTime {
    /// Width of a bucket in simulated seconds.
    pub bucket_s: f64,
    /// By back-end, then bucket.
    pub load: Vec<Vec<f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Nanos::from_millis(ms)
    }

    #[test]
    fn load_is_weighted_by_time() {
        let mut meters = LoadMeters::new(1, 2.0);
        meters.set(0, 4, at_ms(10));
        meters.set(0, 1, at_ms(30));
        let (totals, _) = meters.finish(at_ms(40));
        // 10 ms at 0, 20 ms at 4, 10 ms at 1: mean 90/40; below 2 for 20 of 40 ms.
        assert_eq!(totals, [(2.25, 0.5)]);
    }

    #[test]
    fn buckets_merge_and_keep_the_area() {
        let mut meters = LoadMeters::new(1, 1.0);
        meters.set(0, 3, Time::ZERO);
        for ms in (0..20_000).step_by(7) {
            meters.pass(at_ms(ms));
        }
        let (_, series) = meters.finish(at_ms(20_000));
        assert!(series.load[0].len() <= LoadMeters::BUCKETS);
        assert!(series.load[0].iter().all(|&l| (l - 3.0).abs() < 1e-9));
        assert!((series.bucket_s * series.load[0].len() as f64 - 20.0).abs() <= series.bucket_s);
    }

    #[test]
    fn restart_forgets_but_keeps_the_load() {
        let mut meters = LoadMeters::new(1, 1.0);
        meters.set(0, 5, Time::ZERO);
        meters.restart(at_ms(100));
        meters.set(0, 0, at_ms(150));
        assert_eq!(meters.finish(at_ms(200)).0, [(2.5, 0.5)]);
    }

    #[test]
    fn cells_are_those_of_the_library() {
        let (mut ours, mut theirs) = (Distribution::default(), empty_histogram());
        let around =
            |n: u32| [(1u64 << n) - 1, 1 << n, (1 << n) + 1, 3 << n >> 1, 0x9E37_79B9_7F4A_7C15 >> (63 - n)];
        let values = (0..64).flat_map(around).chain([HIGHEST - 1, HIGHEST, HIGHEST + 1, u64::MAX]);
        values.for_each(|value| {
            ours.record(value);
            theirs.saturating_record(value);
        });
        assert!(ours.histogram().iter_recorded().eq(theirs.iter_recorded()));
        assert_eq!(ours.count(), theirs.len());
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let mut d = Distribution::default();
        assert_eq!(d.quantile(0.5), None);
        (1..=100_000).for_each(|v| d.record(v));
        let p99 = d.quantile(0.99).unwrap() as f64;
        assert!((p99 / 99_000.0 - 1.0).abs() < 0.001, "{p99}");
        assert_eq!(d.mean(), Some(50_000.5));
        assert_eq!(d.max(), Some(100_000));
    }
}
