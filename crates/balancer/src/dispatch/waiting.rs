//! Who waits for a request that is in the core's queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::{Assignment, Dispatch};

pub(super) type Sender = oneshot::Sender<Option<Assignment>>;

/// By the number of the request.
#[derive(Default)]
pub(super) struct Senders(BTreeMap<u64, Sender>);

impl Senders {
    pub(super) fn add(&mut self, number: u64) -> oneshot::Receiver<Option<Assignment>> {
        let (sender, receiver) = oneshot::channel();
        self.0.insert(number, sender);
        receiver
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Sender> {
        self.0.remove(&number)
    }

    pub(super) fn put_back(&mut self, number: u64, sender: Sender) {
        self.0.insert(number, sender);
    }

    /// Forgets who waits for a request; whether anybody did.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        self.0.remove(&number).is_some()
    }
}

/// A place in the queue. Dropping it leaves the queue.
pub(crate) struct Ticket {
    dispatch: Arc<Dispatch>,
    number: u64,
    receiver: oneshot::Receiver<Option<Assignment>>,
}

impl Ticket {
    pub(super) fn new(
        dispatch: &Arc<Dispatch>,
        number: u64,
        receiver: oneshot::Receiver<Option<Assignment>>,
    ) -> Self {
        Self { dispatch: Arc::clone(dispatch), number, receiver }
    }

    /// Ready with the assignment once there is room, or with `None` when no back-end can take the request.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Assignment>> {
        std::pin::Pin::new(&mut self.receiver).poll(cx).map(|result| result.ok().flatten())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.dispatch.give_up(self.number);
    }
}
