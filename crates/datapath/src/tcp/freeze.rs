//! Taking a connection out of this kernel.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use plimsoll_wire::{Flow, TcpState, Window};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, connect_unspec, recv, sockopt};

use super::error::{FreezeFailed, NotPortable, SocketError, Step};
use super::{
    RECEIVE_QUEUE, REPAIR_OFF, REPAIR_ON, SEND_QUEUE, attach_drop_filter, detach_filter, set_tcp, sys, tcp,
};

/// Bits of `tcpi_options`.
const INFO_TIMESTAMPS: u8 = 1;
const INFO_SACK: u8 = 2;
const INFO_WINDOW_SCALING: u8 = 4;

/// How often a snapshot is tried when packets that were under way in this kernel at the freeze disturb it.
const ATTEMPTS: usize = 4;

/// How much may be queued on a connection that is to travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Most bytes that the client has not acknowledged.
    pub send_bytes: usize,
    /// Most bytes that have been received, those read before the freeze included.
    pub receive_bytes: usize,
}

impl Default for QueueLimits {
    /// 4 MiB to send, 256 KiB received.
    fn default() -> Self {
        Self { send_bytes: 4 << 20, receive_bytes: 256 << 10 }
    }
}

/// An established connection that takes nothing, and sends only what its client has not acknowledged, again and again, unless it is
/// silenced ([`Frozen::silence`]). Dropped, it is gone, silently, once no copy of its
/// descriptor is left; [`Frozen::close`] does not wait for that.
#[derive(Debug)]
pub struct Frozen {
    fd: OwnedFd,
    info: Info,
    /// The send window, while it is set to 0 on the socket.
    send_window: Cell<Option<u32>>,
    since: Instant,
    /// What it goes back to, if it was silenced.
    pub(super) silenced: Option<Box<TcpState>>,
    /// By how much [`Frozen::stamp`] has gone ahead of this machine's clock.
    pub(super) ahead: u32,
}

/// Room for what was acknowledged of one segment, as long as Ethernet's.
const SEGMENT_BYTES: usize = 1500;

/// What `TCP_INFO` says up to `tcpi_notsent_bytes`, in words of 32 bits (`include/uapi/linux/tcp.h`).
const INFO_WORDS: usize = 37;
const INFO_UNACKED: usize = 6;
const INFO_RTT: usize = 17;
const INFO_RTT_VARIANCE: usize = 18;
const INFO_NOT_SENT: usize = 36;

/// What is needed of `TCP_INFO`.
#[derive(Debug, Clone, Copy)]
struct Info {
    state: u8,
    options: u8,
    /// The client's in the low half, ours in the high half.
    window_scales: u8,
    /// Whether the client has acknowledged all that was ever written.
    all_acknowledged: bool,
    /// The smoothed round-trip time and its mean deviation, in microseconds.
    round_trip_us: [u32; 2],
}

impl Info {
    fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let words: [u32; INFO_WORDS] = tcp(fd, libc::TCP_INFO)?;
        let [state, ..] = words[0].to_ne_bytes();
        let [_, options, window_scales, _] = words[1].to_ne_bytes();
        let all_acknowledged = words[INFO_UNACKED] == 0 && words[INFO_NOT_SENT] == 0;
        let round_trip_us = [words[INFO_RTT], words[INFO_RTT_VARIANCE]];
        Ok(Self { state, options, window_scales, all_acknowledged, round_trip_us })
    }

    /// States as `include/net/tcp_states.h` numbers them.
    fn check(self) -> Result<(), NotPortable> {
        match self.state {
            1 => Ok(()),
            7 | 8 => Err(NotPortable::ClientEnded),
            4 | 5 | 6 | 9 | 11 => Err(NotPortable::Closing),
            _ => Err(NotPortable::NotConnected),
        }
    }

    fn has(self, option: u8) -> bool {
        self.options & option != 0
    }
}

