//! The account of connections: from the events of the packet program, and now and then from its tables, as events may be lost.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use plimsoll_datapath::switch::{ConnChange, ConnEntry, ConnEvent, ConnHolder, ConnTable, SwitchConn};
use plimsoll_policy::{BackendId, Outcome};

use crate::distributor::Distributor;

/// A choice that no connection is known to have taken.
struct PreparedEntry<A> {
    assignment: A,
    /// In how many sweeps it was neither in a ring nor with a connection.
    missed: u8,
}

/// A connection under way.
struct Tracked<A> {
    assignment: A,
    choice: Option<u64>,
    holder: ConnHolder,
    is_established: bool,
    /// When it was heard of, in the packet program's nanoseconds.
    since_ns: u64,
    /// The last sweep that found it.
    sweep: u32,
}

/// Who has a connection, and by which choice.
#[derive(Debug, Clone, Copy)]
struct ConnOwner {
    choice: Option<u64>,
    holder: ConnHolder,
    backend: Option<BackendId>,
}

/// What has been counted since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BookCounts {
    /// Connections that took a choice.
    pub taken: u64,
    /// Connections that the hash has placed, or that were there before.
    pub stayed: u64,
    /// Choices that were withdrawn.
    pub withdrawn: u64,
    /// Connections that their clients ended.
    pub ended: u64,
    /// Connections that were lost with their back-end.
    pub lost: u64,
    /// Connections that were over before anything told it: their clients fell silent, or the packet program had no room.
    pub forgotten: u64,
}

/// Connections under way, with their assignments.
pub struct ConnBook<A> {
    prepared: BTreeMap<u64, PreparedEntry<A>>,
    /// Whoever collects of it sorts what he has found.
    conns: HashMap<SwitchConn, Tracked<A>, FixedState>,
    opening: usize,
    sweep: u32,
    counts: BookCounts,
}

/// What a sweep does about an entry of the packet program's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It stays.
    Stays,
    /// It is to be forgotten.
    Past,
}

