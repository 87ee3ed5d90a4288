//! The account of connections: from the events of the packet program, and now and then from its tables, as events may be lost.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
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
    /// Connections that were over before anything told it: their clients fell silent, or the packet program had no room; and those
    /// for which there was no room here.
    pub forgotten: u64,
}

/// What is known of the handshakes of one back-end's connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandshakeCounts {
    /// Connections under way of which only first packets have come.
    pub opening: usize,
    /// Handshakes that were seen from the client's first packet to its second, by how long they took: below each of
    /// [`HANDSHAKE_ENDS_US`], and beyond the last.
    pub handshakes: [u64; HANDSHAKE_ENDS_US.len() + 1],
    /// The sum of their durations: round trips from the switch to the back-end, from there to the client, and to the switch.
    pub handshakes_ns: u64,
}

/// Upper ends of the classes of [`HandshakeCounts::handshakes`], in microseconds.
pub const HANDSHAKE_ENDS_US: [u64; 10] =
    [100, 500, 1000, 5000, 20_000, 50_000, 100_000, 250_000, 1_000_000, 3_000_000];

impl HandshakeCounts {
    fn count(&mut self, round_trip_ns: u64) {
        let class = HANDSHAKE_ENDS_US.iter().position(|end_us| round_trip_ns <= end_us * 1000);
        self.handshakes[class.unwrap_or(HANDSHAKE_ENDS_US.len())] += 1;
        self.handshakes_ns = self.handshakes_ns.wrapping_add(round_trip_ns);
    }
}