impl Frozen {
    /// Stops the connection: from now on nothing that arrives is taken or acknowledged, and closing it is silent.
    ///
    /// # Errors
    ///
    /// With the socket, which goes on as before: not an established TCP connection, or the kernel's refusal.
    pub fn freeze(fd: OwnedFd) -> Result<Self, FreezeFailed> {
        match stop(fd.as_fd()) {
            Ok(info) => Ok(Self {
                fd,
                info,
                send_window: Cell::new(None),
                since: Instant::now(),
                silenced: None,
                ahead: 0,
            }),
            Err(error) => Err(FreezeFailed { fd, error }),
        }
    }

    /// A time within which the client answers, by the round trips that the kernel has measured: their mean and four times the
    /// mean deviation, as for a retransmission.
    #[must_use]
    pub fn answer_time(&self) -> Duration {
        let [mean, deviation] = self.info.round_trip_us;
        Duration::from_micros(u64::from(mean) + 4 * u64::from(deviation))
    }

    /// For how long it has been frozen.
    pub(super) fn frozen_for(&self) -> Duration {
        self.since.elapsed()
    }

    /// The socket, frozen as it is.
    pub(super) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// The connection's state, the socket untouched. `flow` is its two ends, which the caller knows (asking costs two
    /// system calls). The receive queue begins with `read_before`: what was read from the socket before the freeze and is
    /// to be read again.
    ///
    /// # Errors
    ///
    /// A connection that cannot travel after all (its client's FIN or urgent data came just before the freeze; more is
    /// queued than `limits` allow), or the kernel's refusal. [`Frozen::thaw`] it then.
    pub fn snapshot(
        &self,
        flow: &Flow,
        read_before: &[u8],
        limits: QueueLimits,
    ) -> Result<TcpState, SocketError> {
        link_local(flow.client)?;
        link_local(flow.vip)?;
        for _ in 0..ATTEMPTS {
            if let Some(state) = self.try_snapshot(flow, read_before, limits)? {
                return Ok(state);
            }
        }
        Err(NotPortable::Unsteady.into())
    }

    /// It will not be thawed: the state to which that would go back is not needed.
    pub fn forget_state(&mut self) {
        self.silenced = None;
    }

    /// [`Frozen::thaw`] of a connection that was not silenced.
    pub(super) fn resume(self) -> io::Result<OwnedFd> {
        if let Some(bytes) = self.send_window.get() {
            let [update_seq, _, rest @ ..]: [u32; 5] = tcp(self.fd.as_fd(), libc::TCP_REPAIR_WINDOW)?;
            let [send_max, receive, receive_from] = rest;
            let window = [update_seq, bytes, send_max, receive, receive_from];
            set_tcp(self.fd.as_fd(), libc::TCP_REPAIR_WINDOW, &window)?;
        }
        detach_filter(self.fd.as_fd())?;
        set_tcp(self.fd.as_fd(), libc::TCP_REPAIR, &[REPAIR_OFF])?;
        // Leaving repair mode clears it.
        sockopt::set_socket_reuseaddr(&self.fd, true)?;
        Ok(self.fd)
    }

    /// The connection is gone from this kernel, and the client hears nothing of it; at once, even if there are other
    /// copies of the descriptor (as in a child process between fork and exec), which dropping would wait for.
    pub fn close(self) {
        // In repair mode, disconnecting is silent. Should it fail, the drop does the same.
        let _ = connect_unspec(&self.fd);
    }

