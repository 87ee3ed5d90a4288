//! How an attempt ends, and what may follow.

use std::io;

/// How the access to a chosen back-end ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessEnd {
    /// Answered, with so many bytes where that is known.
    Answered {
        /// Bytes of the answer.
        size_bytes: Option<u64>,
    },
    /// The back-end failed. After several in a row it gets nothing for a while.
    Failed,
    /// The back-end has too much to do and said so.
    Refused,
    /// Nobody waits for the answer any more. It says nothing of the back-end.
    Abandoned,
}

/// What an error of an attempt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// It is the service's answer. The back-end is well, and another one would say the same.
    Answer,
    /// The back-end has too much to do and did nothing. Another one may do it.
    Refused,
    /// The back-end was not reached, so nothing was done. Another one may do it.
    Unsent,
    /// The back-end failed, and may have done it. Another one may do it if the access is [repeatable](crate::ServiceAccess::repeatable).
    Lost,
}

impl ErrorClass {
    /// Whether another back-end may be tried.
    #[must_use]
    pub const fn may_retry(self, repeatable: bool) -> bool {
        match self {
            Self::Answer => false,
            Self::Refused | Self::Unsent => true,
            Self::Lost => repeatable,
        }
    }

    pub(crate) const fn end(self) -> AccessEnd {
        match self {
            Self::Answer => AccessEnd::Answered { size_bytes: None },
            Self::Refused => AccessEnd::Refused,
            Self::Unsent | Self::Lost => AccessEnd::Failed,
        }
    }
}

/// Errors that tell their class.
pub trait HasErrorClass {
    /// The class of this error.
    fn error_class(&self) -> ErrorClass;
}

/// What shows that nothing was sent is `Unsent`, all else `Lost`.
impl HasErrorClass for io::Error {
    fn error_class(&self) -> ErrorClass {
        use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
        match self.kind() {
            ConnectionRefused | HostUnreachable | NetworkUnreachable | AddrNotAvailable => ErrorClass::Unsent,
            _ => ErrorClass::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_done_is_repeated_only_if_that_does_no_harm() {
        let class = |kind| io::Error::from(kind).error_class();
        assert_eq!(class(io::ErrorKind::ConnectionRefused), ErrorClass::Unsent);
        assert_eq!(class(io::ErrorKind::ConnectionReset), ErrorClass::Lost);
        assert!(!ErrorClass::Lost.may_retry(false) && ErrorClass::Lost.may_retry(true));
        assert!(ErrorClass::Unsent.may_retry(false) && ErrorClass::Refused.may_retry(false));
        assert!(!ErrorClass::Answer.may_retry(true));
    }
}
