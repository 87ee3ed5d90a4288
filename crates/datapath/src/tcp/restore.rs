//! Putting a connection into this kernel.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use plimsoll_wire::{Flow, TcpState};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, bind, connect, connect_unspec, getsockname, ipproto,
    send, socket_with, sockopt,
};

use super::error::{RestoreError, Step};
use super::freeze::Frozen;
use super::{
    RECEIVE_QUEUE, REPAIR_OFF, REPAIR_OFF_SILENTLY, REPAIR_ON, SEND_QUEUE, attach_drop_filter, detach_filter,
    set_tcp, sys, tcp,
};

/// Codes of `TCP_REPAIR_OPTIONS`, which are the kinds of TCP options.
const OPTION_MSS: u32 = 2;
const OPTION_WINDOW: u32 = 3;
const OPTION_SACK: u32 = 4;
const OPTION_TIMESTAMPS: u32 = 8;

/// Largest value that `TCP_MAXSEG` takes, and smallest.
const MAXSEG_RANGE: (u16, u16) = (88, 32_767);

/// Up to this window, segments of the window's size are better than segments of half of it (the kernel's `TCP_MSS_DEFAULT`).
const TINY_WINDOW_BYTES: u32 = 536;

/// What the timestamps take of each segment.
const TIMESTAMP_BYTES: u32 = 12;

/// What a socket buffer has room for beyond the queue that it must hold (the kernel doubles the sum).
const BUFFER_SPARE_BYTES: usize = 256 << 10;

/// Largest receive queue that the buffer which a socket begins with surely holds.
const SMALL_RECEIVE_BYTES: usize = 16 << 10;

/// `SO_BUF_LOCK`: which buffers' sizes the kernel does not adapt because they were set by hand.
const SO_BUF_LOCK: i32 = 72;

/// The timestamp clock's step at a restore: its resolution (one), times two because the lowest bit is its unit.
const TIMESTAMP_STEP: u32 = 2;

/// By how much the clock of the machine that has answered meanwhile may have gained on ours, in the timestamps' milliseconds.
/// A timestamp may be too high by this without harm, but not too low by any.
const DRIFT_PER_S_MS: u32 = 1;
const DRIFT_MOST_MS: u32 = 60_000;

/// A connection that is in this kernel but neither sends nor takes anything yet. Dropped, it is gone, silently.
#[derive(Debug)]
pub struct Restored {
    fd: OwnedFd,
    unsent: Vec<u8>,
    in_flight: bool,
    buffers_set: bool,
}

/// Makes a socket with this state: not blocking, closed on exec, `TCP_NODELAY`.
///
/// # Errors
///
/// See [`RestoreError`]. Nothing is left behind.
pub fn restore(state: &TcpState) -> Result<Restored, RestoreError> {
    let received_from = state.receive_queue_start();
    let fd = connected(&state.flow, state.send_acknowledged(), received_from, Some(segment_bytes(state)))?;
    // The kernel cleared the lowest bit of what it reported: one step on, no timestamp is below one that the client has seen.
    furnish(state, state.timestamp.map(|timestamp| timestamp.wrapping_add(TIMESTAMP_STEP)), fd)
}

/// Brings a frozen connection to a later state, on the same descriptor: what another machine has done on it meanwhile, as its
/// client's packets tell. The send queue may be filled again, and so may the receive queue, whose unread bytes are gone.
/// `state.timestamp` says only whether there are timestamps: the frozen socket's clock has run on.
///
/// # Errors
///
/// See [`RestoreError`]. The connection is gone then, silently.
pub fn fast_forward(frozen: Frozen, state: &TcpState) -> Result<Restored, RestoreError> {
    let (frozen_for, ahead) = (frozen.frozen_for(), frozen.ahead);
    advance(frozen.into_fd(), frozen_for, ahead, state)
}

