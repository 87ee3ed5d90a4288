//! The connections of clients, by number.

use plimsoll_policy::{Assigned, Nanos, Time};

use super::clients::AskedPage;

/// Number of a connection; reused after it has ended.
pub(super) type ConnectionId = u32;

/// No connection.
pub(super) const NO_CONNECTION: ConnectionId = u32::MAX;

/// No process.
pub(super) const NO_PROCESS: u16 = u16::MAX;

/// What a connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionStage {
    /// Not in use.
    Free,
    /// No back-end has its request: that is on its way to the front-end, or the core holds it, or its client waits to try again.
    Unassigned,
    /// A back-end has its SYN; the request is on its way.
    Coming,
    /// The request is there, and no process has it.
    Pending,
    /// A process has the request, or the network the rest of the response.
    Served,
    /// Answered; it stays for further requests.
    Kept,
    /// Answered; the client's FIN is on its way.
    Closing,
}

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionRole {
    /// A client's.
    Client,
    /// That of a front-end that measures.
    Probe,
    /// That of a back-end which fetches an answer for this connection, of this generation, from another back-end.
    Fetch(ConnectionId, u32),
}

/// See the module's documentation.
#[derive(Debug, Clone, Copy)]
pub(super) struct WebConnection {
    pub(super) stage: ConnectionStage,
    /// Counts the connections that had this number: events of others are void.
    pub(super) generation: u32,
    pub(super) assigned: Option<Assigned>,
    pub(super) backend: u16,
    /// The process that holds it, or [`NO_PROCESS`].
    pub(super) process: u16,
    pub(super) role: ConnectionRole,
    /// Whether the policy expects its document to be read from disk, where it predicts that.
    pub(super) expected_miss: Option<bool>,
    /// Stays for further requests.
    pub(super) persistent: bool,
    /// Refusals so far.
    pub(super) refused: u8,
    /// Number of the request, in order of arrival.
    pub(super) number: u64,
    pub(super) client: u32,
    pub(super) asked: AskedPage,
    pub(super) round_trip: Nanos,
    /// When the first SYN came to the front-end; of a further request on the connection when that came.
    pub(super) arrived: Time,
    /// When the request came to the front-end.
    pub(super) requested: Time,
    /// Requests on it so far.
    pub(super) requests: u32,
    /// Bytes of the response that have been sent.
    pub(super) sent: u64,
    /// Congestion window, in segments.
    pub(super) window: u32,
    /// Load of its back-end when it was assigned, itself included.
    pub(super) load: u32,
}

impl WebConnection {
    /// A connection at the front-end, of one request and without a back-end.
    #[inline]
    pub(super) fn new(role: ConnectionRole, asked: AskedPage, round_trip: Nanos, now: Time) -> Self {
        Self {
            stage: ConnectionStage::Unassigned,
            generation: 0,
            assigned: None,
            backend: u16::MAX,
            process: NO_PROCESS,
            role,
            expected_miss: None,
            persistent: false,
            refused: 0,
            number: 0,
            client: 0,
            asked,
            round_trip,
            arrived: now,
            requested: now,
            requests: 0,
            sent: 0,
            window: 0,
            load: 0,
        }
    }
}

/// A slab of connections.
#[derive(Default)]
pub(super) struct WebConnections {
    slots: Vec<WebConnection>,
    free: Vec<ConnectionId>,
    /// Those of clients.
    live: usize,
}

impl WebConnections {
    pub(super) fn insert(&mut self, connection: WebConnection) -> ConnectionId {
        self.live += usize::from(connection.role == ConnectionRole::Client);
        if let Some(id) = self.free.pop() {
            let slot = &mut self.slots[id as usize];
            *slot = WebConnection { generation: slot.generation, ..connection };
            return id;
        }
        self.slots.push(connection);
        (self.slots.len() - 1) as ConnectionId
    }

    #[inline]
    pub(super) fn get(&self, id: ConnectionId) -> &WebConnection {
        &self.slots[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> &mut WebConnection {
        &mut self.slots[id as usize]
    }

    /// The connection of an event, if it is still that one.
    #[inline]
    pub(super) fn current(&self, id: ConnectionId, generation: u32) -> Option<WebConnection> {
        let slot = &self.slots[id as usize];
        (slot.generation == generation).then_some(*slot)
    }

    #[inline]
    pub(super) fn remove(&mut self, id: ConnectionId) {
        let slot = &mut self.slots[id as usize];
        debug_assert_ne!(slot.stage, ConnectionStage::Free, "a connection ends once");
        self.live -= usize::from(slot.role == ConnectionRole::Client);
        slot.stage = ConnectionStage::Free;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id);
    }

    /// Connections of clients that have not ended.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Processes of back-end `b` no longer hold connections whose next request has no back-end.
    pub(super) fn leave(&mut self, b: u16) {
        for slot in &mut self.slots {
            if slot.backend == b && slot.stage == ConnectionStage::Unassigned {
                slot.process = NO_PROCESS;
            }
        }
    }

    /// Those that back-end `b` has, in order of their numbers.
    pub(super) fn of_backend(&self, b: u16) -> Vec<ConnectionId> {
        let has = |c: &WebConnection| {
            c.backend == b && !matches!(c.stage, ConnectionStage::Free | ConnectionStage::Unassigned)
        };
        (0..self.slots.len() as ConnectionId).filter(|&id| has(&self.slots[id as usize])).collect()
    }
}
