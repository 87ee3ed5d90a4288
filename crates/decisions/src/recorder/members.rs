//! The back-ends of the run as it is now, for the heads of chunks.

use plimsoll_policy::{BackendId, Health};

use super::Recorder;
use crate::event::BackendEntry;
use crate::header_code::CountedLoad;

impl Recorder {
    /// This back-end has the index from now on.
    pub(super) fn has_joined(&mut self, backend: BackendId, joined: BackendEntry) {
        if let Some(entry) = self.entry(backend) {
            *entry = joined;
        } else if let Some(run) = self.run.as_mut().filter(|run| run.backends.len() < usize::from(u16::MAX)) {
            run.backends.push(joined);
            self.loads.push(CountedLoad::default());
        }
    }

    /// Notes what has changed of a back-end.
    pub(super) fn note(&mut self, backend: BackendId, change: impl FnOnce(&mut BackendEntry)) {
        if let Some(entry) = self.entry(backend) {
            change(entry);
        }
    }

    /// A back-end has told this load.
    pub(super) fn has_told(&mut self, backend: BackendId, told: u32) {
        if let Some(load) = self.loads.get_mut(backend.index()) {
            load.report(told);
        }
    }

    /// Nobody has the index from now on.
    pub(super) fn has_left(&mut self, backend: BackendId) {
        let place = self.left;
        self.left = self.left.wrapping_add(1);
        if let Some(entry) = self.entry(backend) {
            entry.left = Some(place);
            entry.health = Health::Down;
            entry.most = None;
        }
        self.has_told(backend, 0);
    }
}
