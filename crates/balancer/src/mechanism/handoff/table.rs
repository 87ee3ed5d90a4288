//! The connections that this worker has handed off.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_datapath::tcp::TcpState;
use plimsoll_datapath::{Flow, FlowEntry};
use plimsoll_wire::message::{Conn, ToAgent};
use slab::Slab;

use super::active::Active;
use super::link::AgentLink;
use super::numbers::Expected;
use super::registry::Owner;
use super::system::System;
use crate::accepted::{Accepted, Start};

/// The phase of a handed-off connection.
pub(super) enum HandoffPhase {
    /// The agent has not said yet that it has it. Until it does, this is all there is of the connection.
    Pending {
        /// The state to restore if the agent does not take it.
        state: Box<TcpState>,
        /// When the connection was sent to the agent.
        since: Instant,
        /// The link's session in which it was sent; `None` when it was not.
        session: Option<u32>,
    },
    /// The agent has it.
    Held,
    /// The agent has been told to give it back, with this request.
    Returning {
        /// The request's number on the connection.
        request: u32,
    },
}

/// A connection that has been handed off.
pub(super) struct HandoffEntry {
    pub(super) conn: Conn,
    pub(super) flow: Flow,
    pub(super) link: Rc<AgentLink>,
    pub(super) accepted: Rc<Accepted>,
    /// Requests on it so far, the one under way included.
    pub(super) requests: u64,
    pub(super) phase: HandoffPhase,
    /// The request under way.
    pub(super) active: Option<Box<Active>>,
    /// The number after what its client had sent when its last request was known; `None` until one is after the handoff.
    known_to: Option<u32>,
    /// The request about which the agent has asked and was not told yet.
    pub(super) asked: Option<u32>,
    /// What its client expected when it was handed off.
    pub(super) expected: Option<Expected>,
    /// A time within which its client answers, if this front-end has had the connection.
    pub(super) answer_time: Option<Duration>,
    /// Whether the agent has been told to close it.
    pub(super) closing: bool,
}

impl HandoffEntry {
    /// A connection that the agent has, or is about to get.
    pub(super) fn new(
        conn: Conn,
        flow: Flow,
        link: Rc<AgentLink>,
        accepted: Rc<Accepted>,
        requests: u64,
    ) -> Self {
        Self {
            conn,
            flow,
            link,
            accepted,
            requests,
            phase: HandoffPhase::Held,
            active: None,
            known_to: None,
            asked: None,
            expected: None,
            answer_time: None,
            closing: false,
        }
    }

    /// Whether the agent has not said yet that it has it.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.phase, HandoffPhase::Pending { .. })
    }

    /// Whether the agent has been told to give it back with this request.
    pub(super) fn is_returning(&self, request: u32) -> bool {
        matches!(self.phase, HandoffPhase::Returning { request: last } if last == request)
    }

    /// Tells the agent, once, to close it if it is idle.
    pub(super) fn close_if_idle(&mut self) {
        if self.is_idle() && !self.closing {
            self.closing = self.link.push(&ToAgent::Close { conn: self.conn });
        }
    }

    /// All that its client has sent belongs to requests that are known.
    pub(super) fn know_all(&mut self, system: &System) {
        let sent = system.entry(&self.flow).and_then(|flow| flow.last_seq_end);
        self.known_to = sent.or(self.known_to);
    }

    /// Whether its client has sent something since the last request that is known.
    pub(super) fn has_unknown(&self, flow: &FlowEntry) -> bool {
        let known = self.known_to.or(self.expected.map(|expected| expected.from_client));
        let is_beyond = |known: u32, sent: u32| sent.wrapping_sub(known).cast_signed() > 0;
        known.zip(flow.last_seq_end).is_some_and(|(known, sent)| is_beyond(known, sent))
    }

    /// Describes how this front-end continues the connection: with the request under way, and the back-end that was chosen for it unless that has failed.
    pub(super) fn start_here(&mut self) -> Start {
        let given = self.active.take().and_then(|active| active.account.give());
        Start { requests: self.requests.saturating_sub(1), given, stays: true, input: Vec::new() }
    }

    /// Whether the agent has it and there is no request on it.
    pub(super) fn is_idle(&self) -> bool {
        self.active.is_none() && matches!(self.phase, HandoffPhase::Held)
    }
}

/// The handed-off connections, by number and by flow.
pub(super) struct HandoffTable {
    system: Arc<System>,
    worker: usize,
    entries: Slab<HandoffEntry>,
    by_flow: HashMap<Flow, Conn, FixedState>,
    serial: u32,
}

impl HandoffTable {
    /// The empty table of the worker with this index.
    pub(super) fn new(system: Arc<System>, worker: usize) -> Self {
        Self { system, worker, entries: Slab::new(), by_flow: HashMap::default(), serial: 0 }
    }

    /// Makes a number for a connection. The next call of [`HandoffTable::insert`] must use it.
    pub(super) fn next_conn(&mut self) -> Conn {
        self.serial = self.serial.wrapping_add(1);
        Conn(u64::from(self.serial) << 32 | self.entries.vacant_key() as u64)
    }

    /// Gives a flow to the connection with this number, which is inserted next.
    pub(super) fn own(&self, flow: Flow, conn: Conn) {
        self.system.registry().own(flow, Owner { worker: self.worker, conn });
    }

    /// Adds a connection under the number that was made last.
    pub(super) fn insert(&mut self, entry: HandoffEntry) {
        debug_assert_eq!(entry.conn.0 & 0xffff_ffff, self.entries.vacant_key() as u64, "the number got last");
        self.by_flow.insert(entry.flow, entry.conn);
        self.own(entry.flow, entry.conn);
        self.entries.insert(entry);
    }

    /// The connection of this number, if this link has it.
    pub(super) fn get(&mut self, conn: Conn, link: &Rc<AgentLink>) -> Option<&mut HandoffEntry> {
        self.find(conn).filter(|entry| Rc::ptr_eq(&entry.link, link))
    }

    /// The connection of this number.
    pub(super) fn find(&mut self, conn: Conn) -> Option<&mut HandoffEntry> {
        let index = usize::try_from(conn.0 & 0xffff_ffff).ok()?;
        self.entries.get_mut(index).filter(|entry| entry.conn == conn)
    }

    /// The number of the connection of this flow.
    pub(super) fn by_flow(&self, flow: &Flow) -> Option<Conn> {
        self.by_flow.get(flow).copied()
    }

    /// Removes a connection if `holds` is true for it.
    pub(super) fn remove_if(
        &mut self,
        conn: Conn,
        holds: impl FnOnce(&HandoffEntry) -> bool,
    ) -> Option<HandoffEntry> {
        self.find(conn).filter(|entry| holds(entry))?;
        self.remove(conn)
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, conn: Conn) -> Option<HandoffEntry> {
        let index = usize::try_from(conn.0 & 0xffff_ffff).ok()?;
        self.entries.get(index).filter(|entry| entry.conn == conn)?;
        let entry = self.entries.remove(index);
        if self.by_flow.get(&entry.flow) == Some(&conn) {
            self.by_flow.remove(&entry.flow);
        }
        self.system.registry().disown(&entry.flow, Owner { worker: self.worker, conn });
        Some(entry)
    }

    /// The numbers of the connections that a link has.
    pub(super) fn of_link(&self, link: &Rc<AgentLink>) -> Vec<Conn> {
        self.entries.iter().filter(|(_, e)| Rc::ptr_eq(&e.link, link)).map(|(_, e)| e.conn).collect()
    }

    /// Every connection.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut HandoffEntry> {
        self.entries.iter_mut().map(|(_, entry)| entry)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
