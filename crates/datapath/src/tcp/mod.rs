//! Established TCP connections taken out of one kernel and put into another, by `TCP_REPAIR`.
//!
//! Here: [`Frozen::freeze`] → [`Frozen::snapshot`] → [`Frozen::close`] (or [`Frozen::thaw`], as if nothing had happened).
//! There: [`restore`] → [`Restored::activate`]. Neither end of the connection notices, as long as packets of the
//! client reach no kernel that has no socket for them (it would answer with RST): that is for the packet programs to see
//! to. A frozen connection that another machine has gone on with is brought up to where that one has come by
//! [`fast_forward`], without a new descriptor; until then, [`Frozen::silence`] has it send nothing again. [`discard`] removes the
//! other one's socket. [`reset`] ends a connection of which only the sequence numbers are left; [`ask_numbers`] gets these from
//! the client.
//!
//! From the freeze on, and until the activation, a socket filter drops whatever comes for the socket: it neither
//! takes nor acknowledges anything that another kernel would then not have. What is dropped, the client sends again.
//!
//! The capabilities `CAP_NET_ADMIN` and `CAP_BPF` are needed. Plain TCP only: a socket with kernel TLS would travel
//! without its keys, so none must be passed here.

mod error;
mod freeze;
mod restore;
mod sys;

pub use error::{FreezeFailed, NotPortable, RestoreError, SocketError};
pub use freeze::{Frozen, QueueLimits};
pub use plimsoll_wire::{TcpState, Window};
pub(crate) use restore::wrong_numbers;
pub use restore::{Restored, ask_numbers, fast_forward, reset, restore};

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;

/// Values of `TCP_REPAIR`; leaving without a window probe says nothing to the client.
const REPAIR_ON: u32 = 1;
const REPAIR_OFF: u32 = 0;
const REPAIR_OFF_SILENTLY: u32 = u32::MAX;

/// The queues of `TCP_REPAIR_QUEUE`.
const RECEIVE_QUEUE: u32 = 1;
const SEND_QUEUE: u32 = 2;

/// Loads what freezing and restoring need once per process, so that a missing capability shows at start. Without this
/// call, the first freeze or restore does it.
///
/// # Errors
///
/// The kernel's: without `CAP_BPF`, or where eBPF is not configured.
pub fn prepare() -> io::Result<()> {
    drop_filter().map(|_| ())
}

/// Has a listener's connections be accepted when their first data is there, or, without `await_data`, at once. Where clients
/// speak first, waiting saves a wake-up for each connection; but what accepting costs is then added to the time that a
/// client waits for its first answer. A client that says nothing is accepted when it acknowledges for the second time,
/// after about a second.
///
/// # Errors
///
/// The kernel's.
pub fn await_data(listener: BorrowedFd<'_>, await_data: bool) -> io::Result<()> {
    const SECONDS: u32 = 1;
    set_tcp(listener, libc::TCP_DEFER_ACCEPT, &[if await_data { SECONDS } else { 0 }])
}

/// Has the acknowledgment of the first data on each of a listener's connections wait for the answer, as it would later in a
/// connection: a packet less for each, where the answer comes soon.
///
/// # Errors
///
/// The kernel's.
pub fn acknowledge_late(listener: BorrowedFd<'_>) -> io::Result<()> {
    // Inherited by the connections.
    set_tcp(listener, libc::TCP_QUICKACK, &[0])
}

/// Removes a connection from this kernel at once, whatever copies of the descriptor there are, and the client hears nothing of
/// it.
///
/// # Errors
///
/// The kernel's; the connection may still be there.
pub fn discard(fd: BorrowedFd<'_>) -> io::Result<()> {
    attach_drop_filter(fd)?;
    set_tcp(fd, libc::TCP_REPAIR, &[REPAIR_ON])?;
    // In repair mode, disconnecting is silent.
    Ok(rustix::net::connect_unspec(fd)?)
}

