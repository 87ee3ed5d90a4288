//! Whether a back-end takes requests, by the signs that it gives.
//!
//! ```text
//! it is up         until there were `fall` bad signs in a row; it is down then until there were `rise` good ones
//! a bad sign       is certain (its connections are refused or reset, or it answers a check badly), or doubtful (it does not answer in time)
//! down for certain what is under way there fails at once, and can be tried elsewhere
//! in doubt         it may be busy with what is under way there, which therefore goes on; of that, a request that may be repeated goes
//!                  elsewhere, once. It takes new requests only while it stands in: where no other back-end takes any. Its idle connections
//!                  are closed while it answers nobody: it may serve them one after the other.
//! ```

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use plimsoll_policy::Health;

use super::Backend;
use super::condition::{Doubt, Tracker};

/// What a bad sign has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worsened {
    /// It is down now.
    WentDown,
    /// It was down before; that is in doubt now, or no longer.
    OtherCause,
}

impl Backend {
    /// Changes whenever the back-end goes down for certain, or ends that.
    pub(crate) fn turns(&self) -> u32 {
        self.condition.turns.load(Ordering::Relaxed)
    }

    /// Whether it is down for certain, or was at some time since it had turned `before` times.
    pub(crate) fn went_down_since(&self, before: u32) -> bool {
        before % 2 == 1 || self.turns() != before
    }

    /// How often it has ceased to take requests because it is in doubt.
    pub(crate) fn lapses(&self) -> u32 {
        self.condition.lapses.load(Ordering::Relaxed)
    }

    /// Counts a good sign; the new health when it changed.
    pub(crate) fn good_sign(&self, rise: u32) -> Option<Health> {
        let mut tracker = self.tracker();
        (tracker.bad, tracker.of_kind) = (0, 0);
        tracker.good = tracker.good.saturating_add(1);
        if self.address.is_err() || tracker.up || tracker.good < rise {
            return None;
        }
        tracker.up = true;
        tracker.ejection.clear();
        if tracker.doubt.take().is_none() {
            self.condition.turns.fetch_add(1, Ordering::Relaxed);
        }
        self.condition.doubtful.store(false, Ordering::Relaxed);
        Some(tracker.health())
    }

    /// Counts a bad sign, doubtful or certain; what it has changed.
    pub(crate) fn bad_sign(&self, fall: u32, doubtful: bool) -> Option<Worsened> {
        let mut tracker = self.tracker();
        tracker.good = 0;
        tracker.bad = tracker.bad.saturating_add(1);
        tracker.of_kind =
            if tracker.last_doubtful == doubtful { tracker.of_kind.saturating_add(1) } else { 1 };
        tracker.last_doubtful = doubtful;
        let is_of_cause = tracker.doubt.is_some() == doubtful;
        let worsened = match tracker.up {
            true if tracker.bad < fall => return None,
            true => Worsened::WentDown,
            false if is_of_cause || tracker.of_kind < fall || self.address.is_err() => return None,
            false => Worsened::OtherCause,
        };
        tracker.up = false;
        tracker.doubt = doubtful.then_some(Doubt::Fresh);
        self.condition.doubtful.store(doubtful, Ordering::Relaxed);
        // It goes down for certain, or is so no longer.
        if !doubtful || worsened == Worsened::OtherCause {
            self.condition.turns.fetch_add(1, Ordering::Relaxed);
        }
        Some(worsened)
    }

    /// Whether it is down and in doubt.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.condition.doubtful.load(Ordering::Relaxed)
    }

    /// Whether it takes requests though it is in doubt.
    pub(crate) fn stands_in(&self) -> bool {
        self.tracker().doubt == Some(Doubt::StandsIn)
    }

    /// Where it is in doubt: it takes requests, as no other one does, or none. Returns whether that is new.
    pub(crate) fn stand_in(&self, alone: bool) -> bool {
        let mut tracker = self.tracker();
        let Some(before) = tracker.doubt else { return false };
        let now = if alone { Doubt::StandsIn } else { Doubt::LeftOut };
        tracker.doubt = Some(now);
        let was_ejected = alone && tracker.ejection.is_ejected();
        if was_ejected {
            tracker.ejection.clear();
        }
        if !alone && before != now {
            self.condition.lapses.fetch_add(1, Ordering::Relaxed);
        }
        before != now || was_ejected
    }

    /// Its checks time out, and it has answered nobody meanwhile; or that is over.
    pub(crate) fn set_blocked(&self, blocked: bool) {
        self.condition.blocked.store(blocked, Ordering::Relaxed);
    }

    /// Whether it may wait for the next request of a connection that is kept.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_doubtful() && self.condition.blocked.load(Ordering::Relaxed)
    }

    pub(super) fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.condition.tracker()
    }
}
