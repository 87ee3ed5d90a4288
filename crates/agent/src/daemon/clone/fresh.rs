//! A clone before it lives, and what is told of its answer.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use http::Response;
use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{self, Restored, TcpState};
use plimsoll_origin::OriginBody;
use plimsoll_wire::cloning::CloneRole;
use plimsoll_wire::message::{AnswerReport, Conn};

use super::super::head::Outline;
use super::super::serve::Answer;
use super::frames::FrameSink;
use super::shared::{CloneRoom, CloneShared};

/// A clone that does not live yet.
pub(super) struct FreshClone {
    pub(super) conn: Conn,
    pub(super) flow: Flow,
    pub(super) number: u64,
    pub(super) restored: Restored,
    /// Most bytes of a packet.
    pub(super) mss: u16,
    pub(super) role: CloneRole,
    /// Whether others wait for the client's acknowledgment of its answer.
    pub(super) followed: bool,
    /// When it was made, and in which state, if it waits for its turn.
    pub(super) ahead: Option<(Instant, TcpState)>,
    /// Of the request, and of others behind it if it keeps the connection.
    pub(super) head: Vec<u8>,
    pub(super) outline: Outline,
    /// The rest that it sends, of an answer that has begun.
    pub(super) rest: Option<Response<OriginBody>>,
    pub(super) _room: CloneRoom,
}

/// How long packets may be under way to a client that says nothing, once the link is lost.
pub(super) const HELD: Duration = Duration::from_secs(1);

/// Whether a clone is cut off: the original's process may be dead, and hold the packets of the client, who may wait for the rest without a word.
pub(super) struct CutOff<'a> {
    sink: &'a FrameSink,
    lost_at: Cell<Option<Instant>>,
}

impl<'a> CutOff<'a> {
    pub(super) fn new(sink: &'a FrameSink) -> Self {
        Self { sink, lost_at: Cell::new(None) }
    }

    /// Whether it is so, if `is_unanswered` says that packets are under way and none has come for [`HELD`].
    pub(super) fn is_now(&self, is_unanswered: impl Fn() -> bool) -> bool {
        if !self.sink.is_lost() {
            return false;
        }
        let lost_at = self.lost_at.get().unwrap_or_else(Instant::now);
        self.lost_at.set(Some(lost_at));
        lost_at.elapsed() >= HELD && is_unanswered()
    }

    /// Ends when the clone of this number is cut off, while it answers.
    pub(super) async fn ends(&self, shared: &CloneShared, flow: &Flow, number: u64) {
        const LOOK: Duration = Duration::from_millis(250);
        while !self.is_now(|| shared.clones.is_unanswered(flow, number, HELD)) {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Waits until the client has acknowledged everything. False when it makes no progress for this long, or the clone is gone or cut off.
pub(super) async fn all_taken(
    socket: BorrowedFd<'_>,
    limit: Duration,
    cut_off: &CutOff<'_>,
    is_here: impl Fn() -> bool,
) -> bool {
    const FIRST_PAUSE: Duration = Duration::from_millis(2);
    const LONGEST_PAUSE: Duration = Duration::from_millis(250);
    let is_unanswered = || matches!(tcp::is_unanswered(socket, HELD), Ok(true));
    let mut least_bytes = usize::MAX;
    let mut progress_at = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match tcp::unacknowledged_bytes(socket) {
            Ok(0) => return true,
            Ok(bytes) if bytes < least_bytes => (least_bytes, progress_at) = (bytes, Instant::now()),
            Ok(_) => {}
            Err(_) => return false,
        }
        if progress_at.elapsed() >= limit || !is_here() || cut_off.is_now(is_unanswered) {
            return false;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether a clone whose client has everything is all that is left of the connection. The original says when it has gone on; if its link is lost
/// before, its process may have died with the socket frozen, of which the kernel tells nobody.
pub(super) async fn is_left_alone(
    shared: &CloneShared,
    sink: &FrameSink,
    is_here: impl Fn() -> bool,
) -> bool {
    const PAUSE: Duration = Duration::from_millis(2);
    // One that stands still says nothing, and its link is lost after this time-out.
    let until = Instant::now() + 2 * shared.config.link_timeout;
    while is_here() && Instant::now() < until {
        if sink.is_lost() {
            return true;
        }
        tokio::time::sleep(PAUSE).await;
    }
    false
}

pub(super) fn report(answer: Answer, began_at: Instant) -> AnswerReport {
    let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let total_us = micros(began_at.elapsed());
    let first_byte_us =
        answer.first_byte_at.map_or(total_us, |at| micros(at.saturating_duration_since(began_at)));
    AnswerReport {
        request: 0,
        status: answer.status,
        complete: answer.complete,
        content_bytes: answer.content_bytes,
        first_byte_us,
        total_us,
    }
}
