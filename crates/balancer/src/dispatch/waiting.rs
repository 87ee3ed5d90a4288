//! The owners of requests in the core's queue.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::refusal_reason::RefusalReason;

/// Tells one that waits: what it gets, or why it gets nothing.
pub(super) type Sender<A> = oneshot::Sender<Result<A, RefusalReason>>;

/// By the number of the request.
pub(super) struct Senders<A>(BTreeMap<u64, Sender<A>>);

impl<A> Default for Senders<A> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<A> Senders<A> {
    pub(super) fn add(&mut self, number: u64) -> oneshot::Receiver<Result<A, RefusalReason>> {
        let (sender, receiver) = oneshot::channel();
        self.0.insert(number, sender);
        receiver
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Sender<A>> {
        self.0.remove(&number)
    }

    pub(super) fn put_back(&mut self, number: u64, sender: Sender<A>) {
        self.0.insert(number, sender);
    }

    /// Removes a request's owner. Returns whether there was one.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        self.0.remove(&number).is_some()
    }
}
