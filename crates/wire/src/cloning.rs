//! The messages of Socket Cloning between nodes: SC messages, and what is said of the clones that follow from them. As in
//! [`message`](crate::message), another order of variants or fields is another version.
//!
//! They go over links as front-ends and agents have them: whose connection is to be cloned opens the link, in the place of the
//! front-end.

use serde::{Deserialize, Serialize};

use crate::codec::{FieldError, Message, within};
use crate::message::{AnswerReport, Conn, MOST_HEAD_BYTES, MOST_STATE_BYTES};

/// From the node that has the original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToClone<'a> {
    /// The SC message: make a clone in this state, and have it answer this request.
    Clone {
        /// The clone.
        conn: Conn,
        /// The connection's state, as `TcpState` encodes it, without anything to be read.
        #[serde(with = "serde_bytes", borrow)]
        state: &'a [u8],
        /// The application's state: the head of the request, to its empty line. For [`CloneRole::Keeps`] with all that the
        /// client has sent after it.
        #[serde(with = "serde_bytes", borrow)]
        head: &'a [u8],
        /// Bytes of the content that were sent before, by the original: the clone sends neither them nor a head. `None` for an
        /// answer that has not begun.
        sent: Option<SentPart>,
        /// What the clone is to do besides.
        role: CloneRole,
        /// Whether the client has sent more requests, which are answered once it has acknowledged this answer.
        followed: bool,
    },
    /// The original has gone on, or the connection is over: the clone goes at once, silently.
    Over {
        /// The clone.
        conn: Conn,
    },
    /// Answer with [`FromClone::Pong`].
    Ping {
        /// Comes back unchanged.
        token: u64,
    },
    /// It is the turn of a clone that was made ahead: it lives, and answers.
    Begin {
        /// The clone.
        conn: Conn,
        /// The number of the first byte that it sends. The client has acknowledged everything before.
        send_next: u32,
        /// The window that the client announced last, in bytes.
        client_window: u32,
    },
    /// Hand the connection back, as [`FromClone::Return`] asks: packets are held.
    Give {
        /// The clone.
        conn: Conn,
    },
    /// End the connection after the answer under way.
    Close {
        /// The clone.
        conn: Conn,
    },
    /// What the policy of this node has seen: the load of each size of document. No answer follows.
    Sizes {
        /// Random for each process.
        instance: u64,
        /// Grows with each message of one process.
        number: u64,
        /// What takes requests, as a number.
        cluster: u64,
        /// Largest sizes, ascending, and bytes.
        load: Vec<(u64, u64)>,
    },
}

/// What becomes of a clone before and after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloneRole {
    /// It answers at once, and goes.
    Once,
    /// It answers at once, and keeps the connection as long as the next requests are its node's own.
    Keeps,
    /// It is made, and answers when it hears [`ToClone::Begin`]; then it goes.
    Ahead,
}

/// What of an answer was sent before it was cloned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentPart {
    /// Where the rest begins in the whole document, in bytes.
    pub from: u64,
    /// How many bytes of content are left.
    pub left: u64,
    /// The `ETag` of what was sent; the clone refuses another one.
    pub etag: String,
}

/// Why a node makes no clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloneRefusal {
    /// It has its maximum of connections.
    Full,
    /// It is stopping.
    Stopping,
    /// The kernel did not accept the state.
    Kernel,
    /// The state or the request is malformed, or names an address that is not the node's.
    BadState,
    /// The rest of the answer is none of what it has.
    OtherDocument,
}

/// From the node that has clones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromClone {
    /// The clone is there, and answers.
    Cloned {
        /// The clone.
        conn: Conn,
    },
    /// There is no clone, and never will be.
    Refused {
        /// The clone.
        conn: Conn,
        /// Why.
        why: CloneRefusal,
    },
    /// The whole answer is in the clone's kernel, or never will be. The clone goes, silently, once its client has all of it.
    Ended {
        /// The clone.
        conn: Conn,
        /// Bytes that the clone has sent, or will.
        sent_bytes: u64,
        /// Whether another request may follow on the connection.
        keep: bool,
        /// How the request ended.
        ended: AnswerReport,
    },
    /// Answer to [`ToClone::Ping`].
    Pong {
        /// As in the question.
        token: u64,
    },
    /// The next request on a connection that the clone keeps is another node's: have packets held, and say
    /// [`ToClone::Give`].
    Return {
        /// The clone.
        conn: Conn,
    },
    /// The clone is no more; its connection is in this state.
    Back {
        /// The clone.
        conn: Conn,
        /// As `TcpState` encodes it.
        state: Vec<u8>,
        /// Requests that it has answered after the first one.
        kept: u64,
    },
    /// The connection cannot be handed back, so the clone keeps it to its end.
    Stays {
        /// The clone.
        conn: Conn,
    },
    /// The clone has ended the connection that it kept, or its client has.
    Closed {
        /// The clone.
        conn: Conn,
        /// Requests that it has answered after the first one.
        kept: u64,
        /// Whether its last answer was whole.
        whole: bool,
    },
}

impl FromClone {
    /// The clone that this is about; `None` for one about the link.
    #[must_use]
    pub fn conn(&self) -> Option<Conn> {
        match self {
            Self::Cloned { conn }
            | Self::Refused { conn, .. }
            | Self::Ended { conn, .. }
            | Self::Return { conn }
            | Self::Back { conn, .. }
            | Self::Stays { conn }
            | Self::Closed { conn, .. } => Some(*conn),
            Self::Pong { .. } => None,
        }
    }
}

