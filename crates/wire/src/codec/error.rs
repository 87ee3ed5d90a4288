//! What can be wrong with a message.

/// A message has a field that is too long to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {field} of a message has {bytes} bytes; {most} is the most")]
pub struct TooLong {
    /// Which field: `state` or `head`.
    pub field: &'static str,
    /// Its length in bytes.
    pub bytes: usize,
    /// The greatest length in bytes.
    pub most: usize,
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No message of this direction has this kind.
    #[error("unknown message kind {0}")]
    Kind(u8),
    /// The bytes end within a message.
    #[error("a message is cut off")]
    Short,
    /// A field is longer than it may be.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// A truth value is neither 0 nor 1, or a reason unknown.
    #[error("the {field} of a message cannot be {value}")]
    Value {
        /// Which field.
        field: &'static str,
        /// What it is.
        value: u8,
    },
    /// Bytes follow where one message was expected.
    #[error("{bytes} bytes follow a message")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}
