//! The original follows a clone's answer by what the client acknowledges (triangular implicit state synchronization).

use std::time::{Duration, Instant};

use plimsoll_datapath::tcp::TcpState;
use plimsoll_datapath::{AnswerEnd, CloneEntry};
use plimsoll_wire::cloning::FromClone;
use tokio::time::timeout_at;

use super::cloning::{CloneAnswer, Cloning, Entered};
use super::counters::CloneCounters;
use super::peer_link::PendingClone;

/// How often the entry is looked at, should the packet router's report be lost.
const LOOK: Duration = Duration::from_millis(250);

impl Cloning<'_> {
    /// Waits until the client has the clone's whole answer; `None` if the clone refuses after all.
    pub(super) async fn answered(
        &self,
        pending: &mut PendingClone,
        state: &TcpState,
    ) -> Result<Option<CloneAnswer>, &'static str> {
        let Entered { shared, original, flow, .. } = &self.entered;
        if !shared.router.lead(flow, &pending.next_hop).unwrap_or(false) {
            return Err("its packets cannot be led to the clone");
        }
        original.lead(&shared.router, pending.next_hop);
        let answer = loop {
            tokio::select! {
                biased;
                said = pending.hear() => match said {
                    Some(FromClone::Ended { sent_bytes, keep, ended, .. }) if ended.complete => {
                        // Sequence numbers count modulo 2^32.
                        let end = state.send_next.wrapping_add((sent_bytes & 0xffff_ffff) as u32);
                        let (status, content_bytes) = (ended.status, ended.content_bytes);
                        break CloneAnswer { end, status, content_bytes, keep };
                    }
                    Some(FromClone::Ended { .. }) => return Err("its clone did not answer to the end"),
                    Some(FromClone::Refused { .. }) => return Ok(None),
                    Some(_) => {}
                    None => return Err("the link to its clone was lost"),
                },
                () = original.told() => drop(self.entry()?),
            }
        };
        original.ends_at(answer.end);
        match shared.router.expect(flow, answer.end) {
            Ok(AnswerEnd::Reached) => return Ok(Some(answer)),
            Ok(AnswerEnd::Ahead) => {}
            Ok(AnswerEnd::Exceeded) => return Err(self.forged()),
            Ok(AnswerEnd::Unknown) | Err(_) => return Err("the packet router lost it"),
        }
        self.acknowledged(pending, answer).await.map(Some)
    }

    /// Waits until the client has acknowledged the answer's end.
    async fn acknowledged(
        &self,
        pending: &mut PendingClone,
        answer: CloneAnswer,
    ) -> Result<CloneAnswer, &'static str> {
        let limit = self.entered.shared.config.write_timeout;
        let mut last_ack = None;
        let mut progress_at = Instant::now();
        let mut link_is_there = true;
        loop {
            let look_at = tokio::time::Instant::now() + LOOK;
            tokio::select! {
                _ = timeout_at(look_at, self.entered.original.told()) => {}
                // Nothing more is to come. The clone itself goes on without the link.
                said = pending.hear(), if link_is_there => link_is_there = said.is_some(),
            }
            let entry = self.entry()?;
            if entry.last_ack == Some(answer.end) {
                return Ok(answer);
            }
            if entry.last_ack != last_ack {
                (last_ack, progress_at) = (entry.last_ack, Instant::now());
            }
            // A clone that is there would have answered the SYN, and the client have reset this connection. One whose process was killed
            // has reset the client, which this node has not seen.
            if !link_is_there && entry.begun_anew {
                return Err("its client has begun another connection");
            }
            if progress_at.elapsed() >= limit {
                return Err("its client has not taken the answer in time");
            }
        }
    }

    /// What the packet router knows, unless that is the end.
    fn entry(&self) -> Result<CloneEntry, &'static str> {
        let Entered { shared, original, flow, .. } = &self.entered;
        let entry = shared.router.get(flow).ok().flatten().ok_or("the packet router lost it")?;
        if entry.reset || original.was_reset(entry.expected_seq) {
            CloneCounters::count(&shared.counters.client_resets);
            return Err("its client has reset it");
        }
        if entry.forged {
            return Err(self.forged());
        }
        Ok(entry)
    }

    fn forged(&self) -> &'static str {
        CloneCounters::count(&self.entered.shared.counters.forged);
        "more was acknowledged than was sent"
    }

    /// Has packets held, and brings the state up to this end of an answer, which the client has.
    pub(super) fn catch_up(&self, state: &mut TcpState, end: u32) -> Result<(), &'static str> {
        let Entered { shared, original, flow, .. } = &self.entered;
        shared.router.lead_here(flow).map_err(|_| "its packets cannot be held")?;
        original.lead_here();
        // A client that has all may have gone. Until now that went to the clone.
        let entry = self.entry()?;
        state.send_next = end;
        state.send_queue.clear();
        state.unsent_bytes = 0;
        state.window.send = entry.client_window;
        state.window.send_max = state.window.send_max.max(entry.client_window);
        Ok(())
    }
}
