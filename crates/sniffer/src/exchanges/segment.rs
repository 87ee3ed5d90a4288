//! A TCP segment of a connection that is followed.

use std::net::SocketAddr;

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ends {
    /// Who opened it.
    pub client: SocketAddr,
    /// Who answers.
    pub server: SocketAddr,
}

/// What is known of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// When it passed, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Whether the client sent it.
    pub from_client: bool,
    /// It opens the connection.
    pub syn: bool,
    /// It ends its direction, or the connection as a whole.
    pub end: bool,
    /// The sequence number of its first byte.
    pub seq: u32,
    /// The sequence number of the other side's next byte, up to which its sender has received all.
    pub ack: u32,
    /// Bytes of data.
    pub data_bytes: u32,
    /// The first of them; all that was copied.
    pub data: &'a [u8],
}
