//! The encoding of messages: a kind, then the fields in their order of declaration. Numbers are little-endian
//! and of fixed width, a Boolean is 0 or 1, a flow is its key of 36 bytes, and bytes of variable length
//! follow their length (`u32`). The two directions share no kind, so that a message reflected to its sender
//! is invalid.

mod error;
mod fields;

use self::fields::{Fields, put, put_bytes, put_ended, start, within};
use crate::message::{Conn, FromAgent, Refusal, ToAgent};

pub use self::error::{DecodeError, TooLong};

/// Most bytes of a request's head in a message.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;

/// Most bytes of a connection's state in a message.
pub const MOST_STATE_BYTES: usize = 12 << 20;

/// A message of one direction.
pub trait Message<'a>: Sized {
    /// Appends the message to `out`.
    ///
    /// # Errors
    /// When a field is too long; `out` is then as it was.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLong>;

    /// The message at the start of `bytes`, and what follows it. The message borrows its longer fields.
    ///
    /// # Errors
    /// When the bytes do not begin with a message.
    fn decode_first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError>;

    /// Decodes `bytes` as exactly one message.
    ///
    /// # Errors
    /// When they are not a message, or more than one.
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match Self::decode_first(bytes)? {
            (message, []) => Ok(message),
            (_, rest) => Err(DecodeError::Trailing { bytes: rest.len() }),
        }
    }
}

/// The messages of a frame, one after the other; an error is the last item.
#[derive(Debug, Clone)]
pub struct Messages<'a, M> {
    rest: &'a [u8],
    kind: std::marker::PhantomData<M>,
}

/// The messages in a frame's message area.
#[must_use]
pub fn messages<'a, M: Message<'a>>(area: &'a [u8]) -> Messages<'a, M> {
    Messages { rest: area, kind: std::marker::PhantomData }
}

impl<'a, M: Message<'a>> Iterator for Messages<'a, M> {
    type Item = Result<M, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        Some(match M::decode_first(self.rest) {
            Ok((message, rest)) => {
                self.rest = rest;
                Ok(message)
            }
            Err(error) => {
                self.rest = &[];
                Err(error)
            }
        })
    }
}

mod kind {
    pub(super) const HANDOFF: u8 = 1;
    pub(super) const CONFIRM: u8 = 2;
    pub(super) const CANCEL: u8 = 3;
    pub(super) const STAY: u8 = 4;
    pub(super) const RETURN: u8 = 5;
    pub(super) const RELEASED: u8 = 6;
    pub(super) const CLOSE: u8 = 7;
    pub(super) const ADOPTED: u8 = 8;
    pub(super) const PING: u8 = 9;
    pub(super) const TAKEN: u8 = 65;
    pub(super) const REFUSED: u8 = 66;
    pub(super) const ASK: u8 = 67;
    pub(super) const BEGAN: u8 = 68;
    pub(super) const ENDED: u8 = 69;
    pub(super) const RETURNED: u8 = 70;
    pub(super) const KEPT: u8 = 71;
    pub(super) const CLOSED: u8 = 72;
    pub(super) const ADOPT: u8 = 73;
    pub(super) const STRAY: u8 = 74;
    pub(super) const PONG: u8 = 75;
}

impl Refusal {
    const ALL: [Self; 6] =
        [Self::Full, Self::Stopping, Self::Late, Self::Kernel, Self::NoServer, Self::BadState];

    fn code(self) -> u8 {
        match self {
            Self::Full => 0,
            Self::Stopping => 1,
            Self::Late => 2,
            Self::Kernel => 3,
            Self::NoServer => 4,
            Self::BadState => 5,
        }
    }

    fn of_code(code: u8) -> Result<Self, DecodeError> {
        let known = Self::ALL.get(usize::from(code)).copied();
        known.ok_or(DecodeError::Value { field: "reason", value: code })
    }
}

