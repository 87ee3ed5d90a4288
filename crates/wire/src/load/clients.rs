//! Who asks, and which sequence numbers each has used.

use std::collections::BTreeMap;

/// How far behind the latest sequence number another one may be.
const WINDOW: u64 = 128;

/// Time between two searches for clients that are gone.
const SEARCH_INTERVAL_NS: u64 = 100_000_000;

/// The sequence numbers of one client: the latest one, and which of the 127 before it have come.
/// Bit 0 of `seen` is the latest. The number 0 counts as one that came.
#[derive(Debug, Clone, Copy)]
pub(super) struct SequenceWindow {
    latest: u64,
    seen: u128,
}

impl Default for SequenceWindow {
    fn default() -> Self {
        Self { latest: 0, seen: 1 }
    }
}

#[derive(Debug, Clone, Copy)]
struct KnownClient {
    window: SequenceWindow,
    seen_at_ns: u64,
}

impl SequenceWindow {
    pub(super) fn has(&self, sequence: u64) -> bool {
        match self.latest.checked_sub(sequence) {
            None => false,
            Some(back) if back < WINDOW => self.seen >> back & 1 == 1,
            // Too far back to know: it counts as one that came.
            Some(_) => true,
        }
    }

    /// Whether it is too far back to know whether it has come.
    pub(super) fn is_before(&self, sequence: u64) -> bool {
        self.latest.saturating_sub(sequence) >= WINDOW
    }

    pub(super) fn enter(&mut self, sequence: u64) {
        if let Some(back) = self.latest.checked_sub(sequence) {
            self.seen |= 1_u128.checked_shl(u32::try_from(back).unwrap_or(u32::MAX)).unwrap_or(0);
        } else {
            let ahead = u32::try_from(sequence - self.latest).unwrap_or(u32::MAX);
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.latest = sequence;
        }
    }
}

/// The clients whose sequence numbers are known, bounded. One that was silent for so long that whatever it has sent is stale
/// may be forgotten without letting a replay through.
#[derive(Debug)]
pub(super) struct ClientWindows {
    known: BTreeMap<u64, KnownClient>,
    most: usize,
    forget_after_ns: u64,
    searched_at_ns: Option<u64>,
}

impl ClientWindows {
    pub(super) fn new(most: usize, forget_after_ns: u64) -> Self {
        Self { known: BTreeMap::new(), most, forget_after_ns, searched_at_ns: None }
    }

    /// Whether this sequence number has come before, or cannot be told from one that has.
    pub(super) fn has_seen(&self, client: u64, sequence: u64) -> bool {
        self.known.get(&client).is_some_and(|known| known.window.has(sequence))
    }

    /// Notes a sequence number that has not come before. False when there is no room for another client.
    pub(super) fn enter(&mut self, client: u64, sequence: u64, now_ns: u64) -> bool {
        if let Some(known) = self.known.get_mut(&client) {
            known.window.enter(sequence);
            known.seen_at_ns = now_ns;
            return true;
        }
        if self.known.len() >= self.most {
            self.forget_gone(now_ns);
        }
        if self.known.len() >= self.most {
            return false;
        }
        let mut window = SequenceWindow::default();
        window.enter(sequence);
        self.known.insert(client, KnownClient { window, seen_at_ns: now_ns });
        true
    }

    fn forget_gone(&mut self, now_ns: u64) {
        if self.searched_at_ns.is_some_and(|at| now_ns.saturating_sub(at) < SEARCH_INTERVAL_NS) {
            return;
        }
        self.searched_at_ns = Some(now_ns);
        let limit_ns = self.forget_after_ns;
        self.known.retain(|_, known| now_ns.saturating_sub(known.seen_at_ns) <= limit_ns);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn room_is_bounded_and_comes_back() {
        let mut clients = ClientWindows::new(3, 1_000_000_000);
        assert!((1..=3).all(|client| clients.enter(client, 1, 0)));
        assert!(!clients.enter(4, 1, 500_000_000));
        assert!(clients.enter(3, 2, 900_000_000), "one that is known");
        assert!(clients.enter(4, 1, 1_500_000_000), "two are gone");
        assert_eq!(clients.len(), 2);
        assert!(clients.has_seen(3, 2) && !clients.has_seen(1, 1));
    }

    proptest! {
        /// What is let in was never let in before, and what is new and near the latest is let in.
        #[test]
        fn none_comes_twice(sequences in prop::collection::vec(1_u64..400, 1..200)) {
            let mut clients = ClientWindows::new(1, 1);
            let (mut known, mut latest) = (BTreeSet::new(), 0);
            for sequence in sequences {
                let seen = clients.has_seen(9, sequence);
                if known.contains(&sequence) {
                    prop_assert!(seen);
                } else if sequence + WINDOW > latest {
                    prop_assert!(!seen, "{sequence} after {latest}");
                }
                if !seen {
                    clients.enter(9, sequence, 0);
                    known.insert(sequence);
                    latest = latest.max(sequence);
                }
            }
        }
    }
}
