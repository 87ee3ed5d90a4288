//! The least rate at which a client must send or receive a body: a slower one holds a place under the
//! admission limit that others could use.

use std::time::Duration;

/// Bytes per second on average, once `timeouts.body` has passed.
const LEAST_BYTES_PER_S: u64 = 1024;

/// How long a client may still be waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    waited_ms: u64,
}

impl Pace {
    /// The same once the client has been waited for this long more.
    #[must_use]
    pub(crate) fn after(self, ms: u64) -> Self {
        Self { waited_ms: self.waited_ms.saturating_add(ms) }
    }

    /// How long the client has been waited for.
    pub(crate) fn waited(self) -> Duration {
        Duration::from_millis(self.waited_ms)
    }

    /// The time for the next step of a client that has moved this many bytes so far: at most `most`, the time-out of one
    /// step, and nothing when it has been slower than the least rate for longer than that.
    pub(crate) fn next(self, most: Duration, moved_bytes: u64) -> Duration {
        let earned = Duration::from_millis(moved_bytes.saturating_mul(1000) / LEAST_BYTES_PER_S);
        most.saturating_add(earned).saturating_sub(Duration::from_millis(self.waited_ms)).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_fast_enough_has_the_whole_time_out_for_each_step() {
        let body = Duration::from_secs(30);
        assert_eq!(Pace::default().next(body, 0), body);
        let pace = Pace::default().after(20_000);
        assert_eq!(pace.next(body, 20 * 1024), body);
        assert_eq!(pace.next(body, 0), Duration::from_secs(10));
        assert_eq!(pace.after(60_000).next(body, 10 * 1024), Duration::ZERO);
    }
}
