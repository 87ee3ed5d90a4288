//! Back-ends as the switch has to know them, and the table of the consistent hash over them.

use std::collections::BTreeMap;

use plimsoll_datapath::NextHop;
use plimsoll_datapath::switch::{ConnHolder, TABLE_SLOTS};
use plimsoll_policy::BackendId;
use plimsoll_policy::policies::maglev;

/// Whether a back-end gets packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchBackendState {
    /// It gets new connections.
    Up,
    /// It keeps those that it has.
    Draining,
    /// Its connections are lost.
    Down,
}

/// A back-end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchBackend {
    /// Its index, and which of those that had this index it is.
    pub holder: ConnHolder,
    /// What the consistent hash knows it by: the same in every switch.
    pub key: u64,
    /// Its weight, in steps.
    pub weight: u32,
    /// Whether it gets packets.
    pub state: SwitchBackendState,
    /// Where its packets are sent; without one, none is.
    pub next_hop: Option<NextHop>,
}

impl SwitchBackend {
    /// Where packets of its connections go.
    #[must_use]
    pub fn way(&self) -> Option<&NextHop> {
        self.next_hop.as_ref().filter(|_| self.state != SwitchBackendState::Down)
    }

    /// Whether it gets new connections.
    #[must_use]
    pub fn takes(&self) -> bool {
        self.state == SwitchBackendState::Up && self.next_hop.is_some() && self.weight > 0
    }
}

/// All of them, by index.
#[derive(Debug, Default)]
pub(crate) struct KnownBackends {
    by_index: BTreeMap<u16, SwitchBackend>,
}

/// What changes when back-ends change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BackendChanges {
    /// Those whose packets go elsewhere from now on, or nowhere.
    pub(crate) set: Vec<SwitchBackend>,
    /// Those whose connections are lost.
    pub(crate) lost: Vec<ConnHolder>,
    /// Whether others get new connections.
    pub(crate) chooses_anew: bool,
}

impl KnownBackends {
    /// Whether packets for `holder` are sent.
    pub(crate) fn is_usable(&self, holder: ConnHolder) -> bool {
        self.by_index
            .get(&holder.backend)
            .is_some_and(|known| known.holder == holder && known.way().is_some())
    }

    /// Whether the back-end of this index gets new connections.
    pub(crate) fn takes(&self, backend: BackendId) -> bool {
        let index = u16::try_from(backend.index()).ok();
        index.and_then(|index| self.by_index.get(&index)).is_some_and(SwitchBackend::takes)
    }

    /// These are the back-ends from now on.
    pub(crate) fn replace(&mut self, backends: Vec<SwitchBackend>) -> BackendChanges {
        let new: BTreeMap<u16, SwitchBackend> =
            backends.into_iter().map(|backend| (backend.holder.backend, backend)).collect();
        let old = std::mem::take(&mut self.by_index);
        let mut changes = BackendChanges::default();
        for (index, before) in &old {
            let now = new.get(index);
            let stays = now.is_some_and(|now| now.holder == before.holder && now.way().is_some());
            if before.way().is_some() && !stays {
                changes.lost.push(before.holder);
            }
            if now.is_none() {
                changes.set.push(SwitchBackend {
                    state: SwitchBackendState::Down,
                    next_hop: None,
                    ..before.clone()
                });
            }
            changes.chooses_anew |= before.takes() && now.is_none();
        }
        for (index, now) in &new {
            let before = old.get(index);
            if before.is_none_or(|before| (before.holder, before.way()) != (now.holder, now.way())) {
                changes.set.push(now.clone());
            }
            let member =
                |backend: &SwitchBackend| (backend.takes(), backend.key, backend.weight, backend.holder);
            changes.chooses_anew |= match before {
                Some(before) => member(before) != member(now),
                None => now.takes(),
            };
        }
        self.by_index = new;
        changes
    }

    /// The table of the consistent hash.
    pub(crate) fn table(&self) -> Vec<Option<u16>> {
        let takers = self.by_index.values().filter(|backend| backend.takes());
        let members: Vec<_> = takers
            .map(|backend| (backend.key, BackendId::new(backend.holder.backend.into()), backend.weight))
            .collect();
        let table = maglev::table_of(&members, TABLE_SLOTS as u64);
        if table.is_empty() {
            return vec![None; TABLE_SLOTS];
        }
        table.into_iter().map(|backend| u16::try_from(backend.index()).ok()).collect()
    }
}
