//! The addresses of one host name.

use std::net::{SocketAddr, ToSocketAddrs as _};

/// A host name that leads to no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot find the address of {host}: {error}")]
pub struct UnresolvedHost {
    /// The name.
    pub host: String,
    /// Why not.
    pub error: String,
}

/// The addresses that a name leads to, never none, or why there is none.
pub(crate) type FoundAddresses = Result<Vec<SocketAddr>, UnresolvedHost>;

/// The addresses of a host, with this port.
pub(crate) fn addresses_of_host(host: &str, port: u16) -> FoundAddresses {
    let failed = |error: String| UnresolvedHost { host: host.to_owned(), error };
    let found = (host, port).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(failed("the name has no address".to_owned())) } else { Ok(found) }
}
