//! Connections at which loads are told: bounded, so that those that say nothing give way to new ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tokio::task::AbortHandle;

/// Most connections at once.
pub(super) const MOST_CONNECTIONS: usize = 64;

#[derive(Debug)]
struct OpenConnection {
    /// When it began, or its last request ended.
    used_at: Instant,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    by_number: BTreeMap<u64, OpenConnection>,
}

/// The connections that are open.
#[derive(Debug, Default)]
pub(super) struct ApiConnections(Mutex<Open>);

impl ApiConnections {
    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one in, which `start` serves under the number that it gets. Where there are as many as there may be, the one that has
    /// asked nothing for longest ends.
    pub(super) fn enter(&self, start: impl FnOnce(u64) -> AbortHandle) {
        let mut open = self.open();
        if open.by_number.len() >= MOST_CONNECTIONS
            && let Some((&longest, _)) =
                open.by_number.iter().min_by_key(|(_, connection)| connection.used_at)
            && let Some(gone) = open.by_number.remove(&longest)
        {
            gone.task.abort();
        }
        let number = open.next;
        open.next += 1;
        // Its task, on another thread, may be over before: then it waits here to leave.
        let task = start(number);
        open.by_number.insert(number, OpenConnection { used_at: Instant::now(), task });
    }

    /// It has asked something.
    pub(super) fn used(&self, number: u64) {
        if let Some(connection) = self.open().by_number.get_mut(&number) {
            connection.used_at = Instant::now();
        }
    }

    /// It is over.
    pub(super) fn leave(&self, number: u64) {
        self.open().by_number.remove(&number);
    }
}