    /// `None` when a packet came between two steps.
    fn try_snapshot(
        &self,
        flow: &Flow,
        read_before: &[u8],
        limits: QueueLimits,
    ) -> Result<Option<TcpState>, SocketError> {
        let fd = self.fd.as_fd();
        let [mss] = tcp(fd, libc::TCP_MAXSEG).freezing("TCP_MAXSEG")?;
        let mss = u16::try_from(mss).map_err(|_| NotPortable::SegmentSize(mss))?;
        let timestamp = if self.info.has(INFO_TIMESTAMPS) {
            let [timestamp] = tcp(fd, libc::TCP_TIMESTAMP).freezing("TCP_TIMESTAMP")?;
            Some(timestamp)
        } else {
            None
        };
        let window = self.window()?;
        let Some((send_next, send_queue, unsent_bytes)) = self.send_queue(window, limits.send_bytes)? else {
            return Ok(None);
        };
        let Some((receive_next, receive_queue)) = receive_queue(fd, read_before, limits.receive_bytes)?
        else {
            return Ok(None);
        };
        quiet(fd)?;
        if sequence(fd)? != receive_next {
            return Ok(None);
        }
        let scales = self.info.window_scales;
        Ok(Some(TcpState {
            flow: *flow,
            send_next,
            receive_next,
            mss,
            window_scales: self.info.has(INFO_WINDOW_SCALING).then_some((scales & 0xf, scales >> 4)),
            sack: self.info.has(INFO_SACK),
            timestamp,
            window,
            send_queue,
            unsent_bytes,
            receive_queue,
        }))
    }

    fn window(&self) -> Result<Window, SocketError> {
        let [update_seq, send, send_max, receive, receive_from] =
            tcp(self.fd.as_fd(), libc::TCP_REPAIR_WINDOW).freezing("TCP_REPAIR_WINDOW")?;
        // A snapshot before this one has closed it.
        let send = self.send_window.get().unwrap_or(send);
        Ok(Window { update_seq, send, send_max, receive, receive_from })
    }

    /// Sequence number at the end of the send queue, the queue, and how much of its end has never been sent.
    fn send_queue(&self, window: Window, limit: usize) -> Result<Option<(u32, Vec<u8>, usize)>, SocketError> {
        let fd = self.fd.as_fd();
        // Nothing has been written since the freeze, so what was empty then is empty now.
        let bytes = match self.info.all_acknowledged {
            true => 0,
            false => sys::queued_bytes(fd, libc::TIOCOUTQ).freezing("SIOCOUTQ")?,
        };
        if bytes > limit {
            return Err(NotPortable::TooMuchQueued { bytes, limit }.into());
        }
        let unsent = if bytes == 0 { 0 } else { self.stop_sending(window)? };
        select_queue(fd, SEND_QUEUE)?;
        let next = sequence(fd)?;
        let queue = if bytes == 0 { Some(Vec::new()) } else { peek_end(fd, bytes)? };
        Ok(queue.map(|queue| (next, queue, unsent)))
    }

    /// Bytes that have never been sent, and will not be: the kernel goes on sending in repair mode (when a pacing timer or
    /// the completion of a packet lets it), and bytes that a snapshot calls unsent and that the client acknowledges bring
    /// a restored connection to a standstill. A closed window stops it.
    fn stop_sending(&self, window: Window) -> Result<usize, SocketError> {
        let fd = self.fd.as_fd();
        let unsent = sys::queued_bytes(fd, libc::SIOCOUTQNSD).freezing("SIOCOUTQNSD")?;
        if unsent == 0 || self.send_window.get().is_some() {
            return Ok(unsent);
        }
        let closed = [window.update_seq, 0, window.send_max, window.receive, window.receive_from];
        set_tcp(fd, libc::TCP_REPAIR_WINDOW, &closed).freezing("TCP_REPAIR_WINDOW")?;
        self.send_window.set(Some(window.send));
        sys::queued_bytes(fd, libc::SIOCOUTQNSD).freezing("SIOCOUTQNSD")
    }
}