impl<'a> Message<'a> for ToAgent<'a> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        match *self {
            Self::Handoff { conn, request, lease_until_ns, ask, state } => {
                within("state", state.len(), MOST_STATE_BYTES)?;
                start(out, kind::HANDOFF, conn);
                put(out, request.to_le_bytes());
                put(out, lease_until_ns.to_le_bytes());
                out.push(u8::from(ask));
                put_bytes(out, state);
            }
            Self::Confirm { conn } => start(out, kind::CONFIRM, conn),
            Self::Cancel { conn } => start(out, kind::CANCEL, conn),
            Self::Stay { conn, request } => {
                start(out, kind::STAY, conn);
                put(out, request.to_le_bytes());
            }
            Self::Return { conn, request } => {
                start(out, kind::RETURN, conn);
                put(out, request.to_le_bytes());
            }
            Self::Released { conn } => start(out, kind::RELEASED, conn),
            Self::Close { conn } => start(out, kind::CLOSE, conn),
            Self::Adopted { orphan, conn } => {
                start(out, kind::ADOPTED, Conn(orphan));
                put(out, conn.0.to_le_bytes());
            }
            Self::Ping { token } => start(out, kind::PING, Conn(token)),
        }
        Ok(())
    }

    fn decode_first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut fields = Fields(bytes);
        let message = match fields.u8()? {
            kind::HANDOFF => Self::Handoff {
                conn: fields.conn()?,
                request: fields.u32()?,
                lease_until_ns: fields.u64()?,
                ask: fields.truth("ask")?,
                state: fields.bytes("state", MOST_STATE_BYTES)?,
            },
            kind::CONFIRM => Self::Confirm { conn: fields.conn()? },
            kind::CANCEL => Self::Cancel { conn: fields.conn()? },
            kind::STAY => Self::Stay { conn: fields.conn()?, request: fields.u32()? },
            kind::RETURN => Self::Return { conn: fields.conn()?, request: fields.u32()? },
            kind::RELEASED => Self::Released { conn: fields.conn()? },
            kind::CLOSE => Self::Close { conn: fields.conn()? },
            kind::ADOPTED => Self::Adopted { orphan: fields.u64()?, conn: fields.conn()? },
            kind::PING => Self::Ping { token: fields.u64()? },
            other => return Err(DecodeError::Kind(other)),
        };
        Ok((message, fields.0))
    }
}

impl<'a> Message<'a> for FromAgent<'a> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        match *self {
            Self::Taken { conn } => start(out, kind::TAKEN, conn),
            Self::Refused { conn, why } => {
                start(out, kind::REFUSED, conn);
                out.push(why.code());
            }
            Self::Ask { conn, request, portable, head } => {
                within("head", head.len(), MOST_HEAD_BYTES)?;
                start(out, kind::ASK, conn);
                put(out, request.to_le_bytes());
                out.push(u8::from(portable));
                put_bytes(out, head);
            }
            Self::Began { conn, request, head } => {
                within("head", head.len(), MOST_HEAD_BYTES)?;
                start(out, kind::BEGAN, conn);
                put(out, request.to_le_bytes());
                put_bytes(out, head);
            }
            Self::Ended { conn, ended } => {
                start(out, kind::ENDED, conn);
                put_ended(out, &ended);
            }
            Self::Returned { conn, request, state } => {
                within("state", state.len(), MOST_STATE_BYTES)?;
                start(out, kind::RETURNED, conn);
                put(out, request.to_le_bytes());
                put_bytes(out, state);
            }
            Self::Kept { conn, request } => {
                start(out, kind::KEPT, conn);
                put(out, request.to_le_bytes());
            }
            Self::Closed { conn } => start(out, kind::CLOSED, conn),
            Self::Adopt { orphan, flow, request, active } => {
                start(out, kind::ADOPT, Conn(orphan));
                put(out, flow.key());
                put(out, request.to_le_bytes());
                out.push(u8::from(active));
            }
            Self::Stray { flow } => {
                out.push(kind::STRAY);
                put(out, flow.key());
            }
            Self::Pong { token, clock_ns } => {
                start(out, kind::PONG, Conn(token));
                put(out, clock_ns.to_le_bytes());
            }
        }
        Ok(())
    }

    fn decode_first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut fields = Fields(bytes);
        let message = match fields.u8()? {
            kind::TAKEN => Self::Taken { conn: fields.conn()? },
            kind::REFUSED => Self::Refused { conn: fields.conn()?, why: Refusal::of_code(fields.u8()?)? },
            kind::ASK => Self::Ask {
                conn: fields.conn()?,
                request: fields.u32()?,
                portable: fields.truth("portable")?,
                head: fields.bytes("head", MOST_HEAD_BYTES)?,
            },
            kind::BEGAN => Self::Began {
                conn: fields.conn()?,
                request: fields.u32()?,
                head: fields.bytes("head", MOST_HEAD_BYTES)?,
            },
            kind::ENDED => Self::Ended { conn: fields.conn()?, ended: fields.ended()? },
            kind::RETURNED => Self::Returned {
                conn: fields.conn()?,
                request: fields.u32()?,
                state: fields.bytes("state", MOST_STATE_BYTES)?,
            },
            kind::KEPT => Self::Kept { conn: fields.conn()?, request: fields.u32()? },
            kind::CLOSED => Self::Closed { conn: fields.conn()? },
            kind::ADOPT => Self::Adopt {
                orphan: fields.u64()?,
                flow: fields.flow()?,
                request: fields.u32()?,
                active: fields.truth("active")?,
            },
            kind::STRAY => Self::Stray { flow: fields.flow()? },
            kind::PONG => Self::Pong { token: fields.u64()?, clock_ns: fields.u64()? },
            other => return Err(DecodeError::Kind(other)),
        };
        Ok((message, fields.0))
    }
}

#[cfg(test)]
mod tests;
