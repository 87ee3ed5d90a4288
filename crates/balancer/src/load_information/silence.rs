//! Which agents do not answer, so that the log tells it once: with another key, an agent's silence is all that there is to see.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An agent that answers now and then fills no log: its silence is told again after so long at the earliest.
const TOLD_AGAIN_NS: u64 = 60_000_000_000;

#[derive(Debug, Clone, Copy)]
struct Told {
    address: SocketAddr,
    at_ns: u64,
    is_silent: bool,
}

/// What was told of agents' silence, by index of the back-end.
#[derive(Debug, Default)]
pub(super) struct SilentAgents {
    told: Mutex<BTreeMap<usize, Told>>,
    /// Those that are silent: an answer looks no further where none is.
    silent: AtomicUsize,
}

impl SilentAgents {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing comes from the agent at this address; whether that is to be told.
    pub(super) fn falls_silent(&self, index: usize, address: SocketAddr, now_ns: u64) -> bool {
        let mut told = self.lock();
        let is_known = told
            .get(&index)
            .filter(|told| told.address == address)
            .is_some_and(|told| told.is_silent || now_ns.saturating_sub(told.at_ns) < TOLD_AGAIN_NS);
        if !is_known {
            let before = told.insert(index, Told { address, at_ns: now_ns, is_silent: true });
            let is_one_more = before.is_none_or(|before| !before.is_silent);
            self.silent.fetch_add(usize::from(is_one_more), Ordering::Relaxed);
        }
        !is_known
    }

    /// An agent answers; whether its silence was told.
    pub(super) fn answers(&self, index: usize) -> bool {
        if self.silent.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut told = self.lock();
        let Some(told) = told.get_mut(&index).filter(|told| told.is_silent) else { return false };
        told.is_silent = false;
        self.silent.fetch_sub(1, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_once_and_its_end_too() {
        let agents = SilentAgents::default();
        let [here, there] = ["127.0.0.1:1", "127.0.0.1:2"].map(|at| at.parse().unwrap());
        assert!(!agents.answers(1), "it was never silent");
        assert!(agents.falls_silent(1, here, 0));
        assert!(!agents.falls_silent(1, here, 2 * TOLD_AGAIN_NS), "still");
        assert!(agents.falls_silent(2, here, 5));
        assert!(agents.falls_silent(1, there, 2 * TOLD_AGAIN_NS), "another agent");
        assert!(agents.answers(1) && !agents.answers(1));
        assert!(agents.answers(2));
        assert!(!agents.falls_silent(2, here, TOLD_AGAIN_NS - 1), "now and then");
        assert!(!agents.answers(2));
        assert!(agents.falls_silent(2, here, TOLD_AGAIN_NS + 5));
        assert!(agents.answers(2));
        assert_eq!(agents.silent.load(Ordering::Relaxed), 0);
    }
}
