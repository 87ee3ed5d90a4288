//! The clones that are here, by flow.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_datapath::{Flow, tcp};

/// See the module's documentation. Looked up by flow only.
#[derive(Debug, Default)]
pub(super) struct Clones(Mutex<CloneTable>);

#[derive(Debug, Default)]
struct CloneTable {
    next_number: u64,
    clones: HashMap<Flow, (u64, OwnedFd), FixedState>,
}

impl CloneTable {
    fn has(&self, flow: &Flow, number: u64) -> bool {
        self.clones.get(flow).is_some_and(|(of, _)| *of == number)
    }

    fn take(&mut self, flow: &Flow, number: u64) -> Option<OwnedFd> {
        let (_, socket) = if self.has(flow, number) { self.clones.remove(flow) } else { None }?;
        Some(socket)
    }
}

fn discard(flow: &Flow, socket: &OwnedFd) {
    if let Err(error) = tcp::discard(socket.as_fd()) {
        tracing::debug!(%error, ?flow, "a clone could not be removed");
    }
}

impl Clones {
    fn table(&self) -> MutexGuard<'_, CloneTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another clone of this connection is to come: one that is still here has been overtaken by its original, and goes silently.
    pub(super) fn clear(&self, flow: &Flow) {
        let before = self.table().clones.remove(flow);
        if let Some((_, socket)) = before {
            discard(flow, &socket);
        }
    }

    /// The clone of this number goes silently, if it is still here.
    pub(super) fn discard(&self, flow: &Flow, number: u64) {
        let mut table = self.table();
        if let Some(socket) = table.take(flow, number) {
            discard(flow, &socket);
        }
    }

    /// Enters a clone by a copy of its descriptor, and returns its number.
    pub(super) fn enter(&self, flow: Flow, socket: OwnedFd) -> u64 {
        let mut table = self.table();
        let number = table.next_number;
        table.next_number += 1;
        table.clones.insert(flow, (number, socket));
        number
    }

    /// Whether the clone of this number is still here.
    pub(super) fn is_here(&self, flow: &Flow, number: u64) -> bool {
        self.table().has(flow, number)
    }

    /// Whether the clone of this number is here, and its client says nothing: see [`tcp::is_unanswered`].
    pub(super) fn is_unanswered(&self, flow: &Flow, number: u64, limit: Duration) -> bool {
        let table = self.table();
        let clone = table.clones.get(flow).filter(|(of, _)| *of == number);
        clone.is_some_and(|(_, socket)| matches!(tcp::is_unanswered(socket.as_fd(), limit), Ok(true)))
    }

    /// Removes the clone of this number, unless another one has its place.
    pub(super) fn leave(&self, flow: &Flow, number: u64) {
        self.table().take(flow, number);
    }
}
