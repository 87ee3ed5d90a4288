//! Why an origin could not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use plimsoll_cache::UnknownCache;

use super::synthetic::SyntheticError;

/// Why an origin could not start.
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
    /// The system does not let the origin listen on this address.
    #[error("cannot listen on {address}: {error}; give an address of this machine and a port that is free")]
    Listen {
        /// The address as it was given.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// There is no replacement policy of this name.
    #[error(transparent)]
    Cache(#[from] UnknownCache),
    /// The name for the header `X-Backend` is empty or has characters that are not printable ASCII.
    #[error("the name {0:?} cannot stand in the header X-Backend; give printable ASCII characters")]
    Name(String),
    /// The generated contents are not described correctly.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
}