impl Frozen {
    /// Gives a later state of this connection, to which another machine has brought it, the timestamp with which yet another one
    /// can go on: none of the packets before has a later one.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn stamp(&mut self, state: &mut TcpState) -> Result<(), RestoreError> {
        if state.timestamp.is_some() {
            state.timestamp = Some(later_timestamp(self.as_fd(), self.frozen_for(), self.ahead)?);
            self.ahead = self.ahead.wrapping_add(2 * TIMESTAMP_STEP);
        }
        Ok(())
    }

    /// So many machines have had the connection one after the other whose sockets were made ahead: each is three steps further.
    pub fn passed_ahead(&mut self, machines: u32) {
        self.ahead = self.ahead.wrapping_add(machines.wrapping_mul(3 * TIMESTAMP_STEP));
    }

    /// Has the connection send nothing: a frozen one sends again what its client has not acknowledged. The timestamps of a machine
    /// that has restored it are behind this machine's by as long as the state took to get there, so that after each of these packets
    /// the other machine's are too old for the client (RFC 7323, section 5.3). A socket of the same ends without anything to
    /// send takes its place, on the same descriptor, and drops what comes.
    ///
    /// [`Frozen::thaw`] goes back to `state`: the snapshot, but in its receive queue only what has not been read from the socket.
    /// There are no other snapshots afterwards.
    ///
    /// # Errors
    ///
    /// The kernel's. The connection can be thawed or brought to a later state all the same.
    pub fn silence(&mut self, state: TcpState) -> Result<(), RestoreError> {
        let ends = [(SEND_QUEUE, state.send_next), (RECEIVE_QUEUE, state.receive_next)];
        let flow = state.flow;
        self.silenced = Some(Box::new(state));
        disconnect(self.as_fd())?;
        connect_at(self.as_fd(), &flow, ends, None)
    }

    /// The connection goes on as if nothing had happened. What the client has sent meanwhile it sends again; a window
    /// probe makes it repeat its latest acknowledgment and window at once, which nothing else would before a timer runs
    /// out (`TCP_REPAIR_OFF` rather than `TCP_REPAIR_OFF_NO_WP`). `SO_REUSEADDR` is on afterwards. One that was silenced begins
    /// anew to learn how fast it may send.
    ///
    /// # Errors
    ///
    /// The kernel's; the connection is gone then.
    pub fn thaw(mut self) -> io::Result<OwnedFd> {
        match self.silenced.take() {
            Some(state) => fast_forward(self, &state).map_err(io::Error::other)?.activate(),
            None => self.resume(),
        }
    }
}

/// Ends a connection in repair mode: silently.
fn disconnect(fd: BorrowedFd<'_>) -> Result<(), RestoreError> {
    connect_unspec(fd).restoring("disconnecting")?;
    // In repair mode the kernel notes that the connection was aborted, which the next read would tell.
    let _aborted = sockopt::socket_error(fd).restoring("SO_ERROR")?;
    Ok(())
}

/// A timestamp that no machine is ahead of which has had the connection since this one stopped; `ahead` was given away.
fn later_timestamp(fd: BorrowedFd<'_>, stopped_for: Duration, ahead: u32) -> Result<u32, RestoreError> {
    let [now] = tcp(fd, libc::TCP_TIMESTAMP).restoring("TCP_TIMESTAMP")?;
    let stopped_for_s = u32::try_from(stopped_for.as_secs()).unwrap_or(u32::MAX);
    let drift = stopped_for_s.saturating_mul(DRIFT_PER_S_MS).min(DRIFT_MOST_MS).wrapping_mul(2);
    // Two steps: the other machine has taken one.
    Ok(now.wrapping_add(2 * TIMESTAMP_STEP).wrapping_add(drift).wrapping_add(ahead))
}

