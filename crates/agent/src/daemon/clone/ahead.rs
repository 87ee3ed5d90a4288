//! Clones that are made ahead: while the first of several pipelined requests is answered, the nodes of the next ones make theirs,
//! which answer in turn.

use std::collections::VecDeque;

use plimsoll_datapath::tcp::TcpState;
use plimsoll_wire::cloning::{CloneRole, FromClone};

use super::cloning::{CloneAnswer, Cloning};
use super::counters::CloneCounters;
use super::peer_link::PendingClone;
use super::under_way::{NextClone, UnderWay};

/// A clone that was asked for ahead, and the bytes of its request.
pub(super) type AheadClones = VecDeque<(PendingClone, usize)>;

impl Cloning<'_> {
    /// Asks for clones of these requests, whose heads begin `input`.
    pub(super) fn ask_ahead(&self, next: &[NextClone], state: &[u8], mut input: &[u8]) -> AheadClones {
        let mut asked = AheadClones::new();
        for NextClone { bytes, link } in next {
            let Some((head, after)) = input.split_at_checked(*bytes) else { break };
            let Some(pending) = link.ask(state, head, None, (CloneRole::Ahead, !after.is_empty())) else {
                break;
            };
            CloneCounters::count(&self.entered.shared.counters.cloned);
            asked.push_back((pending, *bytes));
            input = after;
        }
        asked
    }

    /// Waits until the client has the answers of the clone that is there, and of those that were made ahead. Returns the last of
    /// them, the bytes of the requests behind the first one, and the last clone. `state` is brought up to where the last one began.
    pub(super) async fn answered_in_turn(
        &self,
        mut pending: PendingClone,
        ahead: AheadClones,
        state: &mut TcpState,
        under_way: &mut UnderWay<'_>,
    ) -> Result<(CloneAnswer, usize, PendingClone), &'static str> {
        let not_begun = "its clone did not begin";
        let mut answer = self.answered(&mut pending, state).await?.ok_or(not_begun)?;
        under_way.answered(answer.status, answer.content_bytes);
        let mut taken_bytes = 0;
        for (mut next, bytes) in ahead {
            if !answer.keep {
                break;
            }
            // Nothing is in doubt yet: one that is not there is done without.
            let Some(FromClone::Cloned { .. }) = next.hear().await else { break };
            self.catch_up(state, answer.end)?;
            self.entered.shared.router.number(state).map_err(|_| "the packet router lost it")?;
            if !next.begin(state.send_next, state.window.send) {
                break;
            }
            // The clone before goes, as this one replaces it.
            pending = next;
            let Some(next) = self.answered(&mut pending, state).await? else { break };
            answer = next;
            taken_bytes += bytes;
            under_way.answered(answer.status, answer.content_bytes);
        }
        Ok((answer, taken_bytes, pending))
    }
}
