//! Defines the messages between front-end and agents. Their variants and fields are encoded in the order of their declaration
//! (see [`codec`](crate::codec)): another order is another version of the protocol.

use serde::{Deserialize, Serialize};

use crate::Flow;
use crate::codec::{FieldError, Message, within};

/// Most bytes of a request's head in a message.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;

/// Most bytes of a connection's state in a message.
pub const MOST_STATE_BYTES: usize = 12 << 20;

/// Number of a connection on one link, chosen by the front-end, and never used again on that link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Conn(pub u64);

/// From the front-end to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent<'a> {
    /// Take this connection over and answer the request at the start of its receive queue.
    Handoff {
        /// The connection.
        conn: Conn,
        /// Number of the request on this connection, from 0.
        request: u32,
        /// Time on the agent's clock (`CLOCK_MONOTONIC`, nanoseconds) until which it may send to the client
        /// without a [`ToAgent::Confirm`]. The agent refuses a connection that it cannot take over before
        /// that.
        lease_until_ns: u64,
        /// Whether the agent asks about each further request, or answers them all itself and reports them.
        ask: bool,
        /// The connection's state, as `TcpState` encodes it; the receive queue begins with the request's head.
        #[serde(with = "serde_bytes", borrow)]
        state: &'a [u8],
    },
    /// The front-end has read [`FromAgent::Taken`]: the lease no longer ends.
    Confirm {
        /// The connection.
        conn: Conn,
    },
    /// The front-end takes the connection back without having read [`FromAgent::Taken`]: forget it, silently.
    Cancel {
        /// The connection.
        conn: Conn,
    },
    /// Answer to [`FromAgent::Ask`]: serve it.
    Stay {
        /// The connection.
        conn: Conn,
        /// The request.
        request: u32,
    },
    /// Answer to [`FromAgent::Ask`]: give the connection back, with the request unread.
    Return {
        /// The connection.
        conn: Conn,
        /// The request.
        request: u32,
    },
    /// [`FromAgent::Returned`] has arrived and the flow leads elsewhere: the agent may send on packets that
    /// came meanwhile.
    Released {
        /// The connection.
        conn: Conn,
    },
    /// Close the connection once the request under way is answered, at once when there is none.
    Close {
        /// The connection.
        conn: Conn,
    },
    /// Answer to [`FromAgent::Adopt`]: the connection's new number.
    Adopted {
        /// As in the question.
        orphan: u64,
        /// The connection from now on.
        conn: Conn,
    },
    /// Answer with [`FromAgent::Pong`].
    Ping {
        /// Comes back unchanged.
        token: u64,
    },
    /// This process has got the virtual address: it is the active one of all front-ends of its name, unless another one has a
    /// higher term. Offer it all connections of that name, then answer with [`FromAgent::Active`].
    Activate {
        /// Higher than any that the front-end has heard of.
        term: u64,
    },
    /// This process has the virtual address no longer.
    Deactivate,
}

/// Why an agent refuses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// It has its maximum of connections.
    Full,
    /// It is stopping.
    Stopping,
    /// The lease was over.
    Late,
    /// The kernel did not accept the state.
    Kernel,
    /// The server behind the agent cannot be reached.
    NoServer,
    /// The state is malformed, or names an address that is not the agent's.
    BadState,
    /// Another front-end of that name is the active one.
    NotActive,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerReport {
    /// Number of the request on its connection.
    pub request: u32,
    /// Status of the answer; 0 when there was none, or none that was seen.
    pub status: u16,
    /// Whether the answer was handed to the kernel to its end.
    pub complete: bool,
    /// Bytes of content handed to the kernel for the client.
    pub content_bytes: u64,
    /// From when the agent had the request to the first byte of the answer, in microseconds.
    pub first_byte_us: u32,
    /// From when the agent had the request to the end of the answer, in microseconds.
    pub total_us: u32,
}

