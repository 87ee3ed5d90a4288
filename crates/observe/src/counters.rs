//! Counters that threads share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the buckets of response times, in microseconds.
pub const BUCKETS_US: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// A number that only grows.
#[derive(Debug, Default)]
pub struct SharedCounter(AtomicU64);

impl SharedCounter {
    /// Counts `n` more.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The number.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper ends of the buckets of times that are shorter than those of requests, in microseconds.
pub const FINE_BUCKETS_US: [u64; 14] =
    [25, 50, 75, 100, 150, 200, 300, 500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000];

/// A histogram of times.
#[derive(Debug)]
pub struct Histogram {
    ends_us: &'static [u64; 14],
    /// Times up to each end, not cumulated, and beyond the last.
    pub buckets: [SharedCounter; 15],
    /// Sum of all times in microseconds.
    pub sum_us: SharedCounter,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::with(&BUCKETS_US)
    }
}

impl Histogram {
    /// With these upper ends, in microseconds.
    #[must_use]
    pub fn with(ends_us: &'static [u64; 14]) -> Self {
        Self { ends_us, buckets: Default::default(), sum_us: SharedCounter::default() }
    }

    /// Counts a time.
    pub fn add(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = self.ends_us.iter().position(|&end| us <= end).unwrap_or(self.ends_us.len());
        self.buckets[bucket].add(1);
        self.sum_us.add(us);
    }

    /// Counts of each bucket and beyond the last, and the sum in seconds: as [`Out::histogram`](crate::exposition::Out::histogram)
    /// takes them.
    #[must_use]
    pub fn taken(&self) -> (Vec<u64>, f64) {
        (self.buckets.iter().map(SharedCounter::get).collect(), self.sum_us.get() as f64 / 1e6)
    }
}