fn advance(
    fd: OwnedFd,
    stopped_for: Duration,
    ahead: u32,
    state: &TcpState,
) -> Result<Restored, RestoreError> {
    let timestamp = state.timestamp.map(|_| later_timestamp(fd.as_fd(), stopped_for, ahead)).transpose()?;
    disconnect(fd.as_fd())?;
    let ends = [(SEND_QUEUE, state.send_acknowledged()), (RECEIVE_QUEUE, state.receive_queue_start())];
    connect_at(fd.as_fd(), &state.flow, ends, Some(segment_bytes(state)))?;
    // A socket that is bound already keeps its port, but its address may have been the kernel's choice.
    let local = getsockname(&fd).restoring("getsockname")?;
    let local =
        SocketAddr::try_from(local).map(|local| SocketAddr::new(local.ip().to_canonical(), local.port()));
    if local != Ok(state.flow.vip) {
        return Err(RestoreError::NotLocal(state.flow.vip));
    }
    furnish(state, timestamp, fd)
}

/// Gives a connected socket in repair mode everything but its sequence numbers.
fn furnish(state: &TcpState, timestamp: Option<u32>, fd: OwnedFd) -> Result<Restored, RestoreError> {
    set_options(state, timestamp, fd.as_fd())?;
    let sent_bytes = state.send_queue.len().saturating_sub(state.unsent_bytes);
    let (sent, unsent) = state.send_queue.split_at(sent_bytes);
    let buffers_set = fill_queues(state, fd.as_fd(), sent)?;
    let window = &state.window;
    let window = [window.update_seq, window.send, window.send_max, window.receive, window.receive_from];
    set_tcp(fd.as_fd(), libc::TCP_REPAIR_WINDOW, &window).restoring("TCP_REPAIR_WINDOW")?;
    sockopt::set_tcp_nodelay(&fd, true).restoring("TCP_NODELAY")?;
    Ok(Restored { fd, unsent: unsent.to_vec(), in_flight: !sent.is_empty(), buffers_set })
}

/// The segment size to connect with. A kernel bounds it to half of the largest window that the client has announced; here
/// the connect comes before the window is known. A segment that is larger than the window would wait for the timer that
/// probes closed windows, and so would each one after it. When the client announces more, the kernel starts from
/// `OPTION_MSS`.
fn segment_bytes(state: &TcpState) -> u16 {
    let window = state.window.send_max;
    let bound = if window > TINY_WINDOW_BYTES { window / 2 } else { window };
    if bound == 0 {
        return state.mss;
    }
    let option_bytes = if state.timestamp.is_some() { TIMESTAMP_BYTES } else { 0 };
    state.mss.min(u16::try_from(bound.saturating_add(option_bytes)).unwrap_or(u16::MAX))
}

fn set_options(state: &TcpState, timestamp: Option<u32>, fd: BorrowedFd<'_>) -> Result<(), RestoreError> {
    // Without scaling the scales are 0; left out, ours would be what the kernel proposes to new connections.
    let (client_scale, our_scale) = state.window_scales.unwrap_or_default();
    let mut options = [0; 8];
    let scales = u32::from(our_scale) << 16 | u32::from(client_scale);
    options[..4].copy_from_slice(&[OPTION_MSS, u32::from(state.mss), OPTION_WINDOW, scales]);
    let mut len = 4;
    if state.sack {
        options[len] = OPTION_SACK;
        len += 2;
    }
    if timestamp.is_some() {
        options[len] = OPTION_TIMESTAMPS;
        len += 2;
    }
    set_tcp(fd, libc::TCP_REPAIR_OPTIONS, &options[..len]).restoring("TCP_REPAIR_OPTIONS")?;
    if let Some(timestamp) = timestamp {
        set_tcp(fd, libc::TCP_TIMESTAMP, &[timestamp]).restoring("TCP_TIMESTAMP")?;
    }
    Ok(())
}

