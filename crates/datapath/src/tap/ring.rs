//! The ring of blocks in which the kernel puts copies of packets (`TPACKET_V3`).

#![allow(unsafe_code, reason = "the ring is in memory that is shared with the kernel")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use socket2::Socket;

/// Bytes of a block, and how many there are: the memory that a tap takes.
const BLOCK_BYTES: usize = 256 << 10;
const BLOCKS: usize = 64;
/// When a block that is not full is handed over, in milliseconds.
const HAND_OVER_MS: u32 = 20;
/// Where the status of a block is (`struct tpacket_block_desc`).
const STATUS: usize = 8;
const PACKETS: usize = 12;
const FIRST: usize = 16;
/// Where `struct sockaddr_ll` has the kind of the packet, from `struct tpacket3_hdr` on.
const KIND: usize = 48 + 10;

/// What the kernel says of one packet.
pub(super) struct RingPacket<'a> {
    pub(super) at_ns: u64,
    /// Whether this machine sends it.
    pub(super) outgoing: bool,
    /// Its whole length.
    pub(super) bytes: u32,
    /// What was copied of it.
    pub(super) copied: &'a [u8],
}

/// The ring.
#[derive(Debug)]
pub(super) struct TapRing {
    memory: NonNull<u8>,
    next: usize,
}

// SAFETY: the memory is that of this value alone, beside the kernel.
unsafe impl Send for TapRing {}

fn set<T>(socket: &Socket, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let of = ptr::from_ref(value).cast();
    // SAFETY: `value` is as long as is said, and the kernel only reads it.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, of, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl TapRing {
    /// Has the kernel put packets of `socket` into a ring.
    pub(super) fn new(socket: &Socket) -> io::Result<Self> {
        set(socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as libc::c_int))?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (BLOCK_BYTES * BLOCKS / 2048) as u32,
            tp_retire_blk_tov: HAND_OVER_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(socket, libc::PACKET_RX_RING, &request)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let bytes = BLOCK_BYTES * BLOCKS;
        // SAFETY: the kernel chooses the place, so no memory of ours is replaced; the ring has that length.
        let mapped =
            unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, socket.as_fd(), 0) }?;
        let memory = NonNull::new(mapped.cast())
            .ok_or_else(|| io::Error::other("the ring of packets is mapped nowhere"))?;
        Ok(Self { memory, next: 0 })
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: `next` is below `BLOCKS`, so the word is within the mapping; blocks are aligned to pages.
        unsafe { self.memory.add(self.next * BLOCK_BYTES + STATUS).cast::<AtomicU32>().as_ref() }
    }

    /// Whether the next block is ours.
    pub(super) fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Shows the packets of the next block and gives it back. Only once [`Self::is_ready`].
    pub(super) fn read_block(&mut self, visit: &mut dyn FnMut(RingPacket<'_>)) {
        debug_assert!(self.is_ready(), "the kernel has the block");
        // SAFETY: the block is within the mapping, and the kernel leaves it alone until it is given back below.
        let block = unsafe {
            std::slice::from_raw_parts(self.memory.add(self.next * BLOCK_BYTES).as_ptr(), BLOCK_BYTES)
        };
        visit_block(block, visit);
        self.status().store(0, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
    }
}

impl Drop for TapRing {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nobody else knows.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), BLOCK_BYTES * BLOCKS) };
    }
}

/// The packets of a block.
fn visit_block(block: &[u8], visit: &mut dyn FnMut(RingPacket<'_>)) {
    let word = |at: usize| {
        let bytes = block.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_ne_bytes)
    };
    let mut at = word(FIRST).unwrap_or(0) as usize;
    for _ in 0..word(PACKETS).unwrap_or(0) {
        let read = || {
            let [next, s, ns, copied, bytes] = [0, 4, 8, 12, 16].map(|field| word(at + field));
            let data_at = at + usize::from(u16::from_ne_bytes(block.get(at + 26..at + 28)?.try_into().ok()?));
            let packet = RingPacket {
                at_ns: u64::from(s?) * 1_000_000_000 + u64::from(ns?),
                outgoing: *block.get(at + KIND)? == libc::PACKET_OUTGOING,
                bytes: bytes?,
                copied: block.get(data_at..data_at + copied? as usize)?,
            };
            Some((packet, next? as usize))
        };
        let Some((packet, next)) = read() else { return };
        visit(packet);
        at += next;
    }
}

/// Packets that were seen, and those of them that were lost, since the last call.
pub(super) fn statistics(socket: &Socket) -> io::Result<(u32, u32)> {
    let mut words = [0_u32; 3];
    let mut length = size_of_val(&words) as libc::socklen_t;
    let to = words.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `length` bytes, which is what `words` has.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &raw mut length)
    };
    if result == 0 { Ok((words[0], words[1])) } else { Err(io::Error::last_os_error()) }
}

/// Begins to copy what passes at the interface number `ifindex`.
pub(super) fn bind(socket: &Socket, ifindex: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: ifindex.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is as long as is said, and the kernel only reads it.
    match unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
