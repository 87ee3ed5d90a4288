//! Connections of one worker to the back-ends, kept for the next request: of whatever type, TCP the first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::freed::{Freed, SLOW_CONNECT};
pub(crate) use super::idle::{BackendConnection, KeptFor};
use super::idle::{BackendKey, Idle, key};
use super::told::ToldConnections;
use crate::accepted::Accepted;
use crate::backend::Backend;
use crate::backend::leaves_open::LEFT_OPEN;
use crate::host_names::UnresolvedHost;
use crate::net::deadline::Deadlines;
use crate::net::halves::BackendIo;
use crate::net::proxy_protocol::ConnectionEnds;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NoConnection {
    /// The back-end's limit on connections is reached, and stayed so.
    Limit,
    /// It could not be opened.
    Failed(io::Error),
}

/// By the pool and index of a back-end, the one used last on top.
type IdleConnections<B> = BTreeMap<BackendKey, Vec<Idle<B>>>;

/// Idle connections by back-end, the one used last on top.
pub(crate) struct Pool<B: BackendIo> {
    idle: RefCell<IdleConnections<B>>,
    /// Those that are for one client's connection.
    told: RefCell<ToldConnections<B>>,
    /// Who waits for one to become free.
    freed: Freed,
    deadlines: Rc<Deadlines>,
    shared: B::Shared,
}

impl<B: BackendIo> Pool<B> {
    pub(crate) fn new(deadlines: Rc<Deadlines>) -> Self {
        let (idle, told) = (RefCell::default(), RefCell::default());
        Self { idle, told, freed: Freed::default(), deadlines, shared: B::Shared::default() }
    }

    /// An idle connection to `backend` that is still open, if there is one; where it was said to be for a client's connection, for this
    /// one.
    pub(crate) fn take(
        &self,
        backend: &Arc<Backend>,
        client: Option<&ConnectionEnds>,
        care: KeptFor,
    ) -> Option<BackendConnection<B>> {
        if backend.excess.is_expected() {
            return None;
        }
        let now_ms = self.deadlines.now_ms();
        if let Some(client) = client {
            let idle = self.told.borrow_mut().take(backend, client, care != KeptFor::Repeatable, now_ms)?;
            backend.leaves_open.saw_open(idle.left_open(now_ms));
            return idle.is_fit(care, now_ms).then(|| idle.used(now_ms));
        }
        let mut idle = self.idle.borrow_mut();
        let stack = idle.get_mut(&key(backend))?;
        if care == KeptFor::Once
            && !backend.leaves_open.is_sure()
            && let Some(oldest) = stack.first()
            && Arc::ptr_eq(&oldest.connection.backend, backend)
            && oldest.connection.stream.is_open(true)
        {
            backend.leaves_open.saw_open(oldest.left_open(now_ms));
        }
        while let Some(idle) = stack.pop() {
            if !Arc::ptr_eq(&idle.connection.backend, backend) {
                continue;
            }
            if !idle.connection.stream.is_open(care != KeptFor::Repeatable) {
                idle.note_closed(now_ms);
                continue;
            }
            if idle.is_fit(care, now_ms) {
                return Some(idle.used(now_ms));
            }
            // The others have been idle for longer; this one makes room for a new one. But the last one may show that it is left open,
            // where it takes nobody's place.
            let may_show = idle.left_open(now_ms) < LEFT_OPEN && backend.leaves_open.can_be_shown();
            if may_show && stack.is_empty() && backend.permits.available_permits() > 0 {
                stack.push(idle);
            }
            return None;
        }
        None
    }

    /// Closes what was kept for a client's connection, which has ended.
    pub(crate) fn client_ended(&self, accepted: &Accepted) {
        let mut told = self.told.borrow_mut();
        if !told.is_empty() {
            told.client_ended(&accepted.ends());
        }
    }

    /// Keeps a connection whose last response was read to its end, unless someone waits for its place.
    pub(crate) fn put(&self, mut connection: BackendConnection<B>) {
        connection.is_new = false;
        let backend = &connection.backend;
        if !connection.stream.is_reusable()
            || backend.is_retired()
            || backend.is_blocked()
            || backend.kept_places.closes()
            || backend.excess.is_expected()
            || backend.waiting.load(Ordering::Relaxed) > 0 && !self.is_awaited(backend)
        {
            return;
        }
        let key = key(backend);
        let now_ms = self.deadlines.now_ms();
        if let Some(client) = connection.client.as_deref().copied() {
            self.told.borrow_mut().put(client, Idle::now(connection, now_ms));
        } else {
            // Whoever is woken looks for it later.
            self.freed.wake(backend);
            self.idle.borrow_mut().entry(key).or_default().push(Idle::now(connection, now_ms));
        }
    }

    /// Whether a request that has a place, and is not let in, takes a connection that becomes free. Then its place is another's.
    fn is_awaited(&self, backend: &Arc<Backend>) -> bool {
        backend.leaves_open.is_sure() && self.freed.is_awaited(backend)
    }