/// Like [`discard`], for a connection of which another process has a copy: that one sees it reset.
///
/// # Errors
///
/// The kernel's; the connection may still be there.
pub fn take_away(fd: BorrowedFd<'_>) -> io::Result<()> {
    discard(fd)?;
    // In repair mode, its reads would be invalid.
    set_tcp(fd, libc::TCP_REPAIR, &[REPAIR_OFF_SILENTLY])
}

/// Bytes that the client has not acknowledged, and our FIN counted as one.
///
/// # Errors
///
/// The kernel's.
pub fn unacknowledged_bytes(fd: BorrowedFd<'_>) -> io::Result<usize> {
    sys::queued_bytes(fd, libc::TIOCOUTQ)
}

/// Whether the connection is over: it was reset, or both sides have ended it and that is acknowledged.
///
/// # Errors
///
/// The kernel's.
pub fn is_over(fd: BorrowedFd<'_>) -> io::Result<bool> {
    /// `TCP_CLOSE` of `include/net/tcp_states.h`.
    const CLOSED: u8 = 7;
    let info: [u32; 1] = tcp(fd, libc::TCP_INFO)?;
    Ok(info[0].to_ne_bytes()[0] == CLOSED)
}

/// Whether there are packets under way to the client, and for so long none has come from it. A client whose window is closed has none under
/// way.
///
/// # Errors
///
/// The kernel's.
pub fn is_unanswered(fd: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    /// The places of `tcpi_unacked` and `tcpi_last_ack_recv` (in milliseconds) in `struct tcp_info`, in 32-bit numbers.
    const UNDER_WAY: usize = 6;
    const HEARD_MS: usize = 14;
    let info: [u32; HEARD_MS + 1] = tcp(fd, libc::TCP_INFO)?;
    Ok(info[UNDER_WAY] > 0 && u128::from(info[HEARD_MS]) >= limit.as_millis())
}

/// Bytes that were written to a connection since it is in this kernel, with those that it began with in its send queue.
///
/// # Errors
///
/// The kernel's.
pub fn written_bytes(fd: BorrowedFd<'_>) -> io::Result<u64> {
    /// The place of `tcpi_bytes_acked` in `struct tcp_info`, and what comes up to its end, in 32-bit numbers.
    const ACKNOWLEDGED: usize = 30;
    const INFO: usize = ACKNOWLEDGED + 2;
    let acknowledged = || {
        let info: [u32; INFO] = tcp(fd, libc::TCP_INFO)?;
        let [b0, b1, b2, b3] = info[ACKNOWLEDGED].to_ne_bytes();
        let [b4, b5, b6, b7] = info[ACKNOWLEDGED + 1].to_ne_bytes();
        Ok::<_, io::Error>(u64::from_ne_bytes([b0, b1, b2, b3, b4, b5, b6, b7]))
    };
    let mut before = acknowledged()?;
    loop {
        let queued = unacknowledged_bytes(fd)? as u64;
        let after = acknowledged()?;
        // Otherwise an acknowledgment came between the two.
        if before == after {
            return Ok(before + queued);
        }
        before = after;
    }
}

fn drop_filter() -> io::Result<BorrowedFd<'static>> {
    static FILTER: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(filter) = FILTER.get() {
        return Ok(filter.as_fd());
    }
    let filter = sys::load_drop_filter()?;
    Ok(FILTER.get_or_init(|| filter).as_fd())
}

fn attach_drop_filter(fd: BorrowedFd<'_>) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let filter = u32::try_from(drop_filter()?.as_raw_fd()).map_err(io::Error::other)?;
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &[filter])
}

fn detach_filter(fd: BorrowedFd<'_>) -> io::Result<()> {
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &[0])
}

fn set_tcp(fd: BorrowedFd<'_>, name: i32, value: &[u32]) -> io::Result<()> {
    sys::set_option(fd, libc::IPPROTO_TCP, name, value)
}

fn tcp<const N: usize>(fd: BorrowedFd<'_>, name: i32) -> io::Result<[u32; N]> {
    sys::option(fd, libc::IPPROTO_TCP, name)
}
