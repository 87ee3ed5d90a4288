//! Where a back-end answers.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// Where a back-end answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BackendAddress {
    /// Over TCP.
    Tcp(SocketAddr),
    /// At the Unix socket of this path.
    Unix(Arc<Path>),
}

impl BackendAddress {
    /// The address over TCP, if it answers there.
    pub(crate) fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Whether it is on this machine for sure.
    pub(crate) fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

impl From<SocketAddr> for BackendAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

#[cfg(test)]
impl From<([u8; 4], u16)> for BackendAddress {
    fn from(at: ([u8; 4], u16)) -> Self {
        Self::Tcp(at.into())
    }
}

/// As the configuration names it.
impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