    /// A kept connection, as soon as there is one that may be used for this. Never where that is not known: what is being opened is given
    /// up for it, so the back-end must be known to leave them open, and to be near.
    async fn freed(&self, backend: &Arc<Backend>, kept_for: Option<KeptFor>) -> BackendConnection<B> {
        let has_queue = backend.tls.is_none() && !backend.http2 && backend.is_near.load(Ordering::Relaxed);
        let Some(kept_for) = kept_for.filter(|_| has_queue) else { return std::future::pending().await };
        let wait = self.freed.begin(backend);
        loop {
            if backend.leaves_open.is_sure()
                && !backend.is_retired()
                && let Some(connection) = self.take(backend, None, kept_for)
            {
                return connection;
            }
            wait.turn().await;
        }
    }

    /// Closes connections that were idle for too long, lead to a removed back-end, or take a place that
    /// another worker needs.
    pub(crate) fn sweep(&self, backend_idle: Duration) {
        let most_ms = u64::try_from(backend_idle.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.deadlines.now_ms();
        B::sweep(&self.shared, now_ms, backend_idle);
        // A connection that the back-end closed is closed here too, not only when it would be used.
        let is_kept = |idle: &Idle<B>| {
            let (backend, idle_ms) = (&idle.connection.backend, idle.idle_ms(now_ms));
            if !idle.connection.stream.is_open(backend.leaves_open.can_be_shown()) {
                idle.note_closed(now_ms);
                return false;
            }
            backend.leaves_open.saw_open(idle.left_open(now_ms));
            !backend.is_retired()
                && !backend.is_blocked()
                && !backend.kept_places.closes()
                && !backend.excess.is_expected()
                && idle_ms < most_ms
        };
        self.idle.borrow_mut().retain(|_, stack| {
            let mut wanted = stack.last().map_or(0, |i| i.connection.backend.waiting.load(Ordering::Relaxed));
            stack.retain(|idle| {
                let given_up = wanted > 0;
                wanted = wanted.saturating_sub(1);
                !given_up && is_kept(idle)
            });
            !stack.is_empty()
        });
        self.told.borrow_mut().sweep(is_kept);
    }

    /// Opens a connection to `backend`, within its limit, for this client's connection where it is told that. Waits this long for its place, and as long for the back-end.
    /// Where that is slow to let it in, a kept connection that becomes free meanwhile is as good, if the request may use one.
    pub(crate) async fn connect(
        &self,
        backend: &Arc<Backend>,
        client: Option<&ConnectionEnds>,
        wait: Duration,
        kept_for: Option<KeptFor>,
    ) -> Result<BackendConnection<B>, NoConnection> {
        let nowhere = |error: &UnresolvedHost| {
            NoConnection::Failed(io::Error::new(io::ErrorKind::NotFound, error.to_string()))
        };
        let address = backend.address.as_ref().map_err(nowhere)?;
        let mut permit = Arc::clone(&backend.permits).try_acquire_owned();
        if permit.is_err() && client.is_some() {
            self.told.borrow_mut().make_room(backend, 1);
            permit = Arc::clone(&backend.permits).try_acquire_owned();
        }
        let permit = match permit {
            Ok(permit) => permit,
            Err(_) => wait_for_permit(backend, wait).await?,
        };
        let mut open = pin!(B::open(backend, address, client, &self.shared));
        let soon = wait.min(SLOW_CONNECT);
        let opened = match tokio::time::timeout(soon, &mut open).await {
            Ok(opened) => {
                // Read first: all workers have it in their caches.
                if opened.is_ok() && !backend.is_near.load(Ordering::Relaxed) {
                    backend.is_near.store(true, Ordering::Relaxed);
                }
                opened
            }
            Err(_) => tokio::select! {
                biased;
                opened = open => opened,
                freed = self.freed(backend, kept_for.filter(|_| client.is_none())) => return Ok(freed),
                () = tokio::time::sleep(wait - soon) => Err(io::ErrorKind::TimedOut.into()),
            },
        };
        let stream = opened.map_err(NoConnection::Failed)?;
        let client = client.map(|client| Box::new(*client));
        // A stream beside others on one connection takes no place of its own.
        let is_new = stream.is_new() && !backend.http2;
        Ok(BackendConnection {
            stream,
            backend: Arc::clone(backend),
            is_new,
            idle_ms: 0,
            client,
            _permit: permit,
        })
    }
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
    let before = backend.waiting.fetch_add(1, Ordering::Relaxed);
    let _waits = Waits(backend);
    if before >= backend.max_waiting {
        return Err(NoConnection::Limit);
    }
    let permit = tokio::time::timeout(wait, Arc::clone(&backend.permits).acquire_owned());
    permit.await.ok().and_then(Result::ok).ok_or(NoConnection::Limit)
}

#[cfg(test)]
mod tests;
