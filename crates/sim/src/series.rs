//! Optional recordings of a run: points along the run, and slowdown by size of response.

use plimsoll_policy::{BackendId, Nanos, Time};

use crate::measure::SLOWDOWN_SCALE;
use crate::model::Usage;

/// What to record. Nothing by default; what is not recorded costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recording {
    /// Answered requests per [`SeriesPoint`]; the last point has the rest. `None` or 0: no points.
    pub point_every: Option<u64>,
    /// Count slowdowns by size of response.
    pub by_size: bool,
}

/// A stretch of a run: the answers since the point before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeriesPoint {
    /// When the last of the answers was complete.
    pub end: Time,
    /// Requests answered.
    pub answered: u64,
    /// Mean slowdown of these answers.
    pub mean_slowdown: f64,
    /// Mean time from arrival to the last byte, in seconds.
    pub mean_response_s: f64,
    /// Disk reads begun per request assigned in the stretch; 0 without any.
    pub miss_ratio: f64,
    /// Requests that joined a read under way, per request assigned in the stretch.
    pub joined_ratio: f64,
    /// By back-end: share of the time that its CPU, or network, was busy.
    pub cpu: Vec<f64>,
    /// By back-end: share of the time that its disks were busy, averaged over the disks; 0 without disks.
    pub disk: Vec<f64>,
    /// By back-end: bytes of its answers.
    pub sent_bytes: Vec<u64>,
}

/// Sums since the last point, and the points.
#[derive(Debug)]
pub(crate) struct SeriesRecorder {
    every: u64,
    disks: u32,
    answered: u64,
    assigned: u64,
    slowdown: f64,
    response_ns: f64,
    since: Time,
    before: Vec<Usage>,
    sent_bytes: Vec<u64>,
    points: Vec<SeriesPoint>,
}

impl SeriesRecorder {
    pub(crate) fn new(every: u64, backends: usize, disks: u32) -> Self {
        Self {
            every,
            disks,
            answered: 0,
            assigned: 0,
            slowdown: 0.0,
            response_ns: 0.0,
            since: Time::ZERO,
            before: vec![Usage::default(); backends],
            sent_bytes: vec![0; backends],
            points: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn assigned(&mut self) {
        self.assigned += 1;
    }

    #[inline]
    pub(crate) fn sent(&mut self, backend: BackendId, bytes: u64) {
        let sent_bytes = &mut self.sent_bytes[backend.index()];
        *sent_bytes = sent_bytes.saturating_add(bytes);
    }

    #[inline]
    pub(crate) fn answered(&mut self, response_ns: u64, slowdown: f64) {
        self.answered += 1;
        self.response_ns += response_ns as f64;
        self.slowdown += slowdown;
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.answered >= self.every
    }

    /// Discards everything and counts the back-ends' use from `now` on.
    pub(crate) fn restart(&mut self, now: Time) {
        *self = Self::new(self.every, self.before.len(), self.disks);
        self.since = now;
    }

    /// Closes a point at `now`. Does nothing without answers since the last one.
    pub(crate) fn close(&mut self, now: Time, usage: Vec<Usage>) {
        if self.answered == 0 {
            return;
        }
        let span_s = now.since(self.since).as_secs_f64().max(1e-9);
        let share = |later: Nanos, earlier: Nanos, units: u32| {
            (later.as_secs_f64() - earlier.as_secs_f64()) / span_s / f64::from(units.max(1))
        };
        let both = || usage.iter().zip(&self.before);
        let count =
            |of: fn(&Usage) -> u64| both().map(|(u, b)| of(u).saturating_sub(of(b))).sum::<u64>() as f64;
        let assigned = self.assigned.max(1) as f64;
        let answers = self.answered as f64;
        self.points.push(SeriesPoint {
            end: now,
            answered: self.answered,
            mean_slowdown: self.slowdown / answers,
            mean_response_s: self.response_ns / answers / 1e9,
            miss_ratio: count(|u| u.reads) / assigned,
            joined_ratio: count(|u| u.joined) / assigned,
            cpu: both().map(|(u, b)| share(u.cpu, b.cpu, 1)).collect(),
            disk: both().map(|(u, b)| share(u.disk, b.disk, self.disks)).collect(),
            sent_bytes: self.sent_bytes.clone(),
        });
        (self.answered, self.assigned, self.slowdown, self.response_ns) = (0, 0, 0.0, 0.0);
        (self.since, self.before) = (now, usage);
        self.sent_bytes.fill(0);
    }

    pub(crate) fn into_points(self) -> Vec<SeriesPoint> {
        self.points
    }
}

/// How many answers of each size had which slowdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeClasses {
    counts: [[u64; SizeClasses::CATEGORIES]; SizeClasses::BINS + 1],
}

impl Default for SizeClasses {
    fn default() -> Self {
        Self { counts: [[0; Self::CATEGORIES]; Self::BINS + 1] }
    }
}

impl SizeClasses {
    /// Number of bins beside bin 0, which has responses without a body. Bin i has responses of 2^(i-1) to
    /// below 2^i bytes; the last one has larger ones too.
    pub const BINS: usize = 22;
    /// Slowdowns below 5, 20, 100, and all others.
    pub const CATEGORIES: usize = 4;
    const LIMITS: [f64; Self::CATEGORIES - 1] = [5.0, 20.0, 100.0];

