//! Back-ends as the switch has to know them, and the table of the consistent hash over them.

use std::collections::BTreeMap;

use plimsoll_datapath::NextHop;
use plimsoll_datapath::switch::{ConnHolder, FrameTag, MOST_BACKENDS, TABLE_SLOTS, Tunnel};
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
    /// Where its packets are sent. Without one, connections that it has go where an earlier process sent them.
    pub next_hop: Option<NextHop>,
    /// The tunnel in which they go, where it is behind a router.
    pub tunnel: Option<Tunnel>,
    /// The VLAN tag of its frames.
    pub tag: FrameTag,
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
    /// Those that were removed while packets were sent to them. These go on until their connections are over, as answers do.
    departed: BTreeMap<u16, (ConnHolder, SwitchBackend)>,
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
        Self { holders: holders.collect(), ..Self::default() }
    }

    /// Who has this holder's connections, if packets are sent to it.
    pub(crate) fn usable(&self, holder: ConnHolder) -> Option<BackendId> {
        let (known, backend) =
            self.by_index.get(&holder.backend).or_else(|| self.departed.get(&holder.backend))?;
        (*known == holder && backend.way().is_some()).then_some(backend.id)
    }

    /// The index of a back-end that gets new connections.
    pub(crate) fn taking(&self, id: BackendId) -> Option<u16> {
        let (index, _) =
            self.by_index.iter().find(|(_, (_, backend))| backend.id == id && backend.takes())?;
        Some(*index)
    }

    /// The back-ends, with their indices; at last those that were removed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnHolder, &SwitchBackend)> {
        let all = self.by_index.values().chain(self.departed.values());
        all.map(|(holder, backend)| (*holder, backend))
    }

    /// Those that were removed, and may have connections still.
    pub(crate) fn departed(&self) -> Vec<ConnHolder> {
        self.departed.values().map(|(holder, _)| *holder).collect()
    }

    /// One that was removed has no connection any more. Returns what is to be told of it.
    pub(crate) fn forget(&mut self, holder: ConnHolder) -> Option<SwitchBackend> {
        let (known, _) = self.departed.get(&holder.backend)?;
        if *known != holder {
            return None;
        }
        let (_, backend) = self.departed.remove(&holder.backend)?;
        Some(SwitchBackend { state: SwitchBackendState::Down, ..backend })
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
                let is_free = |(holder, known): &&(ConnHolder, u64)| {
                    !wanted.contains(known) && !self.departed.contains_key(&holder.backend)
                };
                let (gone, _) = self.holders.values().find(is_free)?;
                ConnHolder { generation: gone.generation.wrapping_add(1), ..*gone }
            }
        };
        self.holders.insert(holder.backend, (holder, key));
        Some(holder)
    }

    /// These are the back-ends from now on. Those that are not among them get nothing new, and keep what they have.
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
            match self.by_index.get(index) {
                Some((other, now)) => {
                    if before.way().is_some() && (other != holder || now.way().is_none()) {
                        changes.lost.push(*holder);
                    }
                }
                None => {
                    changes.chooses_anew |= before.takes();
                    if before.way().is_some() {
                        let departed =
                            SwitchBackend { state: SwitchBackendState::Draining, ..before.clone() };
                        self.departed.insert(*index, (*holder, departed));
                    }
                }
            }
        }
        let way = |(holder, backend): &(ConnHolder, SwitchBackend)| {
            (*holder, backend.way().copied(), backend.tunnel, backend.tag)
        };
        let member = |(holder, backend): &(ConnHolder, SwitchBackend)| {
            (backend.takes(), *holder, backend.id, backend.weight)
        };
        for (index, now) in &self.by_index {
            // One that was removed may be back.
            let back = self.departed.remove(index);
            if let Some((holder, _)) = &back
                && now.1.way().is_none()
            {
                changes.lost.push(*holder);
            }
            let before = old.get(index).or(back.as_ref());
            // While nobody knows where one is that works, what an earlier process knew holds.
            let is_unknown = now.1.state != SwitchBackendState::Down && now.1.next_hop.is_none();
            if before.map(way) != Some(way(now)) && !is_unknown {
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
        SwitchBackend {
            id: BackendId::new(id),
            key,
            weight: 1000,
            state,
            next_hop: Some(next_hop),
            tunnel: None,
            tag: FrameTag::Kept,
        }
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
        assert_eq!((changes.set.len(), changes.lost.len(), changes.chooses_anew), (1, 0, true));
    }

    #[test]
    fn one_that_is_not_found_yet_keeps_what_it_has() {
        let mut known = KnownBackends::new([(ConnHolder { backend: 0, generation: 0 }, 5)]);
        let mut sought = backend(0, 5, Up);
        sought.next_hop = None;
        let changes = known.replace(vec![sought.clone()]);
        assert_eq!((changes.set.len(), changes.lost.len()), (0, 0));
        assert!(known.table().iter().all(Option::is_none), "it gets nothing new");
        assert_eq!(known.replace(vec![backend(0, 5, Up)]).set.len(), 1);
        sought.state = Down;
        assert_eq!(known.replace(vec![sought]).set.len(), 1, "one that is down loses what it has");
    }

    #[test]
    fn what_is_removed_keeps_its_connections() {
        let mut known = KnownBackends::default();
        known.replace(vec![backend(0, 5, Up), backend(1, 7, Up), backend(2, 8, Down)]);
        let gone = ConnHolder { backend: 1, generation: 0 };
        let changes = known.replace(vec![backend(0, 5, Up)]);
        assert_eq!((changes.set.len(), changes.lost.len(), changes.chooses_anew), (0, 0, true));
        assert_eq!((known.usable(gone), known.taking(BackendId::new(1))), (Some(BackendId::new(1)), None));
        assert_eq!(known.departed(), [gone], "one that was down had nothing to keep");
        assert!(known.table().iter().all(|slot| *slot == Some(0)));
        // It comes back, and goes again.
        let changes = known.replace(vec![backend(0, 5, Up), backend(1, 7, Up)]);
        assert_eq!((changes.set.len(), changes.lost.len(), changes.chooses_anew), (0, 0, true));
        assert!(known.departed().is_empty() && known.forget(gone).is_none());
        known.replace(vec![backend(0, 5, Up)]);
        assert_eq!(known.forget(ConnHolder { generation: 1, ..gone }), None, "that would be another one");
        let told = known.forget(gone).unwrap();
        assert_eq!((told.key, told.way(), known.usable(gone)), (7, None, None));
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
