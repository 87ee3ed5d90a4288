//! Addresses on loopback that no other test uses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The port whose listener shows that an address is taken.
const HELD_PORT: u16 = 17_999;

/// An address of 127.0.0.0/8 that is this owner's alone as long as it lives. Its ports are free before they are listened at, and
/// stay free between two servers: a port of 127.0.0.1 that was given up, or was found free a moment ago, may be another
/// test's by now, or that of a connection.
#[derive(Debug)]
pub struct OwnLoopback {
    address: Ipv4Addr,
    /// Nobody else can listen there, and so nobody else takes the address for its own.
    _held: TcpListener,
}

impl OwnLoopback {
    /// An address that nobody has, and that nobody in this process had before: a thread of a test that has ended may still
    /// listen there.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for _ in 0..60_000_u32 {
            let number = process::id().wrapping_mul(61).wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
            let address = numbered(number);
            if let Ok(held) = TcpListener::bind((address, HELD_PORT)) {
                return Self { address, _held: held };
            }
        }
        panic!("no address of 127.77.0.0/16 is free");
    }

    /// The address with this port, at which nothing listens unless its owner does.
    ///
    /// # Panics
    /// At the one port which shows that the address is taken.
    #[must_use]
    pub fn at(&self, port: u16) -> SocketAddr {
        assert_ne!(port, HELD_PORT, "this port is held");
        (IpAddr::from(self.address), port).into()
    }
}

/// The address of this number. Its last byte is never that of a network or a broadcast.
fn numbered(number: u32) -> Ipv4Addr {
    const HOSTS: u32 = 254;
    let [.., high] = (number / HOSTS).to_be_bytes();
    let [.., low] = (number % HOSTS + 1).to_be_bytes();
    Ipv4Addr::new(127, 77, high, low)
}

impl Default for OwnLoopback {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn addresses_of_successive_numbers_are_different_hosts() {
        let addresses: Vec<Ipv4Addr> = (0..254 * 256).map(numbered).collect();
        let distinct: std::collections::BTreeSet<&Ipv4Addr> = addresses.iter().collect();
        assert_eq!(distinct.len(), addresses.len());
        assert!(addresses.iter().all(|address| (1..=254).contains(&address.octets()[3])));
        assert_eq!(numbered(254 * 256 + 7), numbered(7));
    }

    #[test]
    fn an_address_that_was_given_up_is_not_given_out_again() {
        let first = OwnLoopback::new().at(80);
        assert!((0..600).all(|_| OwnLoopback::new().at(80) != first));
    }

    #[test]
    fn addresses_differ_and_their_ports_are_free() {
        let (one, other) = (OwnLoopback::new(), OwnLoopback::new());
        assert_ne!(one.at(80).ip(), other.at(80).ip());
        assert!(TcpStream::connect(one.at(8001)).is_err());
        let listener = TcpListener::bind(one.at(8001)).unwrap();
        assert!(TcpStream::connect(one.at(8001)).is_ok());
        assert!(TcpStream::connect(other.at(8001)).is_err());
        drop(listener);
        assert!(TcpListener::bind(one.at(8001)).is_ok());
    }
}
