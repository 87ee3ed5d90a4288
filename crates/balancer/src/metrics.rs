//! Counters. Each worker counts in its own memory; readers add up.

use plimsoll_config::ContentCoding;

use crate::refusal_reason::{REASONS, RefusalReason};

pub(crate) use plimsoll_observe::counters::{BUCKETS_US, FINE_BUCKETS_US, Histogram, SharedCounter};

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
    /// Responses of which it told that the content was in its cache.
    pub(crate) told_hits: SharedCounter,
    /// Those of which it told that it was not.
    pub(crate) told_misses: SharedCounter,
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
    /// Bodies that were compressed.
    pub(crate) compression: CompressionCounts,
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

/// Bodies that were compressed.
#[derive(Debug, Default)]
pub(crate) struct CompressionCounts {
    /// By zstd.
    pub(crate) zstd: SharedCounter,
    /// By gzip.
    pub(crate) gzip: SharedCounter,
    /// Content before, in bytes.
    pub(crate) in_bytes: SharedCounter,
    /// Content after, in bytes.
    pub(crate) out_bytes: SharedCounter,
    /// Responses that were left as they are, because as many were compressed as may be.
    pub(crate) left: SharedCounter,
}

impl CompressionCounts {
    /// That of bodies with this coding.
    pub(crate) fn of(&self, coding: ContentCoding) -> &SharedCounter {
        match coding {
            ContentCoding::Zstd => &self.zstd,
            ContentCoding::Gzip => &self.gzip,
        }
    }
}

/// Counters by reason.
#[derive(Debug)]
pub(crate) struct RefusalCounts([SharedCounter; REASONS]);

impl Default for RefusalCounts {
    fn default() -> Self {
        Self(std::array::from_fn(|_| SharedCounter::default()))
    }
}

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
    use std::time::Duration;

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