/// Fills the receive queue, and the send queue with what has been sent; makes room for the rest. Whether buffers had
/// to be made larger.
fn fill_queues(state: &TcpState, fd: BorrowedFd<'_>, sent: &[u8]) -> Result<bool, RestoreError> {
    let to_send_bytes = state.send_queue.len();
    let received_bytes = state.receive_queue.len();
    if to_send_bytes > 0 {
        let room = to_send_bytes + BUFFER_SPARE_BYTES;
        sockopt::set_socket_send_buffer_size_force(fd, room).restoring("SO_SNDBUFFORCE")?;
    }
    if received_bytes > SMALL_RECEIVE_BYTES {
        let room = received_bytes + BUFFER_SPARE_BYTES;
        sockopt::set_socket_recv_buffer_size_force(fd, room).restoring("SO_RCVBUFFORCE")?;
    }
    // The receive queue has been selected last.
    send_all(fd, &state.receive_queue).restoring("filling the receive queue")?;
    if !sent.is_empty() {
        set_tcp(fd, libc::TCP_REPAIR_QUEUE, &[SEND_QUEUE]).restoring("TCP_REPAIR_QUEUE")?;
        send_all(fd, sent).restoring("filling the send queue")?;
    }
    Ok(to_send_bytes > 0 || received_bytes > SMALL_RECEIVE_BYTES)
}

impl Restored {
    /// Brings the connection, which does not live yet, to a later state, as [`fast_forward`] does: another machine has had it for
    /// so long.
    ///
    /// # Errors
    ///
    /// See [`RestoreError`]. The connection is gone then, silently.
    pub fn advance(self, elsewhere_for: Duration, state: &TcpState) -> Result<Self, RestoreError> {
        advance(self.fd, elsewhere_for, 0, state)
    }

    /// The connection lives: what was never sent is sent, what the client sends is taken. `SO_REUSEADDR` is on, so that a
    /// listener may take the port while the connection is there.
    ///
    /// # Errors
    ///
    /// The kernel's. The client has been sent a RST then, or nothing.
    pub fn activate(self) -> io::Result<OwnedFd> {
        let fd = self.fd.as_fd();
        detach_filter(fd)?;
        // The filter drops acknowledgments as well, which a client that has received everything does not repeat: a window
        // probe makes it do so, where otherwise the connection would stand still until the retransmission timer runs out.
        let repair = if self.in_flight { REPAIR_OFF } else { REPAIR_OFF_SILENTLY };
        set_tcp(fd, libc::TCP_REPAIR, &[repair])?;
        let started = self.start(fd);
        if started.is_err() {
            // An ordinary close would end the answer as if it were whole.
            sockopt::set_socket_linger(fd, Some(Duration::ZERO))?;
        }
        started.map(|()| self.fd)
    }

    fn start(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        // Leaving repair mode cleared it.
        sockopt::set_socket_reuseaddr(fd, true)?;
        if !self.unsent.is_empty() {
            send_all(fd, &self.unsent)?;
        }
        if self.buffers_set {
            // The kernel adapts the buffers' sizes again.
            sys::set_option(fd, libc::SOL_SOCKET, SO_BUF_LOCK, &[0])?;
        }
        Ok(())
    }
}

