//! The owners of requests in the core's queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_policy::Time;
use tokio::sync::oneshot;

use super::asks::AsksBackends;
use crate::refusal_reason::RefusalReason;

/// Tells one that waits: what it gets, or why it gets nothing.
pub(super) type Sender<A> = oneshot::Sender<Result<A, RefusalReason>>;

/// Whoever waits for one request.
pub(super) struct WaitingOwner<A> {
    pub(super) sender: Sender<A>,
    /// What asks back-ends for it.
    pub(super) asks: Option<Arc<dyn AsksBackends>>,
    /// Since when it waits.
    pub(super) since: Time,
}

/// By the number of the request.
pub(super) struct Senders<A>(BTreeMap<u64, WaitingOwner<A>>);

impl<A> Default for Senders<A> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<A> Senders<A> {
    pub(super) fn add(
        &mut self,
        number: u64,
        asks: Option<Arc<dyn AsksBackends>>,
        since: Time,
    ) -> oneshot::Receiver<Result<A, RefusalReason>> {
        let (sender, receiver) = oneshot::channel();
        self.0.insert(number, WaitingOwner { sender, asks, since });
        receiver
    }

    pub(super) fn take(&mut self, number: u64) -> Option<WaitingOwner<A>> {
        self.0.remove(&number)
    }

    /// Since when the owner of this request waits.
    pub(super) fn since(&self, number: u64) -> Option<Time> {
        Some(self.0.get(&number)?.since)
    }

    /// What asks back-ends for this request.
    pub(super) fn asks(&self, number: u64) -> Option<Arc<dyn AsksBackends>> {
        self.0.get(&number)?.asks.clone()
    }

    /// Removes a request's owner. Returns whether there was one.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        self.0.remove(&number).is_some()
    }
}
