//! Why there is no origin.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use plimsoll_cache::UnknownCache;

use super::synthetic::SyntheticError;

/// Why there is no origin.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// The directory to serve is not there, is no directory, or may not be read.
    #[error("cannot serve the files below {}: {error}; give a directory that can be read", path.display())]
    Root {
        /// The directory as it was given.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}; give an address of this machine and a port that is free")]
    Listen {
        /// The address as it was given.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// There is no cache of that name.
    #[error(transparent)]
    Cache(#[from] UnknownCache),
    /// The name cannot stand in a header.
    #[error("the name {0:?} cannot stand in the header X-Backend; give printable ASCII characters")]
    Name(String),
    /// The generated contents are not declared right.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
}
