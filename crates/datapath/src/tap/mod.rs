//! A passive tap: copies of the TCP segments that pass at an interface. It forwards nothing and changes nothing, and works beside
//! whatever else sends and receives there.
//!
//! A packet socket with a filter and a ring of 16 MiB: memory is bounded, and who reads too slowly loses copies, never packets. It
//! sees what the network stack sees, so not what an XDP program takes before that.

mod filter;
pub(crate) mod fuzzed;
mod packet;
mod ring;

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

pub use packet::TapSegment;
use ring::TapRing;

use crate::error::DatapathError;
use crate::netlink::{LOOPBACK, links, named};

/// Most ports of a tap.
pub const MOST_PORTS: usize = 32;
/// Most bytes that are copied of a packet.
pub const MOST_COPY_BYTES: u32 = 64 << 10;
/// Bytes of the headers of IP and TCP without options.
const HEADERS_BYTES: u32 = 60;

const NET_RAW: &str = "CAP_NET_RAW";

/// What a tap copies.
#[derive(Debug, Clone)]
pub struct TapConfig {
    /// The interface.
    pub interface: String,
    /// Ports of servers.
    pub ports: Vec<u16>,
    /// Bytes of each packet, headers of IP and TCP included.
    pub copy_bytes: u32,
}

/// A tap. Ends when it is dropped.
#[derive(Debug)]
pub struct PacketTap {
    socket: Socket,
    ring: TapRing,
    is_loopback: bool,
    seen: u64,
    lost: u64,
}

/// What a tap has copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TapStatistics {
    /// Packets that passed, of the chosen ports.
    pub seen: u64,
    /// Those of them for which there was no room.
    pub lost: u64,
}

impl PacketTap {
    /// Begins to copy.
    ///
    /// # Errors
    /// No privileges (CAP_NET_RAW), no such interface, no port or too many.
    pub fn open(config: &TapConfig) -> Result<Self, DatapathError> {
        if config.ports.is_empty() || config.ports.len() > MOST_PORTS {
            return Err(DatapathError::Invalid(format!("a tap has 1 to {MOST_PORTS} ports")));
        }
        if !(HEADERS_BYTES..=MOST_COPY_BYTES).contains(&config.copy_bytes) {
            let text = format!("a tap copies {HEADERS_BYTES} to {MOST_COPY_BYTES} bytes of a packet");
            return Err(DatapathError::Invalid(text));
        }
        let what = || format!("cannot observe {}", config.interface);
        let failed = |error| DatapathError::of(what(), NET_RAW, error);
        let links = links()?;
        let index = named(&links, &config.interface)?.index;
        // Without a protocol, so that nothing comes before the filter is there.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None).map_err(failed)?;
        socket.attach_filter(&filter::filter(&config.ports, config.copy_bytes)).map_err(failed)?;
        let ring = TapRing::new(&socket).map_err(failed)?;
        ring::bind(&socket, index).map_err(failed)?;
        Ok(Self { socket, ring, is_loopback: index == LOOPBACK, seen: 0, lost: 0 })
    }

    /// Waits at most `wait` for segments and shows those that are there.
    ///
    /// # Errors
    /// The kernel's: the interface is gone.
    pub fn read(
        &mut self,
        wait: Duration,
        visit: &mut dyn FnMut(&TapSegment<'_>),
    ) -> Result<(), DatapathError> {
        if !self.ring.is_ready() {
            let wait = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut polled, Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(Self::failed(errno.into())),
            }
            if let Some(error) = self.socket.take_error().map_err(Self::failed)? {
                return Err(Self::failed(error));
            }
        }
        // Not for ever, when packets come faster than they are read.
        for _ in 0..16 {
            if !self.ring.is_ready() {
                break;
            }
            let is_loopback = self.is_loopback;
            self.ring.read_block(&mut |found| {
                // Whatever the loopback interface sends, it receives.
                if is_loopback && found.outgoing {
                    return;
                }
                if let Some(segment) = packet::read(found.at_ns, found.copied, found.bytes) {
                    visit(&segment);
                }
            });
        }
        Ok(())
    }

    fn failed(error: std::io::Error) -> DatapathError {
        DatapathError::of("cannot observe the interface any more", NET_RAW, error)
    }

    /// What was seen and lost until now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn statistics(&mut self) -> Result<TapStatistics, DatapathError> {
        let (seen, lost) = ring::statistics(&self.socket).map_err(Self::failed)?;
        self.seen += u64::from(seen);
        self.lost += u64::from(lost);
        Ok(TapStatistics { seen: self.seen, lost: self.lost })
    }
}
