//! Requests that wait for room under the admission limit, first come, first served.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use plimsoll_policy::Request;
use tokio::sync::oneshot;

use super::{Assignment, Dispatch};

type Sender = oneshot::Sender<Option<Assignment>>;

/// The queue.
#[derive(Default)]
pub(super) struct Waiting {
    queue: BTreeMap<u64, (Request, Sender)>,
    next_id: u64,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&mut self, request: Request) -> (u64, oneshot::Receiver<Option<Assignment>>) {
        let (sender, receiver) = oneshot::channel();
        let id = self.next_id;
        self.next_id += 1;
        self.queue.insert(id, (request, sender));
        (id, receiver)
    }

    pub(super) fn pop(&mut self) -> Option<(Request, Sender)> {
        self.queue.pop_first().map(|(_, waiter)| waiter)
    }

    /// Takes out a request that waits no longer; whether it still did.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        self.queue.remove(&id).is_some()
    }
}

/// A place in the queue. Dropping it leaves the queue.
pub(crate) struct Ticket {
    dispatch: Arc<Dispatch>,
    id: u64,
    receiver: oneshot::Receiver<Option<Assignment>>,
}

impl Ticket {
    pub(super) fn new(
        dispatch: &Arc<Dispatch>,
        id: u64,
        receiver: oneshot::Receiver<Option<Assignment>>,
    ) -> Self {
        Self { dispatch: Arc::clone(dispatch), id, receiver }
    }

    /// Ready with the assignment once there is room, or with `None` when no back-end can take the request.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Assignment>> {
        std::pin::Pin::new(&mut self.receiver).poll(cx).map(|result| result.ok().flatten())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.dispatch.lock();
        let refused = state.waiting.remove(self.id);
        state.counts.refused += u64::from(refused);
    }
}
