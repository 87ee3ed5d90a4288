//! Where servers of others tell their loads.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where servers tell their loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiAddress {
    /// At an address of this machine that others cannot reach: loopback.
    Loopback(SocketAddr),
    /// At a Unix socket.
    Unix(PathBuf),
}

impl std::str::FromStr for ApiAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().to_canonical().is_loopback() => Ok(Self::Loopback(address)),
            Ok(_) => {
                Err("it is open to whoever reaches it: give an address of loopback, or unix:PATH".to_owned())
            }
            Err(_) => Err("give an IP address and a port, as 127.0.0.1:7402, or unix:PATH".to_owned()),
        }
    }
}