/// Most sizes in a message: as many as a histogram can have bins.
const MOST_SIZES: usize = 65_535;
/// Most characters of an `ETag` in a message.
const MOST_ETAG_BYTES: usize = 256;

impl<'a> Message<'a> for ToClone<'a> {
    const EXCHANGE: u8 = 4;

    fn check(&self) -> Result<(), FieldError> {
        match self {
            Self::Clone { state, head, sent, .. } => {
                within("state", state.len(), MOST_STATE_BYTES)?;
                within("head", head.len(), MOST_HEAD_BYTES)?;
                sent.as_ref().map_or(Ok(()), |sent| within("etag", sent.etag.len(), MOST_ETAG_BYTES))
            }
            Self::Sizes { load, .. } => {
                within("sizes", load.len(), MOST_SIZES)?;
                let ascend = load.is_sorted_by(|(before, _), (after, _)| before < after);
                if ascend { Ok(()) } else { Err(FieldError::Unordered { field: "sizes" }) }
            }
            Self::Over { .. }
            | Self::Ping { .. }
            | Self::Begin { .. }
            | Self::Give { .. }
            | Self::Close { .. } => Ok(()),
        }
    }
}

impl Message<'_> for FromClone {
    const EXCHANGE: u8 = 5;

    fn check(&self) -> Result<(), FieldError> {
        match self {
            Self::Back { state, .. } => within("state", state.len(), MOST_STATE_BYTES),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{DecodeError, messages};
    use crate::message::ToAgent;
    use proptest::prelude::*;

    fn clone(state: &[u8]) -> ToClone<'_> {
        let sent = SentPart { from: 1 << 40, left: 3, etag: "\"a\"".to_owned() };
        ToClone::Clone {
            conn: Conn(7),
            state,
            head: b"GET / HTTP/1.1\r\n\r\n",
            sent: Some(sent),
            role: CloneRole::Keeps,
            followed: true,
        }
    }

    #[test]
    fn there_and_back() {
        let ended = AnswerReport {
            request: 0,
            status: 200,
            complete: true,
            content_bytes: 1 << 33,
            first_byte_us: 4,
            total_us: 5,
        };
        let conn = Conn(u64::MAX);
        let said = [
            FromClone::Cloned { conn },
            FromClone::Refused { conn, why: CloneRefusal::OtherDocument },
            FromClone::Ended { conn, sent_bytes: 1 << 34, keep: true, ended },
            FromClone::Pong { token: 1 },
            FromClone::Return { conn },
            FromClone::Back { conn, state: vec![5; 300], kept: 7 },
            FromClone::Stays { conn },
            FromClone::Closed { conn, kept: 1 << 40, whole: true },
        ];
        let mut bytes = Vec::new();
        said.iter().for_each(|message| message.encode(&mut bytes).unwrap());
        assert_eq!(messages::<FromClone>(&bytes).map(Result::unwrap).collect::<Vec<_>>(), said);
        let (conn, send_next, client_window) = (Conn(8), u32::MAX, 1 << 30);
        let begin = ToClone::Begin { conn, send_next, client_window };
        let sizes =
            ToClone::Sizes { instance: 1, number: 2, cluster: 3, load: vec![(10, 5), (20, u64::MAX)] };
        let others = [ToClone::Over { conn }, begin, ToClone::Give { conn }, ToClone::Close { conn }, sizes];
        for asked in others.into_iter().chain([clone(b"state"), ToClone::Ping { token: 0 }]) {
            let mut bytes = Vec::new();
            asked.encode(&mut bytes).unwrap();
            assert_eq!(ToClone::decode(&bytes).unwrap(), asked);
        }
    }

    #[test]
    fn bounds_and_other_exchanges() {
        let mut bytes = Vec::new();
        assert!(clone(&vec![0; MOST_STATE_BYTES + 1]).encode(&mut bytes).is_err());
        let sent = Some(SentPart { from: 0, left: 0, etag: "e".repeat(MOST_ETAG_BYTES + 1) });
        let long = ToClone::Clone {
            conn: Conn(0),
            state: b"",
            head: b"",
            sent,
            role: CloneRole::Once,
            followed: false,
        };
        assert!(long.encode(&mut bytes).is_err() && bytes.is_empty());
        let unordered = ToClone::Sizes { instance: 0, number: 0, cluster: 0, load: vec![(2, 1), (2, 1)] };
        assert!(unordered.encode(&mut bytes).is_err() && bytes.is_empty());
        let back = FromClone::Back { conn: Conn(0), state: vec![0; MOST_STATE_BYTES + 1], kept: 0 };
        assert!(back.encode(&mut bytes).is_err() && bytes.is_empty());
        ToAgent::Ping { token: 1 }.encode(&mut bytes).unwrap();
        assert!(matches!(ToClone::decode(&bytes), Err(DecodeError::Exchange { found: 1, expected: 4 })));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100), exchange in 4..=5u8) {
            let bytes = [&[exchange], &bytes[..]].concat();
            let _ = ToClone::decode(&bytes);
            let _ = FromClone::decode(&bytes);
        }
    }
}
