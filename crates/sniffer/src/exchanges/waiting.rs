//! The requests of a connection that wait for their answers.

use std::collections::VecDeque;

use super::exchange::SeenExchange;

/// Most requests of a connection that are kept while they wait.
const MOST_WAITING: usize = 64;
/// Most requests of a connection that are counted while they wait, so that answers are not taken for those of others.
const MOST_COUNTED: usize = 256;

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct UnansweredRequest {
    /// Whether its answer has no body.
    pub(super) is_head: bool,
    /// Whether others may have passed before it that were not seen.
    pub(super) after_gap: bool,
    /// How far the server had come when it passed.
    pub(super) server_at: u64,
    /// `None` where it was passed on, as too many wait.
    pub(super) exchange: Option<Box<SeenExchange>>,
}

/// All of them, the oldest first.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests {
    queue: VecDeque<UnansweredRequest>,
    /// Whether others may have passed after the last one that were not seen.
    pub(super) more_behind: bool,
}

impl WaitingRequests {
    pub(super) fn push(&mut self, request: UnansweredRequest, done: &mut dyn FnMut(SeenExchange)) {
        self.queue.push_back(request);
        let oldest = self.queue.len().checked_sub(MOST_WAITING + 1);
        if let Some(exchange) = oldest.and_then(|at| self.queue[at].exchange.take()) {
            done(*exchange);
        }
        if self.queue.len() > MOST_COUNTED {
            self.queue.pop_front();
            if let Some(first) = self.queue.front_mut() {
                first.after_gap = true;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the first one is known to ask for no body.
    pub(super) fn first_is_head(&self) -> bool {
        self.queue.front().is_some_and(|first| first.is_head)
    }

    /// Takes the first one, to which the next answer belongs; `None` where that may belong to one that was not seen.
    pub(super) fn answered(&mut self) -> Option<UnansweredRequest> {
        self.queue.pop_front_if(|first| !first.after_gap)
    }

    /// Whether no more than `count` requests can be without an answer.
    pub(super) fn are_surely(&self, count: usize) -> bool {
        self.queue.len() == count && !self.more_behind && !self.queue.iter().any(|request| request.after_gap)
    }

    /// Passes all on without their answers. `unread_until` is how far the server has come, where it may have
    /// answered them.
    pub(super) fn give_up(&mut self, unread_until: Option<u64>, done: &mut dyn FnMut(SeenExchange)) {
        for request in self.queue.drain(..) {
            if let Some(mut exchange) = request.exchange {
                exchange.unread = unread_until.is_some_and(|reached| reached > request.server_at);
                done(*exchange);
            }
        }
    }
}
