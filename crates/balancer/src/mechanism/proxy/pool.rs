//! Connections of one worker to the back-ends, kept for the next request: of whatever type, TCP the first.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use crate::backend::Backend;
use crate::host_names::UnresolvedHost;
use crate::net::deadline::Deadlines;
use crate::net::halves::BackendIo;

/// A connection to a back-end.
#[derive(Debug)]
pub(crate) struct BackendConnection<B> {
    pub(crate) stream: B,
    pub(crate) backend: Arc<Backend>,
    _permit: OwnedSemaphorePermit,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NoConnection {
    /// The back-end's limit on connections is reached, and stayed so.
    Limit,
    /// It could not be opened.
    Failed(io::Error),
}

struct Idle<B> {
    connection: BackendConnection<B>,
    since_ms: u64,
}

/// Idle connections by back-end, the one used last on top.
pub(crate) struct Pool<B> {
    idle: RefCell<Vec<Vec<Idle<B>>>>,
    deadlines: Rc<Deadlines>,
}

impl<B: BackendIo> Pool<B> {
    pub(crate) fn new(deadlines: Rc<Deadlines>) -> Self {
        Self { idle: RefCell::default(), deadlines }
    }

    /// An idle connection to `backend` that is still open, if there is one. With `surely`, for requests that must not be
    /// sent twice, the system is asked whether the back-end has closed it this very moment.
    pub(crate) fn take(&self, backend: &Arc<Backend>, surely: bool) -> Option<BackendConnection<B>> {
        let mut idle = self.idle.borrow_mut();
        let stack = idle.get_mut(backend.id.index())?;
        while let Some(Idle { connection, .. }) = stack.pop() {
            if Arc::ptr_eq(&connection.backend, backend) && connection.stream.is_open(surely) {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose last response was read to its end, unless someone waits for its place.
    pub(crate) fn put(&self, connection: BackendConnection<B>) {
        let backend = &connection.backend;
        if backend.is_retired() || backend.waiting.load(Ordering::Relaxed) > 0 {
            return;
        }
        let index = backend.id.index();
        let mut idle = self.idle.borrow_mut();
        if idle.len() <= index {
            idle.resize_with(index + 1, Vec::new);
        }
        idle[index].push(Idle { connection, since_ms: self.deadlines.now_ms() });
    }

    /// Closes connections that were idle for too long, lead to a removed back-end, or take a place that
    /// another worker needs.
    pub(crate) fn sweep(&self, backend_idle: Duration) {
        let most_ms = u64::try_from(backend_idle.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.deadlines.now_ms();
        for stack in self.idle.borrow_mut().iter_mut() {
            let mut wanted = stack.last().map_or(0, |i| i.connection.backend.waiting.load(Ordering::Relaxed));
            stack.retain(|idle| {
                let given_up = wanted > 0;
                wanted = wanted.saturating_sub(1);
                // A connection that the back-end closed is closed here too, not only when it would be used.
                !given_up
                    && idle.connection.stream.is_open(false)
                    && !idle.connection.backend.is_retired()
                    && now_ms.saturating_sub(idle.since_ms) < most_ms
            });
        }
    }
}

/// Opens a connection to `backend`, within its limit. Waits this long for its place, and as long for the back-end.
pub(crate) async fn connect<B: BackendIo>(
    backend: &Arc<Backend>,
    wait: Duration,
) -> Result<BackendConnection<B>, NoConnection> {
    let nowhere = |error: &UnresolvedHost| {
        NoConnection::Failed(io::Error::new(io::ErrorKind::NotFound, error.to_string()))
    };
    let address = *backend.address.as_ref().map_err(nowhere)?;
    let permit = match Arc::clone(&backend.permits).try_acquire_owned() {
        Ok(permit) => permit,
        Err(_) => wait_for_permit(backend, wait).await?,
    };
    let open = tokio::time::timeout(wait, B::open(address, backend.tls.as_ref()));
    let stream = open.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let stream = stream.map_err(NoConnection::Failed)?;
    Ok(BackendConnection { stream, backend: Arc::clone(backend), _permit: permit })
}

async fn wait_for_permit(
    backend: &Arc<Backend>,
    wait: Duration,
) -> Result<OwnedSemaphorePermit, NoConnection> {
    struct Waits<'a>(&'a Backend);
    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
    backend.waiting.fetch_add(1, Ordering::Relaxed);
    let _waits = Waits(backend);
    let permit = tokio::time::timeout(wait, Arc::clone(&backend.permits).acquire_owned());
    permit.await.ok().and_then(Result::ok).ok_or(NoConnection::Limit)
}
