//! Reads the packets that the guard holds.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::mpsc::{Receiver, Sender, channel};

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use crate::Flow;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::layout::{HELD_FRAME_BYTES, HELD_HEAD_BYTES, flow_at, u32_at, u64_at};

/// Packets taken from the ring at a time.
const BATCH: usize = 256;

/// A packet of a client for which the back-end had no socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPacket {
    /// Its connection.
    pub flow: Flow,
    /// When it came, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Index of the interface at which it came.
    pub ifindex: u32,
    /// The whole frame, from its Ethernet header.
    pub frame: Box<[u8]>,
}

impl FromRecord for HeldPacket {
    /// From `struct held_small` or `struct held_large`.
    fn from_record(record: &[u8]) -> Option<Self> {
        let frame_bytes = u32_at(record, 8) as usize;
        let frame = record.get(HELD_HEAD_BYTES..HELD_HEAD_BYTES + frame_bytes.min(HELD_FRAME_BYTES))?;
        Some(Self {
            at_ns: u64_at(record, 0),
            ifindex: u32_at(record, 12),
            flow: flow_at(record, 16)?,
            frame: frame.into(),
        })
    }
}

/// What stands in a ring.
pub trait FromRecord: Sized + 'static {
    /// From a record as the packet program wrote it.
    fn from_record(record: &[u8]) -> Option<Self>;
}

/// The reader's end of the ring. There is one, for one thread; its descriptor becomes readable when packets come.
#[derive(Debug)]
pub struct HeldRing<T = HeldPacket> {
    ring: RingBuffer<'static>,
    map: MapHandle,
    packets: Receiver<T>,
}

impl<T: FromRecord> HeldRing<T> {
    pub(crate) fn new(map: MapHandle) -> Result<Self, DatapathError> {
        let failed =
            |error| DatapathError::of_bpf("cannot read the ring of held packets", BPF_CAPABILITIES, &error);
        let (sender, packets): (Sender<T>, _) = channel();
        let mut builder = RingBufferBuilder::new();
        let take = move |record: &[u8]| {
            if let Some(packet) = T::from_record(record) {
                // Fails when the receiver is gone, and then nobody reads.
                let _ = sender.send(packet);
            }
            0
        };
        builder.add(&map, take).map_err(failed)?;
        let ring = builder.build().map_err(failed)?;
        Ok(Self { ring, map, packets })
    }

    /// Takes up to 256 packets from the ring and calls `visit` with each. Returns their number. Unless that
    /// is 0, call it again before waiting for the descriptor, which signals only packets that come to an
    /// empty ring.
    ///
    /// # Errors
    /// The kernel's.
    pub fn poll_held(&mut self, mut visit: impl FnMut(T)) -> Result<usize, DatapathError> {
        let taken = self.ring.consume_raw_n(BATCH);
        if taken < 0 {
            let source = std::io::Error::from_raw_os_error(-taken);
            let what = "cannot read the ring of held packets".to_owned();
            return Err(DatapathError::Failed { what, source });
        }
        let mut count = 0;
        for packet in self.packets.try_iter().take(BATCH) {
            visit(packet);
            count += 1;
        }
        Ok(count)
    }
}

impl<T> AsFd for HeldRing<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl<T> AsRawFd for HeldRing<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.map.as_fd().as_raw_fd()
    }
}
