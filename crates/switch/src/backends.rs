//! Back-ends as the switch has to know them, and the table of the consistent hash over them.

use std::collections::BTreeMap;

use plimsoll_datapath::NextHop;
use plimsoll_datapath::switch::{ConnHolder, MOST_BACKENDS, TABLE_SLOTS};
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
    /// As who decides knows it.
    pub id: BackendId,
    /// What every switch and every process know it by, and what its place in the consistent hash follows from; not 0.
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

/// All of them, by the index that the packet program knows them by. It outlives the process, as connections do; so it is not that
/// of who decides.
#[derive(Debug, Default)]
pub(crate) struct KnownBackends {
    by_index: BTreeMap<u16, (ConnHolder, SwitchBackend)>,
    /// Who has an index, or had it last, and its key.
    holders: BTreeMap<u16, (ConnHolder, u64)>,
}

/// What changes when back-ends change.
#[derive(Debug, Default)]
pub(crate) struct BackendChanges {
    /// Those whose packets go elsewhere from now on, or nowhere.
    pub(crate) set: Vec<(ConnHolder, SwitchBackend)>,
    /// Those whose connections are lost.
    pub(crate) lost: Vec<ConnHolder>,
    /// Whether others get new connections.
    pub(crate) chooses_anew: bool,
    /// Back-ends for which there is no index.
    pub(crate) without_index: usize,
}

impl KnownBackends {
    /// With the holders that an earlier process has left.
    pub(crate) fn new(holders: impl IntoIterator<Item = (ConnHolder, u64)>) -> Self {
        let holders = holders.into_iter().map(|(holder, key)| (holder.backend, (holder, key)));
        Self { by_index: BTreeMap::new(), holders: holders.collect() }
    }

    /// Who has this holder's connections, if packets are sent to it.
    pub(crate) fn usable(&self, holder: ConnHolder) -> Option<BackendId> {
        let (known, backend) = self.by_index.get(&holder.backend)?;
        (*known == holder && backend.way().is_some()).then_some(backend.id)
    }

    /// The index of a back-end that gets new connections.
    pub(crate) fn taking(&self, id: BackendId) -> Option<u16> {
        let (index, _) =
            self.by_index.iter().find(|(_, (_, backend))| backend.id == id && backend.takes())?;
        Some(*index)
    }