/// What an agent has counted since it began, over all its front-ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCounts {
    /// Connections at the moment.
    pub connections: u64,
    /// Connections that were taken over.
    pub taken: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Connections that were given back.
    pub returned: u64,
    /// Connections that could not be given back when that was asked.
    pub kept: u64,
    /// Connections that the front-end took back without having heard that they were taken over.
    pub cancelled: u64,
    /// Requests that were answered, or cut off while they were.
    pub requests: u64,
    /// Bytes of content that were handed to the kernel.
    pub content_bytes: u64,
    /// Links that began.
    pub links: u64,
    /// Links that were refused: from other addresses than those of front-ends, or without the right key.
    pub refused_links: u64,
    /// Held packets that were given to their connections.
    pub packets_injected: u64,
    /// Held packets sent on to where their given-back connection went.
    pub packets_emitted: u64,
    /// Held packets for which there was no room.
    pub packets_dropped: u64,
    /// SYNs sent back to the front-end, because the connection that they follow is over.
    pub syns_returned: u64,
    /// Flows of which packets came and no connection.
    pub strays: u64,
    /// Packets that the kernel dropped for lack of a lease.
    pub fenced: u64,
}

/// From an agent to the front-end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromAgent<'a> {
    /// The connection is taken over. Written to the link before any byte goes to the client.
    Taken {
        /// The connection.
        conn: Conn,
    },
    /// The connection is not taken over, and never will be.
    Refused {
        /// The connection.
        conn: Conn,
        /// Why.
        why: Refusal,
    },
    /// A further request has come; asks who answers it.
    Ask {
        /// The connection.
        conn: Conn,
        /// Number of the request on this connection.
        request: u32,
        /// Whether the connection could be given back as it is now: not when its client has ended its side.
        portable: bool,
        /// The request's head, to its empty line.
        #[serde(with = "serde_bytes", borrow)]
        head: &'a [u8],
    },
    /// A further request has come on a connection about which the agent does not ask; it is being answered.
    Began {
        /// The connection.
        conn: Conn,
        /// Number of the request on this connection.
        request: u32,
        /// The request's head, to its empty line.
        #[serde(with = "serde_bytes", borrow)]
        head: &'a [u8],
    },
    /// A request has been answered, or never will be.
    Ended {
        /// The connection.
        conn: Conn,
        /// How it ended.
        ended: AnswerReport,
    },
    /// Here is the connection back; the agent has let go of it.
    Returned {
        /// The connection.
        conn: Conn,
        /// The request with whose head the receive queue begins.
        request: u32,
        /// The connection's state, as `TcpState` encodes it.
        #[serde(with = "serde_bytes", borrow)]
        state: &'a [u8],
    },
    /// The connection cannot be given back: the agent answers the request itself.
    Kept {
        /// The connection.
        conn: Conn,
        /// The request.
        request: u32,
    },
    /// The connection is over: closed by its client, the server, or [`ToAgent::Close`].
    Closed {
        /// The connection.
        conn: Conn,
    },
    /// The agent has this connection from an earlier link of this front-end.
    Adopt {
        /// Number by which the agent knows it.
        orphan: u64,
        /// Which it is.
        flow: Flow,
        /// Number of its latest request.
        request: u32,
        /// Whether that request is being answered.
        active: bool,
    },
    /// Packets of this flow came, and the agent has no such connection.
    Stray {
        /// Which it is.
        flow: Flow,
    },
    /// Answer to [`ToAgent::Ping`].
    Pong {
        /// As in the question.
        token: u64,
        /// The agent's clock (`CLOCK_MONOTONIC`, nanoseconds).
        clock_ns: u64,
    },
    /// Follows a [`FromAgent::Pong`], once a second at most.
    Counted {
        /// What the agent has counted.
        counts: AgentCounts,
    },
    /// Which process of the front-ends of this name is the active one. Answer to [`ToAgent::Activate`], after all offers; also
    /// sent when it changes.
    Active {
        /// The highest term so far.
        term: u64,
        /// The process, as it introduced itself; 0 when it is gone or has the address no longer.
        instance: u64,
    },
    /// The agent takes nothing more over. It ends the requests under way itself, within a time that it knows.
    Stopping,
}

impl<'a> Message<'a> for ToAgent<'a> {
    const EXCHANGE: u8 = 1;

    fn check(&self) -> Result<(), FieldError> {
        match self {
            Self::Handoff { state, .. } => within("state", state.len(), MOST_STATE_BYTES),
            _ => Ok(()),
        }
    }
}

impl<'a> Message<'a> for FromAgent<'a> {
    const EXCHANGE: u8 = 2;

    fn check(&self) -> Result<(), FieldError> {
        match self {
            Self::Ask { head, .. } | Self::Began { head, .. } => within("head", head.len(), MOST_HEAD_BYTES),
            Self::Returned { state, .. } => within("state", state.len(), MOST_STATE_BYTES),
            _ => Ok(()),
        }
    }
}
