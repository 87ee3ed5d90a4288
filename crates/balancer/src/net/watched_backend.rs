//! A back-end whose answer is waited for.

use std::sync::Arc;

use super::fired::Fired;
use crate::backend::Backend;
use crate::backend::kept_places::{SOON, Starving};

/// A back-end of which is to be known when it goes down.
#[derive(Debug)]
pub(crate) struct WatchedBackend {
    pub(crate) backend: Arc<Backend>,
    /// How often it had turned.
    pub(crate) turns: u32,
    /// How often it had ceased to take requests because it is in doubt, if that is to be known as well.
    pub(crate) lapses: Option<u32>,
    /// The request that waits there.
    pub(crate) wait: BackendWait,
}

/// A request that waits for a back-end's answer.
#[derive(Debug)]
pub(crate) struct BackendWait {
    /// Since when, in milliseconds.
    since_ms: u64,
    may_starve: bool,
    /// Set once it does.
    starving: Option<Starving>,
}

impl BackendWait {
    /// It begins now. `may_starve`: its connection is new and all of it is sent at once, so that kept connections may be why it waits for long.
    pub(crate) fn since(now_ms: u64, may_starve: bool) -> Self {
        Self { since_ms: now_ms, may_starve, starving: None }
    }
}

impl WatchedBackend {
    /// Why it is not to be waited for any longer.
    pub(super) fn lost(&self) -> Option<Fired> {
        if self.backend.went_down_since(self.turns) {
            return Some(Fired::BackendDown);
        }
        self.lapses.filter(|&before| self.backend.lapses() != before).map(|_| Fired::InDoubt)
    }

    /// Time has come to `now_ms`, later by `late_ms` than it should have.
    pub(super) fn waits(&mut self, now_ms: u64, late_ms: u64) {
        let wait = &mut self.wait;
        // What the worker was held up by is no wait for the back-end.
        wait.since_ms = wait.since_ms.saturating_add(late_ms).min(now_ms);
        let waited_ms = now_ms - wait.since_ms;
        if wait.starving.take_if(|starving| starving.is_late()).is_some() {
            wait.may_starve = false;
            self.backend.kept_places.took(waited_ms);
        } else if wait.may_starve && wait.starving.is_none() {
            wait.starving = self.backend.kept_places.waited(waited_ms);
        }
    }

    /// The back-end has answered.
    pub(super) fn answered(self, now_ms: u64) {
        let kept_is_why =
            self.wait.starving.is_some_and(|starving| self.backend.starves_no_more(starving, SOON));
        if !kept_is_why {
            self.backend.kept_places.took(now_ms.saturating_sub(self.wait.since_ms));
        }
    }
}