    /// The back-ends, with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnHolder, &SwitchBackend)> {
        self.by_index.values().map(|(holder, backend)| (*holder, backend))
    }

    /// The holder of a back-end: the one that it has had, or the first index that nobody has.
    fn holder_of(&mut self, key: u64, wanted: &[u64]) -> Option<ConnHolder> {
        if let Some((holder, _)) = self.holders.values().find(|(_, known)| *known == key) {
            return Some(*holder);
        }
        let most = u16::try_from(MOST_BACKENDS).unwrap_or(u16::MAX);
        let unused = (0..most).find(|index| !self.holders.contains_key(index));
        let holder = match unused {
            Some(backend) => ConnHolder { backend, generation: 0 },
            None => {
                let (gone, _) = self.holders.values().find(|(_, known)| !wanted.contains(known))?;
                ConnHolder { generation: gone.generation.wrapping_add(1), ..*gone }
            }
        };
        self.holders.insert(holder.backend, (holder, key));
        Some(holder)
    }

    /// These are the back-ends from now on.
    pub(crate) fn replace(&mut self, backends: Vec<SwitchBackend>) -> BackendChanges {
        let wanted: Vec<u64> = backends.iter().map(|backend| backend.key).collect();
        let mut changes = BackendChanges::default();
        let mut new = BTreeMap::new();
        for backend in backends {
            match self.holder_of(backend.key, &wanted) {
                Some(holder) => _ = new.insert(holder.backend, (holder, backend)),
                None => changes.without_index += 1,
            }
        }
        let old = std::mem::replace(&mut self.by_index, new);
        for (index, (holder, before)) in &old {
            let now = self.by_index.get(index);
            let stays = now.is_some_and(|(other, now)| other == holder && now.way().is_some());
            if before.way().is_some() && !stays {
                changes.lost.push(*holder);
            }
            if now.is_none() {
                let gone = SwitchBackend { state: SwitchBackendState::Down, ..before.clone() };
                changes.set.push((*holder, gone));
                changes.chooses_anew |= before.takes();
            }
        }
        let way = |(holder, backend): &(ConnHolder, SwitchBackend)| (*holder, backend.way().copied());
        let member = |(holder, backend): &(ConnHolder, SwitchBackend)| {
            (backend.takes(), *holder, backend.id, backend.weight)
        };
        for (index, now) in &self.by_index {
            let before = old.get(index);
            if before.map(way) != Some(way(now)) {
                changes.set.push(now.clone());
            }
            changes.chooses_anew |= before.map(member) != Some(member(now));
        }
        changes
    }

    /// The table of the consistent hash.
    pub(crate) fn table(&self) -> Vec<Option<u16>> {
        let takers = self.by_index.iter().filter(|(_, (_, backend))| backend.takes());
        let members: Vec<_> = takers
            .map(|(index, (_, backend))| (backend.key, BackendId::new(usize::from(*index)), backend.weight))
            .collect();
        let table = maglev::table_of(&members, TABLE_SLOTS as u64);
        if table.is_empty() {
            return vec![None; TABLE_SLOTS];
        }
        table.into_iter().map(|backend| u16::try_from(backend.index()).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(id: usize, key: u64, state: SwitchBackendState) -> SwitchBackend {
        let next_hop = NextHop { ifindex: 1, mac: [2, 0, 0, 0, 0, key as u8], own_mac: [2, 0, 0, 0, 1, 0] };
        SwitchBackend { id: BackendId::new(id), key, weight: 1000, state, next_hop: Some(next_hop) }
    }

    use SwitchBackendState::{Down, Draining, Up};

    #[test]
    fn indices_outlive_the_process() {
        let left = ConnHolder { backend: 0, generation: 3 };
        let mut known = KnownBackends::new([(left, 7)]);
        // It is the second one now.
        let changes = known.replace(vec![backend(0, 5, Up), backend(1, 7, Up)]);
        assert_eq!((changes.set.len(), changes.chooses_anew, changes.lost.len()), (2, true, 0));
        assert_eq!(known.usable(left), Some(BackendId::new(1)));
        assert_eq!((known.taking(BackendId::new(0)), known.taking(BackendId::new(1))), (Some(1), Some(0)));
        assert_eq!(known.usable(ConnHolder { generation: 2, ..left }), None);
        assert!(known.table().contains(&Some(0)) && known.table().contains(&Some(1)));
    }

    #[test]
    fn changes_are_what_differs() {
        let mut known = KnownBackends::default();
        known.replace(vec![backend(0, 5, Up), backend(1, 7, Up)]);
        let changes = known.replace(vec![backend(0, 5, Up), backend(1, 7, Up)]);
        assert_eq!((changes.set.len(), changes.chooses_anew, changes.lost.len()), (0, false, 0));
        let changes = known.replace(vec![backend(0, 5, Up), backend(1, 7, Draining)]);
        assert_eq!((changes.set.len(), changes.chooses_anew, changes.lost.len()), (0, true, 0));
        assert!(known.table().iter().all(|slot| *slot == Some(0)));
        let changes = known.replace(vec![backend(0, 5, Down), backend(1, 7, Draining)]);
        assert_eq!((changes.set.len(), changes.lost.len()), (1, 1));
        assert!(known.table().iter().all(Option::is_none));
        let changes = known.replace(vec![backend(0, 5, Up)]);
        assert_eq!((changes.set.len(), changes.lost.len(), changes.chooses_anew), (2, 1, true));
        assert!(changes.set.iter().any(|(_, gone)| gone.key == 7 && gone.way().is_none()));
    }

    #[test]
    fn an_index_is_used_again_only_where_there_is_no_other() {
        let holders = (0..MOST_BACKENDS as u16).map(|index| {
            let generation = if index == 9 { u16::MAX } else { 0 };
            (ConnHolder { backend: index, generation }, u64::from(index) + 100)
        });
        let mut known = KnownBackends::new(holders);
        let mut wanted: Vec<_> = (0..MOST_BACKENDS).map(|n| backend(n, n as u64 + 100, Up)).collect();
        wanted[9] = backend(9, 5, Up);
        assert_eq!(known.replace(wanted.clone()).without_index, 0);
        assert_eq!(known.usable(ConnHolder { backend: 9, generation: 0 }), Some(BackendId::new(9)));
        wanted.push(backend(MOST_BACKENDS, 6, Up));
        assert_eq!(known.replace(wanted).without_index, 1);
    }
}