    #[inline]
    pub(crate) fn count(&mut self, size_bytes: u64, slowdown: f64) {
        let bin = (u64::BITS - size_bytes.leading_zeros()) as usize;
        let category = Self::LIMITS.iter().filter(|&&limit| slowdown >= limit).count();
        self.counts[bin.min(Self::BINS)][category] += 1;
    }

    /// Answers in a bin by category; zeros for a bin that does not exist.
    #[must_use]
    pub fn counts(&self, bin: usize) -> [u64; Self::CATEGORIES] {
        self.counts.get(bin).copied().unwrap_or_default()
    }

    /// Answers in a bin.
    #[must_use]
    pub fn total(&self, bin: usize) -> u64 {
        self.counts(bin).iter().sum()
    }

    /// Share of each category among the answers in the bins; `None` without answers.
    #[must_use]
    pub fn shares(&self, bins: std::ops::RangeInclusive<usize>) -> Option<[f64; Self::CATEGORIES]> {
        let mut sum = [0; Self::CATEGORIES];
        for bin in bins {
            for (sum, count) in sum.iter_mut().zip(self.counts(bin)) {
                *sum += count;
            }
        }
        let total: u64 = sum.iter().sum();
        (total > 0).then(|| sum.map(|count| count as f64 / total as f64))
    }
}

/// Slowdown of an answer: its time over the time alone on an idle back-end with the document cached.
#[inline]
pub(crate) fn slowdown_permille(response_ns: u64, alone_ns: u64) -> f64 {
    response_ns as f64 * SLOWDOWN_SCALE / alone_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Nanos::from_millis(ms)
    }

    fn used(reads: u64, joined: u64, cpu_ms: u64, disk_ms: u64) -> Usage {
        Usage { reads, joined, cpu: Nanos::from_millis(cpu_ms), disk: Nanos::from_millis(disk_ms) }
    }

    #[test]
    fn points_by_hand() {
        let mut series = SeriesRecorder::new(2, 2, 2);
        for _ in 0..4 {
            series.assigned();
        }
        series.answered(1_000_000, 1.0);
        assert!(!series.is_due());
        series.sent(BackendId::new(1), 100);
        series.answered(3_000_000, 4.0);
        assert!(series.is_due());
        series.close(at_ms(100), vec![used(1, 0, 50, 20), used(0, 2, 10, 0)]);
        assert!(!series.is_due());
        series.assigned();
        series.sent(BackendId::new(0), 7);
        series.answered(5_000_000, 2.0);
        series.close(at_ms(300), vec![used(1, 0, 150, 20), used(1, 2, 10, 40)]);
        // Nothing was answered since.
        series.close(at_ms(400), vec![used(2, 0, 150, 20), used(1, 2, 10, 40)]);
        let points = series.into_points();
        assert_eq!(points.len(), 2);
        let first = &points[0];
        assert_eq!((first.end, first.answered, first.mean_slowdown), (at_ms(100), 2, 2.5));
        assert_eq!((first.mean_response_s, first.miss_ratio, first.joined_ratio), (0.002, 0.25, 0.5));
        let near = |values: &[f64], by_hand: [f64; 2]| {
            values.len() == 2 && values.iter().zip(by_hand).all(|(v, h)| (v - h).abs() < 1e-12)
        };
        assert!(near(&first.cpu, [0.5, 0.1]) && near(&first.disk, [0.1, 0.0]), "{first:?}");
        let second = &points[1];
        assert_eq!((&first.sent_bytes[..], &second.sent_bytes[..]), (&[0, 100][..], &[7, 0][..]));
        assert_eq!((second.answered, second.miss_ratio, second.joined_ratio), (1, 1.0, 0.0));
        assert!(near(&second.cpu, [0.5, 0.0]) && near(&second.disk, [0.0, 0.1]), "{second:?}");
    }

    #[test]
    fn a_restart_counts_from_there() {
        let mut series = SeriesRecorder::new(1, 1, 1);
        series.answered(7, 7.0);
        series.restart(at_ms(100));
        series.assigned();
        series.answered(1_000_000_000, 3.0);
        series.close(at_ms(200), vec![used(1, 0, 50, 100)]);
        let points = series.into_points();
        assert_eq!((points[0].answered, points[0].mean_slowdown), (1, 3.0));
        assert_eq!((points[0].cpu[0], points[0].disk[0]), (0.5, 1.0));
    }

    #[test]
    fn bins_are_powers_of_two_and_categories_as_in_the_paper() {
        let mut classes = SizeClasses::default();
        for (size, slowdown) in [(0, 1.0), (1, 1.0), (1023, 4.9), (1024, 5.0), (1024, 20.0), (1 << 40, 100.0)]
        {
            classes.count(size, slowdown);
        }
        assert_eq!(classes.counts(0), [1, 0, 0, 0]);
        assert_eq!(classes.counts(1), [1, 0, 0, 0]);
        assert_eq!(classes.counts(10), [1, 0, 0, 0]);
        assert_eq!(classes.counts(11), [0, 1, 1, 0]);
        assert_eq!(classes.counts(22), [0, 0, 0, 1]);
        assert_eq!(classes.total(23), 0);
        assert_eq!(classes.shares(10..=11), Some([1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0]));
        assert_eq!(classes.shares(12..=13), None);
    }
}
