//! Counters. Each worker counts in its own memory; readers add up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::refusal_reason::{REASONS, RefusalReason};

/// Upper ends of the buckets of response times, in microseconds.
pub(crate) const BUCKETS_US: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct SharedCounter(AtomicU64);

impl SharedCounter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper ends of the buckets of times that are shorter than those of requests, in microseconds.
pub(crate) const FINE_BUCKETS_US: [u64; 14] =
    [25, 50, 75, 100, 150, 200, 300, 500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000];

/// A histogram of times.
#[derive(Debug)]
pub(crate) struct Histogram {
    ends_us: &'static [u64; 14],
    /// Times up to each end, not cumulated, and beyond the last.
    pub(crate) buckets: [SharedCounter; 15],
    /// Sum of all times in microseconds.
    pub(crate) sum_us: SharedCounter,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::with(&BUCKETS_US)
    }
}

impl Histogram {
    /// With these upper ends, in microseconds.
    pub(crate) fn with(ends_us: &'static [u64; 14]) -> Self {
        Self { ends_us, buckets: Default::default(), sum_us: SharedCounter::default() }
    }

    pub(crate) fn add(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = self.ends_us.iter().position(|&end| us <= end).unwrap_or(self.ends_us.len());
        self.buckets[bucket].add(1);
        self.sum_us.add(us);
    }
}

/// What one worker did with one back-end.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct BackendCounts {
    /// Answers by the hundreds of their status, 1xx to 5xx.
    pub(crate) answers: [SharedCounter; 5],
    /// Requests that ended without an answer of the back-end.
    pub(crate) failed: SharedCounter,
    /// Content passed on to clients, in bytes.
    pub(crate) content_bytes: SharedCounter,
    /// From the choice of the back-end to its response's head.
    pub(crate) first_byte: Histogram,
    /// From the request's head to the response's end.
    pub(crate) response_time: Histogram,
    /// Connections opened.
    pub(crate) connections: SharedCounter,
    /// Connections that could not be opened.
    pub(crate) connect_failures: SharedCounter,
    /// Requests that failed here, those included that another back-end then answered.
    pub(crate) attempts_failed: SharedCounter,
    /// Times that it was ejected.
    pub(crate) ejections: SharedCounter,
    /// Health checks that failed.
    pub(crate) checks_failed: SharedCounter,
}

/// What one worker did for clients.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerCounts {
    /// Connections accepted.
    pub(crate) accepted: SharedCounter,
    /// TLS handshakes.
    pub(crate) handshakes: HandshakeTotals,
    /// Connections that have ended.
    pub(crate) closed: SharedCounter,
    /// Connections without a request that were ended to make room for others.
    pub(crate) made_room: SharedCounter,
    /// Requests by the hundreds of the status that the client got, 1xx to 5xx.
    pub(crate) requests: [SharedCounter; 5],
    /// Requests that more than one back-end was tried for.
    pub(crate) retried: SharedCounter,
    /// Requests that waited under the admission limit.
    pub(crate) waited: SharedCounter,
    /// Refused requests and ended connections, by reason.
    pub(crate) refusals: RefusalCounts,
    /// Lines of the access log that were lost because its disk did not keep up.
    pub(crate) lines_lost: SharedCounter,
}

/// TLS handshakes with clients, by what they came to.
#[derive(Debug, Default)]
pub(crate) struct HandshakeTotals {
    /// In full.
    pub(crate) full: SharedCounter,
    /// Those that went on with an earlier session.
    pub(crate) resumed: SharedCounter,
    /// Those that failed.
    pub(crate) failed: SharedCounter,
}

/// Counters by reason.
#[derive(Debug, Default)]
pub(crate) struct RefusalCounts([SharedCounter; REASONS]);

impl RefusalCounts {
    /// Counts.
    pub(crate) fn add(&self, reason: RefusalReason, n: u64) {
        self.0[reason as usize].add(n);
    }
}

/// How often there was a refusal for this reason, over all workers.
pub(crate) fn refusals(counts: &[WorkerCounts], reason: RefusalReason) -> u64 {
    counts.iter().map(|worker| worker.refusals.0[reason as usize].get()).sum()
}

/// The index of a status in counters by hundreds.
pub(crate) fn hundreds(status: u16) -> usize {
    usize::from((status / 100).clamp(1, 5) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_their_buckets() {
        let h = Histogram::default();
        for ms in [0, 1, 2, 20_000] {
            h.add(Duration::from_millis(ms));
        }
        let counts: Vec<u64> = h.buckets.iter().map(SharedCounter::get).collect();
        assert_eq!(counts, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(h.sum_us.get(), 20_003_000);
        assert_eq!((hundreds(100), hundreds(499), hundreds(599), hundreds(0)), (0, 3, 4, 0));
    }
}
