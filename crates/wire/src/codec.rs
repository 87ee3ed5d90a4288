//! The encoding of messages: a byte that says between whom they are exchanged, then the message as [`postcard`] encodes it with
//! serde. Integers of more than 8 bits are varints, a signed one in zigzag form; a variant is its number in the order of
//! declaration, bytes of variable length follow their length, the fields of a struct follow one another without names.

use std::marker::PhantomData;

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

/// A field of a message breaks its bound: it is not sent, and refused when received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// It is too long.
    #[error("the {field} of a message has a length of {length}; {most} is the most")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Its length, in bytes or elements.
        length: usize,
        /// The greatest length.
        most: usize,
    },
    /// Its elements do not ascend.
    #[error("the {field} of a message must ascend")]
    Unordered {
        /// Which field.
        field: &'static str,
    },
}

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Messages between others begin with this byte.
    #[error("a message of another exchange: it begins with {found} instead of {expected}")]
    Exchange {
        /// The first byte.
        found: u8,
        /// What it should be.
        expected: u8,
    },
    /// The bytes end within a message.
    #[error("a message is cut off")]
    Short,
    /// No message is encoded so.
    #[error("a message is malformed: {0}")]
    Malformed(&'static str),
    /// A field has a value that no message may have.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Bytes follow where one message was expected.
    #[error("{bytes} bytes follow a message")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}

impl DecodeError {
    fn of(error: &postcard::Error) -> Self {
        match error {
            postcard::Error::DeserializeUnexpectedEnd => Self::Short,
            postcard::Error::DeserializeBadBool => Self::Malformed("a truth value is neither 0 nor 1"),
            postcard::Error::DeserializeBadVarint => Self::Malformed("an integer is too long"),
            // Of our types only variants refuse a number.
            _ => Self::Malformed("a number stands for no message, reason or kind of address"),
        }
    }
}

/// A message of one exchange.
pub trait Message<'a>: Serialize + Deserialize<'a> {
    /// The first byte of each message, different for each direction and each pair of parties, so that a message that comes
    /// where it does not belong is invalid.
    const EXCHANGE: u8;

    /// Checks what the types do not say, such as lengths.
    ///
    /// # Errors
    /// Names the field that is wrong.
    fn check(&self) -> Result<(), FieldError>;

    /// Appends the message to `out`.
    ///
    /// # Errors
    /// See [`Message::check`]; `out` is then as it was.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), FieldError> {
        self.check()?;
        out.push(Self::EXCHANGE);
        // Fails for none of our types: it would for sequences of unknown length, which no message has.
        postcard::serialize_with_flavor(self, Appending(out)).expect("messages can be encoded");
        Ok(())
    }

    /// The message at the start of `bytes`, and what follows it. The message borrows its longer fields.
    ///
    /// # Errors
    /// When the bytes do not begin with a message.
    fn decode_first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let (&found, bytes) = bytes.split_first().ok_or(DecodeError::Short)?;
        if found != Self::EXCHANGE {
            return Err(DecodeError::Exchange { found, expected: Self::EXCHANGE });
        }
        let (message, rest) =
            postcard::take_from_bytes::<Self>(bytes).map_err(|error| DecodeError::of(&error))?;
        message.check()?;
        Ok((message, rest))
    }

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

/// Checks the length of a field.
///
/// # Errors
/// When it is greater than `most`.
pub fn within(field: &'static str, length: usize, most: usize) -> Result<(), FieldError> {
    if length <= most { Ok(()) } else { Err(FieldError::TooLong { field, length, most }) }
}

/// Encodes to the end of a buffer; postcard's own flavors take the buffer over or need its final length.
struct Appending<'a>(&'a mut Vec<u8>);

impl Flavor for Appending<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// The messages of a frame, one after the other; an error is the last item.
#[derive(Debug, Clone)]
pub struct Messages<'a, M> {
    rest: &'a [u8],
    message: PhantomData<M>,
}

/// The messages in a frame's message area.
#[must_use]
pub fn messages<'a, M: Message<'a>>(area: &'a [u8]) -> Messages<'a, M> {
    Messages { rest: area, message: PhantomData }
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

#[cfg(test)]
mod tests;
