//! Tells whether this machine has an address, and when that may have changed. It takes no privileges.

use std::io;
use std::net::IpAddr;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::error::{DatapathError, NET_ADMIN};
use crate::netlink;

/// `RTMGRP_IPV4_IFADDR` and `RTMGRP_IPV6_IFADDR`: groups that hear of addresses that come and go.
const GROUPS: u32 = 0x10 | 0x100;

/// The most messages that are read at once.
const MOST_MESSAGES: usize = 10_000;

/// See the module's documentation. For the network namespace in which it was made.
#[derive(Debug)]
pub struct AddressWatch {
    socket: Socket,
    address: IpAddr,
}

impl AddressWatch {
    /// Watches `address`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(address: IpAddr) -> Result<Self, DatapathError> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, GROUPS))?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| {
            DatapathError::of("cannot watch the addresses of this machine", NET_ADMIN, error)
        })?;
        Ok(Self { socket, address: address.to_canonical() })
    }

    /// Whether an interface has the address now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_here(&self) -> Result<bool, DatapathError> {
        netlink::all_addresses().map(|all| all.contains(&self.address))
    }

    /// Whether addresses of this machine have changed since this was last asked. Does not wait.
    pub fn has_changed(&self) -> bool {
        let mut changed = false;
        for _ in 0..MOST_MESSAGES {
            match self.socket.recv_from_full() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An error says that more has come than the socket has room for: a change, too.
                _ => changed = true,
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_address_is_here_and_another_is_not() {
        let is_here = |address: &str| AddressWatch::new(address.parse().unwrap()).unwrap().is_here().unwrap();
        assert!(is_here("127.0.0.1") && is_here("::ffff:127.0.0.1"));
        assert!(!is_here("192.0.2.80") && !is_here("2001:db8::80"));
    }
}
