//! After which time without a packet of its client a connection is over.

use std::time::Duration;

use plimsoll_datapath::switch::{ConnEntry, ConnTable, SwitchConn, Transport};

/// Times without a packet of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnTimes {
    /// Of an established TCP connection.
    pub idle: Duration,
    /// Of a TCP connection of which only a SYN has come.
    pub opening: Duration,
    /// Of a connection that its client has ended: late packets go to its back-end still.
    pub closing: Duration,
    /// Of datagrams between two ports.
    pub datagrams: Duration,
}

impl Default for ConnTimes {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(900),
            opening: Duration::from_secs(30),
            closing: Duration::from_secs(60),
            datagrams: Duration::from_secs(60),
        }
    }
}

impl ConnTimes {
    /// Whether the entry in this table is to be forgotten.
    #[must_use]
    pub fn is_past(&self, conn: &SwitchConn, table: ConnTable, entry: &ConnEntry, now_ns: u64) -> bool {
        let time = match (conn.transport, table) {
            _ if entry.is_over() => self.closing,
            (Transport::Udp, _) => self.datagrams,
            (Transport::Tcp, ConnTable::Opening) => self.opening,
            (Transport::Tcp, ConnTable::Established | ConnTable::Hashed) => self.idle,
        };
        u128::from(now_ns.saturating_sub(entry.last_seen_ns)) >= time.as_nanos()
    }
}