impl AsFd for Restored {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Ends a connection that no kernel has any more: sends the client a RST with the sequence number `send_next`, which it
/// accepts at once only if that is the next one that it expects (RFC 5961, section 3.2), so the highest one that it has
/// acknowledged. `receive_next` is the one that we expect from it.
///
/// # Errors
///
/// See [`RestoreError`]; no RST was sent.
pub fn reset(flow: &Flow, send_next: u32, receive_next: u32) -> Result<(), RestoreError> {
    let fd = connected(flow, send_next, receive_next, None)?;
    set_tcp(fd.as_fd(), libc::TCP_REPAIR, &[REPAIR_OFF_SILENTLY]).restoring("TCP_REPAIR")?;
    sockopt::set_socket_linger(&fd, Some(Duration::ZERO)).restoring("SO_LINGER")
}

/// Has the client of a connection that no kernel has any more tell its sequence numbers, in a packet that does not reach this
/// machine's sockets if the flow leads elsewhere. It gets a window probe with wrong numbers, which it answers by its right
/// ones (RFC 9293, section 3.10.7.4), but not more often than twice a second. `salt` is another one at each attempt: wrong
/// numbers may be right by chance.
///
/// # Errors
///
/// See [`RestoreError`]; nothing was sent.
pub fn ask_numbers(flow: &Flow, salt: u32) -> Result<(), RestoreError> {
    let (seq, ack) = wrong_numbers(salt);
    let fd = connected(flow, seq, ack, None)?;
    // The filter stays: nothing that comes is taken for what this socket expects.
    set_tcp(fd.as_fd(), libc::TCP_REPAIR, &[REPAIR_OFF]).restoring("TCP_REPAIR")?;
    // Closed in repair mode, it says nothing more.
    set_tcp(fd.as_fd(), libc::TCP_REPAIR, &[REPAIR_ON]).restoring("TCP_REPAIR")
}

/// A sequence number and an acknowledgment number for a client to correct.
pub(crate) fn wrong_numbers(salt: u32) -> (u32, u32) {
    let spread = salt.wrapping_mul(0x9e37_79b9);
    (spread, !spread)
}

/// A socket in repair mode with these ends and sequence numbers, its receive queue selected, which takes nothing.
fn connected(
    flow: &Flow,
    send_next: u32,
    receive_next: u32,
    mss: Option<u16>,
) -> Result<OwnedFd, RestoreError> {
    let family = if flow.vip.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let owned = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)).restoring("socket")?;
    let fd = owned.as_fd();
    set_tcp(fd, libc::TCP_REPAIR, &[REPAIR_ON]).restoring("TCP_REPAIR")?;
    // A segment that the client sends again while the queues are being filled would be taken for the bytes to come.
    attach_drop_filter(fd).restoring("SO_ATTACH_BPF")?;
    connect_at(fd, flow, [(SEND_QUEUE, send_next), (RECEIVE_QUEUE, receive_next)], mss)?;
    Ok(owned)
}

/// Binds an unconnected socket in repair mode, unless it is bound, and connects it with these sequence numbers of its queues, of
/// which the last one is selected then.
fn connect_at(
    fd: BorrowedFd<'_>,
    flow: &Flow,
    ends: [(u32, u32); 2],
    mss: Option<u16>,
) -> Result<(), RestoreError> {
    match bind(fd, &flow.vip) {
        // One that was connected before may have kept its port.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(bind_error(error, flow.vip)),
    }
    for (queue, next) in ends {
        set_tcp(fd, libc::TCP_REPAIR_QUEUE, &[queue]).restoring("TCP_REPAIR_QUEUE")?;
        set_tcp(fd, libc::TCP_QUEUE_SEQ, &[next]).restoring("TCP_QUEUE_SEQ")?;
    }
    if let Some(mss) = mss {
        // The connect fixes it; the option set later does not change the size of segments.
        let (least, most) = MAXSEG_RANGE;
        set_tcp(fd, libc::TCP_MAXSEG, &[u32::from(mss.clamp(least, most))]).restoring("TCP_MAXSEG")?;
    }
    connect(fd, &flow.client).map_err(|error| match error {
        Errno::ADDRNOTAVAIL => RestoreError::InUse { client: flow.client, vip: flow.vip },
        error => RestoreError::Kernel { step: "connect", source: error.into() },
    })
}

fn bind_error(error: Errno, vip: SocketAddr) -> RestoreError {
    match error {
        Errno::ADDRNOTAVAIL => RestoreError::NotLocal(vip),
        error => RestoreError::Kernel { step: "bind", source: error.into() },
    }
}

/// Writes all, or fails: a socket whose buffer was made large enough takes some of the rest at each call.
fn send_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(fd, bytes, SendFlags::NOSIGNAL)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            sent => bytes = &bytes[sent.min(bytes.len())..],
        }
    }
    Ok(())
}