impl AsFd for Frozen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn stop(fd: BorrowedFd<'_>) -> Result<Info, SocketError> {
    attach_drop_filter(fd).freezing("SO_ATTACH_BPF")?;
    let stopped = (|| {
        // Behind the filter, so that no FIN comes between.
        let info = Info::of(fd).freezing("TCP_INFO")?;
        info.check()?;
        set_tcp(fd, libc::TCP_REPAIR, &[REPAIR_ON]).freezing("TCP_REPAIR")?;
        Ok(info)
    })();
    if stopped.is_err() {
        detach_filter(fd).freezing("SO_DETACH_FILTER")?;
    }
    stopped
}

/// Sequence number at the end of the receive queue, and the queue.
fn receive_queue(
    fd: BorrowedFd<'_>,
    read_before: &[u8],
    limit: usize,
) -> Result<Option<(u32, Vec<u8>)>, SocketError> {
    select_queue(fd, RECEIVE_QUEUE)?;
    let next = sequence(fd)?;
    let waiting = rustix::io::ioctl_fionread(fd).freezing("SIOCINQ")?;
    let waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
    let bytes = read_before.len().saturating_add(waiting);
    if bytes > limit {
        return Err(NotPortable::TooMuchQueued { bytes, limit }.into());
    }
    let mut queue = Vec::with_capacity(bytes);
    queue.extend_from_slice(read_before);
    if waiting > 0 {
        peek(fd, &mut queue, waiting)?;
    }
    Ok((queue.len() == bytes).then_some((next, queue)))
}

fn select_queue(fd: BorrowedFd<'_>, queue: u32) -> Result<(), SocketError> {
    set_tcp(fd, libc::TCP_REPAIR_QUEUE, &[queue]).freezing("TCP_REPAIR_QUEUE")
}

fn sequence(fd: BorrowedFd<'_>) -> Result<u32, SocketError> {
    let [next] = tcp(fd, libc::TCP_QUEUE_SEQ).freezing("TCP_QUEUE_SEQ")?;
    Ok(next)
}

/// Appends up to `bytes` bytes of the selected queue.
fn peek(fd: BorrowedFd<'_>, queue: &mut Vec<u8>, bytes: usize) -> Result<(), SocketError> {
    queue.reserve_exact(bytes);
    let before = queue.len();
    recv(fd, spare_capacity(queue), RecvFlags::PEEK | RecvFlags::DONTWAIT).freezing("reading a queue")?;
    // The allocator may have given more room than was asked for.
    queue.truncate(before + bytes);
    Ok(())
}

/// The last `bytes` bytes of the send queue; `None` if there are less. A kernel keeps a segment whole until all of it is
/// acknowledged, so that the queue may begin before the first byte which the client has not acknowledged. Taken from there, each
/// byte would travel to another one's number.
fn peek_end(fd: BorrowedFd<'_>, bytes: usize) -> Result<Option<Vec<u8>>, SocketError> {
    let mut room = bytes + SEGMENT_BYTES;
    loop {
        let mut queue = Vec::with_capacity(room);
        peek(fd, &mut queue, room)?;
        if queue.len() < room {
            return Ok(queue.len().checked_sub(bytes).map(|acknowledged| queue.split_off(acknowledged)));
        }
        // There may be more.
        room *= 2;
    }
}

/// Refuses a connection on which something came that a snapshot cannot hold.
fn quiet(fd: BorrowedFd<'_>) -> Result<(), SocketError> {
    let watched = PollFlags::RDHUP | PollFlags::PRI | PollFlags::ERR | PollFlags::HUP;
    let mut fds = [PollFd::from_borrowed_fd(fd, watched)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).freezing("poll")?;
    let seen = fds[0].revents();
    if seen.intersects(PollFlags::RDHUP | PollFlags::ERR | PollFlags::HUP) {
        return Err(NotPortable::ClientEnded.into());
    }
    if seen.contains(PollFlags::PRI) {
        return Err(NotPortable::Urgent.into());
    }
    Ok(())
}

fn link_local(address: SocketAddr) -> Result<(), NotPortable> {
    match address.ip() {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => Err(NotPortable::LinkLocal(address)),
        _ => Ok(()),
    }
}