/// Connections under way, with their assignments.
pub struct ConnBook<A> {
    prepared: BTreeMap<u64, PreparedEntry<A>>,
    /// Whoever collects of it sorts what he has found.
    conns: HashMap<SwitchConn, Tracked<A>, FixedState>,
    most: usize,
    opening: usize,
    handshakes: BTreeMap<ConnHolder, HandshakeCounts>,
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
    /// An empty book for `most` connections; further ones are no load. `seed` is of its hash table, and secret.
    #[must_use]
    pub fn new(seed: u64, most: usize) -> Self {
        Self {
            prepared: BTreeMap::new(),
            conns: HashMap::with_hasher(FixedState::with_seed(seed)),
            most,
            opening: 0,
            handshakes: BTreeMap::new(),
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

    /// What is known of the handshakes of this back-end's connections.
    #[must_use]
    pub fn handshakes(&self, holder: ConnHolder) -> HandshakeCounts {
        self.handshakes.get(&holder).copied().unwrap_or_default()
    }

    fn count_opening(&mut self, holder: ConnHolder) {
        self.opening += 1;
        self.handshakes.entry(holder).or_default().opening += 1;
    }

    /// It is established, or over.
    fn opens_no_more(&mut self, holder: ConnHolder) {
        self.opening -= 1;
        if let Some(counts) = self.handshakes.get_mut(&holder) {
            counts.opening -= 1;
        }
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
            ConnChange::Established { round_trip_ns } => {
                if choice.is_some_and(|number| self.is_spent(&conn, number)) {
                    return;
                }
                self.enter(conn, of, (at_ns, true), by);
                if let (Some(round_trip_ns), Some(_)) = (round_trip_ns, backend) {
                    self.handshakes.entry(holder).or_default().count(round_trip_ns);
                }
            }
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

    /// Whether this choice is neither prepared nor with the connection: it is over, as its end can be told before its establishment if two
    /// CPUs have its packets. An earlier process's choice is not known, either; a sweep finds its connection.
    fn is_spent(&self, conn: &SwitchConn, choice: u64) -> bool {
        self.conns.get(conn).is_none_or(|known| known.choice != Some(choice))
            && !self.prepared.contains_key(&choice)
    }

    /// A connection is there. One that is known already, by this choice, is at most established now.
    fn enter(
        &mut self,
        conn: SwitchConn,
        ConnOwner { choice, holder, backend }: ConnOwner,
        (since_ns, is_established): (u64, bool),
        by: &mut impl Distributor<Assignment = A>,
    ) {
        if let Some(known) = self.conns.get_mut(&conn) {
            if known.choice == choice && known.holder == holder {
                let opens_no_more = is_established && !known.is_established;
                known.is_established |= is_established;
                known.sweep = self.sweep;
                if opens_no_more {
                    self.opens_no_more(holder);
                }
                return;
            }
            // Its end was not heard of.
            self.counts.forgotten += 1;
            self.take_out(&conn, Outcome::Completed, by);
        }
        let prepared = choice.and_then(|number| self.prepared.remove(&number));
        let is_full = self.conns.len() >= self.most;
        let assignment = match (prepared, backend) {
            (Some(mut prepared), _) => {
                self.counts.taken += 1;
                by.take(&mut prepared.assignment, &conn);
                prepared.assignment
            }
            // Nor is one counted each time that a sweep finds it.
            (None, Some(_)) if is_full => return,
            (None, Some(backend)) => {
                self.counts.stayed += 1;
                by.stay(backend, &conn)
            }
            // Its back-end has gone since.
            (None, None) => return,
        };
        if is_full {
            self.counts.forgotten += 1;
            by.complete(assignment, Outcome::Completed);
            return;
        }
        if !is_established {
            self.count_opening(holder);
        }
        let tracked = Tracked { assignment, choice, holder, is_established, since_ns, sweep: self.sweep };
        self.conns.insert(conn, tracked);
    }

    /// Takes a connection out of the account, if it is there.
    fn take_out(
        &mut self,
        conn: &SwitchConn,
        outcome: Outcome,
        by: &mut impl Distributor<Assignment = A>,
    ) -> bool {
        let Some(known) = self.conns.remove(conn) else { return false };
        if !known.is_established {
            self.opens_no_more(known.holder);
        }
        by.complete(known.assignment, outcome);
        true
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
        match outcome {
            Outcome::Completed => self.counts.ended += 1,
            Outcome::Failed => self.counts.lost += 1,
        }
        self.take_out(conn, outcome, by);
    }

    /// As [`ConnBook::end`], of a connection that nobody has ended.
    fn forget(&mut self, conn: &SwitchConn, choice: Option<u64>, by: &mut impl Distributor<Assignment = A>) {
        if self.conns.get(conn).is_some_and(|known| known.choice == choice) {
            self.counts.forgotten += 1;
            self.take_out(conn, Outcome::Completed, by);
        }
    }

    /// The back-end is gone, and its connections with it. Returns their number.
    pub fn lose(&mut self, holder: ConnHolder, by: &mut impl Distributor<Assignment = A>) -> usize {
        let lost = self.collect(|known| known.holder == holder);
        for conn in &lost {
            self.counts.lost += u64::from(self.take_out(conn, Outcome::Failed, by));
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
            self.forget(conn, entry.choice, by);
        } else if !entry.is_unproven() {
            let is_established = table != ConnTable::Opening;
            let of = ConnOwner { choice: entry.choice, holder: entry.holder, backend };
            self.enter(*conn, of, (entry.began_ns, is_established), by);
        }
        if is_past { Seen::Past } else { Seen::Stays }
    }

    /// Connections that the sweep that began at `began_ns` has not seen, with their choices. The packet program may have them
    /// nevertheless: it changes its tables while they are read.
    #[must_use]
    pub fn unseen(&self, began_ns: u64) -> Vec<(SwitchConn, Option<u64>)> {
        let unseen = self.collect(|known| known.sweep != self.sweep && known.since_ns < began_ns);
        unseen.into_iter().filter_map(|conn| Some((conn, self.conns.get(&conn)?.choice))).collect()
    }

    /// Ends the sweep: the connections `gone`, which the packet program has pushed out, are over, and so are choices that are in no
    /// ring. `waiting` has those that are, in order.
    pub fn finish_sweep(
        &mut self,
        gone: &[(SwitchConn, Option<u64>)],
        waiting: &[u64],
        by: &mut impl Distributor<Assignment = A>,
    ) {
        for (conn, choice) in gone {
            self.forget(conn, *choice, by);
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
            self.take_out(&conn, Outcome::Completed, by);
        }
    }
}