impl<A> ConnBook<A> {
    /// An empty book. `seed` is of its hash table, and secret.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            prepared: BTreeMap::new(),
            conns: HashMap::with_hasher(FixedState::with_seed(seed)),
            opening: 0,
            sweep: 0,
            counts: BookCounts::default(),
        }
    }

    /// Connections under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.conns.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }

    /// Those of them of which only first packets have come.
    #[must_use]
    pub fn opening(&self) -> usize {
        self.opening
    }

    /// Choices that no connection has taken.
    #[must_use]
    pub fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// What has been counted.
    #[must_use]
    pub fn counts(&self) -> BookCounts {
        self.counts
    }

    /// A choice of this number has been made.
    pub fn prepare(&mut self, number: u64, assignment: A) {
        self.prepared.insert(number, PreparedEntry { assignment, missed: 0 });
    }

    /// The choice of this number is withdrawn: no packet can take it.
    pub fn withdraw(&mut self, number: u64, by: &mut impl Distributor<Assignment = A>) {
        if let Some(prepared) = self.prepared.remove(&number) {
            self.counts.withdrawn += 1;
            by.withdraw(prepared.assignment);
        }
    }

    /// The packet program tells of a connection; `backend` has it, if anybody.
    pub fn hear(
        &mut self,
        event: &ConnEvent,
        backend: Option<BackendId>,
        by: &mut impl Distributor<Assignment = A>,
    ) {
        let ConnEvent { conn, choice, holder, at_ns, .. } = *event;
        let of = ConnOwner { choice, holder, backend };
        match event.change {
            ConnChange::Began => self.enter(conn, of, (at_ns, false), by),
            ConnChange::Established { .. } => self.enter(conn, of, (at_ns, true), by),
            ConnChange::Ended => self.end(&conn, choice, Outcome::Completed, by),
            ConnChange::Lost => {
                self.end(&conn, choice, Outcome::Failed, by);
                // A choice whose back-end was gone when a packet took it.
                if let Some(number) = choice {
                    self.withdraw(number, by);
                }
            }
        }
    }

    /// A connection is there. One that is known already, by this choice, is at most established now.
    fn enter(
        &mut self,
        conn: SwitchConn,
        ConnOwner { choice, holder, backend }: ConnOwner,
        (since_ns, is_established): (u64, bool),
        by: &mut impl Distributor<Assignment = A>,
    ) {
        let place = match self.conns.entry(conn) {
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                if known.choice == choice && known.holder == holder {
                    self.opening -= usize::from(is_established && !known.is_established);
                    known.is_established |= is_established;
                    known.sweep = self.sweep;
                    return;
                }
                // Its end was not heard of.
                self.counts.forgotten += 1;
                let (_, known) = entry.remove_entry();
                self.opening -= usize::from(!known.is_established);
                by.complete(known.assignment, Outcome::Completed);
                None
            }
            Entry::Vacant(entry) => Some(entry),
        };
        let prepared = choice.and_then(|number| self.prepared.remove(&number));
        let assignment = match (prepared, backend) {
            (Some(mut prepared), _) => {
                self.counts.taken += 1;
                by.take(&mut prepared.assignment, &conn);
                prepared.assignment
            }
            (None, Some(backend)) => {
                self.counts.stayed += 1;
                by.stay(backend, &conn)
            }
            // Its back-end has gone since.
            (None, None) => return,
        };
        self.opening += usize::from(!is_established);
        let tracked = Tracked { assignment, choice, holder, is_established, since_ns, sweep: self.sweep };
        match place {
            Some(entry) => _ = entry.insert(tracked),
            None => _ = self.conns.insert(conn, tracked),
        }
    }

    /// Ends a connection, if it is the one that took this choice.
    fn end(
        &mut self,
        conn: &SwitchConn,
        choice: Option<u64>,
        outcome: Outcome,
        by: &mut impl Distributor<Assignment = A>,
    ) {
        if self.conns.get(conn).is_none_or(|known| known.choice != choice) {
            return;
        }
        let Some(known) = self.conns.remove(conn) else { return };
        self.opening -= usize::from(!known.is_established);
        match outcome {
            Outcome::Completed => self.counts.ended += 1,
            Outcome::Failed => self.counts.lost += 1,
        }
        by.complete(known.assignment, outcome);
    }

    /// The back-end is gone, and its connections with it. Returns their number.
    pub fn lose(&mut self, holder: ConnHolder, by: &mut impl Distributor<Assignment = A>) -> usize {
        let lost = self.collect(|known| known.holder == holder);
        for conn in &lost {
            if let Some(known) = self.conns.remove(conn) {
                self.opening -= usize::from(!known.is_established);
                self.counts.lost += 1;
                by.complete(known.assignment, Outcome::Failed);
            }
        }
        lost.len()
    }

    /// Connections of which this is so, in order.
    fn collect(&self, mut which: impl FnMut(&Tracked<A>) -> bool) -> Vec<SwitchConn> {
        let found = self.conns.iter().filter(|(_, known)| which(known)).map(|(conn, _)| *conn);
        let mut found: Vec<SwitchConn> = found.collect();
        found.sort_unstable();
        found
    }

    /// Begins a sweep: [`ConnBook::see`] hears of all that is in the packet program's tables, and then
    /// [`ConnBook::finish_sweep`] ends what was not seen.
    pub fn start_sweep(&mut self) {
        self.sweep = self.sweep.wrapping_add(1);
    }

    /// The packet program has this entry. `backend` has it, if anybody; `is_past`: its client has sent nothing for too
    /// long. What is `Past` is to be forgotten there.
    pub fn see(
        &mut self,
        conn: &SwitchConn,
        (table, entry): (ConnTable, &ConnEntry),
        (backend, is_past): (Option<BackendId>, bool),
        by: &mut impl Distributor<Assignment = A>,
    ) -> Seen {
        if entry.is_over() {
            let outcome = if entry.fin { Outcome::Completed } else { Outcome::Failed };
            self.end(conn, entry.choice, outcome, by);
        } else if backend.is_none() {
            self.end(conn, entry.choice, Outcome::Failed, by);
        } else if is_past {
            if self.conns.get(conn).is_some_and(|known| known.choice == entry.choice) {
                self.counts.forgotten += 1;
                self.end(conn, entry.choice, Outcome::Completed, by);
                self.counts.ended -= 1;
            }
        } else {
            let is_established = table != ConnTable::Opening;
            let of = ConnOwner { choice: entry.choice, holder: entry.holder, backend };
            self.enter(*conn, of, (entry.began_ns, is_established), by);
        }
        if is_past { Seen::Past } else { Seen::Stays }
    }

    /// Ends the sweep that began at `began_ns`: connections that the packet program has pushed out are over, and so are choices
    /// that are in no ring. `waiting` has those that are, in order.
    pub fn finish_sweep(
        &mut self,
        began_ns: u64,
        waiting: &[u64],
        by: &mut impl Distributor<Assignment = A>,
    ) {
        let sweep = self.sweep;
        for conn in self.collect(|known| known.sweep != sweep && known.since_ns < began_ns) {
            let Some(choice) = self.conns.get(&conn).map(|known| known.choice) else { continue };
            self.counts.forgotten += 1;
            self.end(&conn, choice, Outcome::Completed, by);
            self.counts.ended -= 1;
        }
        for (number, prepared) in &mut self.prepared {
            prepared.missed = if waiting.binary_search(number).is_ok() { 0 } else { prepared.missed + 1 };
        }
        // An event about one may be on its way.
        let gone: Vec<u64> = self
            .prepared
            .iter()
            .filter(|(_, prepared)| prepared.missed > 1)
            .map(|(number, _)| *number)
            .collect();
        gone.into_iter().for_each(|number| self.withdraw(number, by));
    }

    /// Ends everything: the process stops.
    pub fn clear(&mut self, by: &mut impl Distributor<Assignment = A>) {
        let numbers: Vec<u64> = self.prepared.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.withdraw(number, by));
        for conn in self.collect(|_| true) {
            if let Some(known) = self.conns.remove(&conn) {
                by.complete(known.assignment, Outcome::Completed);
            }
        }
        self.opening = 0;
    }
}
