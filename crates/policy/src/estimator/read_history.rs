//! The history of what a back-end has read from its disk, by which misses are predicted.
//!
//! Source: Hyun et al., section 3.3. A back-end with an LRU cache has lost a document once it has read as many other bytes as the
//! cache holds since the document was last used.

use crate::time::{Nanos, Time};

/// The bytes that a back-end has read, recorded at regular times. What is older than the table counts as read at its beginning.
#[derive(Debug, Clone)]
pub struct ReadHistory {
    /// Bytes read before each span, in a circle.
    before: Box<[u64]>,
    span_ns: u64,
    /// Number since time zero of the latest span.
    latest: u64,
    read_bytes: u64,
}

impl ReadHistory {
    /// A history of `entries` spans of `span` each.
    #[must_use]
    pub fn new(entries: usize, span: Nanos) -> Self {
        let (entries, span_ns) = (entries.max(1), span.as_nanos().max(1));
        Self { before: vec![0; entries].into(), span_ns, latest: 0, read_bytes: 0 }
    }

    /// `bytes` were read at `at`, or later than the latest span if that is after it.
    pub fn read(&mut self, at: Time, bytes: u64) {
        self.advance(at);
        self.read_bytes = self.read_bytes.saturating_add(bytes);
    }

    fn advance(&mut self, at: Time) {
        let number = at.as_nanos() / self.span_ns;
        if number <= self.latest {
            return;
        }
        let entries = self.before.len() as u64;
        for passed in (self.latest + 1).max(number.saturating_sub(entries - 1))..=number {
            self.before[(passed % entries) as usize] = self.read_bytes;
        }
        self.latest = number;
    }

    /// The bytes read since the span of `since` began.
    #[must_use]
    pub fn since(&self, since: Time) -> u64 {
        let number = since.as_nanos() / self.span_ns;
        if number > self.latest {
            return 0;
        }
        let entries = self.before.len() as u64;
        let oldest = (self.latest + 1).saturating_sub(entries);
        self.read_bytes - self.before[(number.max(oldest) % entries) as usize]
    }

    /// All bytes read.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.read_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::ZERO + Nanos::from_secs(seconds)
    }

    #[test]
    fn bytes_since_a_span_began() {
        let mut history = ReadHistory::new(4, Nanos::from_secs(1));
        history.read(s(0), 10);
        history.read(s(2), 20);
        history.read(s(2), 1);
        assert_eq!([0, 1, 2, 3].map(|t| history.since(s(t))), [31, 21, 21, 0]);
        history.read(s(5), 100);
        // Spans 2 to 5 are left; what is older counts as of the oldest.
        assert_eq!([0, 2, 3, 5, 6].map(|t| history.since(s(t))), [121, 121, 100, 100, 0]);
        // A time in the past counts as the latest.
        history.read(s(1), 5);
        assert_eq!((history.since(s(5)), history.total()), (105, 136));
        history.read(s(1_000_000), 0);
        assert_eq!([5, 999_999, 1_000_000].map(|t| history.since(s(t))), [0, 0, 0]);
    }
}
