//! Requests for which a back-end does not let a new connection in, and that take one which becomes free meanwhile.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::idle::{BackendConnection, BackendKey, key};
use crate::backend::Backend;

/// A connection that is not there after so long is slow: perhaps the back-end's queue of connections is full, and what the system has sent
/// was dropped. It tries again after a second.
pub(super) const SLOW_CONNECT: Duration = Duration::from_millis(100);

struct Waiter<B> {
    backend: Arc<Backend>,
    takes: oneshot::Sender<BackendConnection<B>>,
}

/// Those of one worker, by back-end, the one that waits longest first.
pub(super) struct Freed<B>(RefCell<BTreeMap<BackendKey, VecDeque<Waiter<B>>>>);

impl<B> Default for Freed<B> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<B> Freed<B> {
    /// Waits for one to `backend`.
    pub(super) fn next(&self, backend: &Arc<Backend>) -> oneshot::Receiver<BackendConnection<B>> {
        let (takes, taken) = oneshot::channel();
        let mut waiters = self.0.borrow_mut();
        let queue = waiters.entry(key(backend)).or_default();
        while queue.front().is_some_and(|waiter| waiter.takes.is_closed()) {
            queue.pop_front();
        }
        queue.push_back(Waiter { backend: Arc::clone(backend), takes });
        taken
    }

    /// The same, but for ever where none may be used.
    pub(super) async fn next_if(
        &self,
        backend: &Arc<Backend>,
        may_use: bool,
    ) -> Result<BackendConnection<B>, oneshot::error::RecvError> {
        if may_use { self.next(backend).await } else { std::future::pending().await }
    }

    /// Gives a free connection to whoever waits for it; back if nobody does.
    pub(super) fn give(&self, connection: BackendConnection<B>) -> Option<BackendConnection<B>> {
        let mut waiters = self.0.borrow_mut();
        if waiters.is_empty() {
            return Some(connection);
        }
        let key = key(&connection.backend);
        let mut given = Some(connection);
        let Some(queue) = waiters.get_mut(&key) else { return given };
        while let Some(connection) = given.take() {
            let Some(waiter) = queue.pop_front() else {
                given = Some(connection);
                break;
            };
            // Others wait for one that was removed, or that has come in its place.
            let is_its = Arc::ptr_eq(&waiter.backend, &connection.backend);
            given = if is_its { waiter.takes.send(connection).err() } else { Some(connection) };
        }
        if queue.is_empty() {
            waiters.remove(&key);
        }
        given
    }
}
