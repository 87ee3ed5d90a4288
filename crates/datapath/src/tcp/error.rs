//! Errors of moving a connection.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Why a connection cannot be moved now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotPortable {
    /// The client has ended its side (its FIN has arrived), or the connection is over: serve it where it is.
    #[error("the client has ended the connection")]
    ClientEnded,
    /// We have ended our side.
    #[error("our side of the connection is closed")]
    Closing,
    /// It is not established: listening, connecting, never connected.
    #[error("the socket is not connected")]
    NotConnected,
    /// The client has sent urgent data, which repair mode cannot carry.
    #[error("urgent data is waiting")]
    Urgent,
    /// More is queued than the limits allow.
    #[error("{bytes} bytes are queued, more than {limit}")]
    TooMuchQueued {
        /// Bytes in the queue.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An address of IPv6 link-local scope means nothing on another machine.
    #[error("address {0} is link-local")]
    LinkLocal(SocketAddr),
    /// The segments are larger than another kernel accepts.
    #[error("segment size {0} is out of range")]
    SegmentSize(u32),
    /// Packets kept arriving while the snapshot was taken.
    #[error("the connection changed while it was read")]
    Unsteady,
}

/// Why a socket was not frozen or read.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Its connection cannot be moved.
    #[error(transparent)]
    NotPortable(#[from] NotPortable),
    /// The kernel refused.
    #[error("{step}: {source}")]
    Kernel {
        /// The step that failed.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// A socket that could not be frozen; it continues as before.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct FreezeFailed {
    /// The socket.
    pub fd: OwnedFd,
    /// Why.
    #[source]
    pub error: SocketError,
}

/// Why a connection was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Our end's address is not one of this machine's.
    #[error("{0} is not an address of this machine")]
    NotLocal(SocketAddr),
    /// This machine already has a socket with the same two ends.
    #[error("the connection between {client} and {vip} is in use here")]
    InUse {
        /// The client's end.
        client: SocketAddr,
        /// Our end.
        vip: SocketAddr,
    },
    /// The kernel refused.
    #[error("{step}: {source}")]
    Kernel {
        /// The step that failed.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Adds the failed step to the kernel's error.
pub(super) trait Step<T> {
    /// As an error of freezing or reading.
    fn freezing(self, step: &'static str) -> Result<T, SocketError>;
    /// As an error of restoring.
    fn restoring(self, step: &'static str) -> Result<T, RestoreError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn freezing(self, step: &'static str) -> Result<T, SocketError> {
        self.map_err(|error| SocketError::Kernel { step, source: error.into() })
    }

    fn restoring(self, step: &'static str) -> Result<T, RestoreError> {
        self.map_err(|error| RestoreError::Kernel { step, source: error.into() })
    }
}
