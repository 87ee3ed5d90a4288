//! The condition of a back-end: whether it takes requests, and why.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_policy::Health;

use crate::ejection::Ejection;

/// How a back-end is.
#[derive(Debug)]
pub(super) struct BackendCondition {
    /// How often it went down for certain or ended that: odd while it is.
    pub(super) turns: AtomicU32,
    /// How often it has ceased to take requests because it is in doubt.
    pub(super) lapses: AtomicU32,
    /// Whether it is in doubt: what the tracker says, without its lock.
    pub(super) doubtful: AtomicBool,
    /// Its checks time out, and it answers nobody: it may wait for the next request of a connection that is kept.
    pub(super) blocked: AtomicBool,
    tracker: Mutex<Tracker>,
}

impl BackendCondition {
    /// Of a back-end that is up, or down.
    pub(super) fn new(up: bool) -> Self {
        let tracker = Tracker {
            up,
            good: 0,
            bad: 0,
            of_kind: 0,
            last_doubtful: false,
            doubt: None,
            drained: false,
            keeps_sessions: false,
            ejection: Ejection::default(),
        };
        Self {
            turns: AtomicU32::new(u32::from(!up)),
            lapses: AtomicU32::new(0),
            doubtful: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            tracker: Mutex::new(tracker),
        }
    }

    pub(super) fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts good and bad signs of a back-end and its failures, and keeps an operator's drain.
#[derive(Debug)]
pub(super) struct Tracker {
    pub(super) up: bool,
    pub(super) good: u32,
    pub(super) bad: u32,
    /// Bad signs in a row that are all doubtful, or all certain, as the last one was.
    pub(super) of_kind: u32,
    pub(super) last_doubtful: bool,
    /// Set while it is down and in doubt.
    pub(super) doubt: Option<Doubt>,
    pub(super) drained: bool,
    /// Whether it is drained, and takes requests of its sessions yet.
    pub(super) keeps_sessions: bool,
    pub(super) ejection: Ejection,
}

/// What is done with a back-end in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Nobody has looked yet whether others take requests.
    Fresh,
    /// Others do.
    LeftOut,
    /// No other one does, so that it has to.
    StandsIn,
}

impl Tracker {
    pub(super) fn health(&self) -> Health {
        let takes = self.up || self.doubt == Some(Doubt::StandsIn);
        match (takes, self.drained && !self.keeps_sessions || self.ejection.is_ejected()) {
            (false, _) => Health::Down,
            (true, true) => Health::Draining,
            (true, false) => Health::Up,
        }
    }
}
