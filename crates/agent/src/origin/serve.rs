//! The listener, and what holds an origin together.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::config::{OriginConfig, OriginError};
use super::connection::{self, Shared};
use super::respond::Responder;
use super::stats::{Counters, OriginStats};
use super::store::Store;

/// Pause after a connection could not be accepted, such as for want of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// An origin that listens. Connections are served from [`Origin::serve`] on.
#[derive(Debug)]
pub struct Origin {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    drain_timeout: Duration,
    handle: OriginHandle,
}

/// What can be done with an origin while it serves, from any thread.
#[derive(Debug, Clone)]
pub struct OriginHandle {
    address: SocketAddr,
    counters: Arc<Counters>,
    store: Arc<Store>,
    shared: Arc<Shared>,
}

impl OriginHandle {
    /// Where the origin listens, with the real port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> OriginStats {
        self.store.stats()
    }

    /// Makes the origin a back-end that hangs: connections are accepted and requests read, and none is answered until
    /// [`OriginHandle::resume`]. Responses under way go on.
    pub fn pause(&self) {
        self.shared.paused.send_replace(true);
    }

    /// Ends [`OriginHandle::pause`]; what waited is answered.
    pub fn resume(&self) {
        self.shared.paused.send_replace(false);
    }
}

impl Origin {
    /// Listens on `address`; port 0 takes a free one. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be had, or the configuration names an unknown cache policy or an unusable name.
    pub async fn bind(config: OriginConfig, address: SocketAddr) -> Result<Self, OriginError> {
        let name = match &config.name {
            Some(name) => {
                let usable = !name.is_empty() && name.bytes().all(|b| (b' '..=b'~').contains(&b));
                let value = HeaderValue::from_str(name).ok().filter(|_| usable);
                Some(value.ok_or_else(|| OriginError::Name(name.clone()))?)
            }
            None => None,
        };
        let max_connections = config.max_connections.clamp(1, Semaphore::MAX_PERMITS);
        let counters = Arc::new(Counters::default());
        let store = Arc::new(Store::new(
            &config.cache_policy,
            config.cache_bytes,
            config.cache_object_limit_bytes,
            config.disk,
            // Each connection has one request at a time, so more reads than that were given up.
            max_connections,
            Arc::clone(&counters),
        )?);
        let responder =
            Responder::new(config.source, Arc::clone(&store), config.cpu, name, Arc::clone(&counters));
        let listen = |error| OriginError::Listen { address, error };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let shared = Arc::new(Shared {
            responder,
            head_timeout: config.head_timeout,
            write_timeout: config.write_timeout,
            paused: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
        });
        Ok(Self {
            listener,
            permits: Arc::new(Semaphore::new(max_connections)),
            drain_timeout: config.drain_timeout,
            handle: OriginHandle { address, counters, store, shared },
        })
    }

    /// Where it listens, with the real port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.address
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> OriginStats {
        self.handle.stats()
    }

    /// A handle to keep when the origin itself has gone to serve.
    #[must_use]
    pub fn handle(&self) -> OriginHandle {
        self.handle.clone()
    }

    /// Serves until `shutdown` is done; then accepts nothing more, closes idle connections, and gives the requests
    /// under way the time `drain_timeout` to end. Dropping the future cuts everything off.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, permits, drain_timeout, handle } = self;
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let (stream, permit) = tokio::select! {
                () = shutdown.as_mut() => break,
                accepted = accept(&listener, &permits) => accepted,
                // Whoever ended makes room in the set.
                Some(_) = connections.join_next() => continue,
            };
            handle.counters.connections.add(1);
            let open = Open(Arc::clone(&handle.counters), permit);
            let shared = Arc::clone(&handle.shared);
            connections.spawn(async move {
                let _open = open;
                connection::serve(stream, &shared).await;
            });
        }
        drop(listener);
        handle.shared.stopping.send_replace(true);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        if timeout(drain_timeout, all_ended).await.is_err() {
            tracing::warn!(connections = connections.len(), "connections were cut off");
            connections.shutdown().await;
        }
    }
}

/// A connection that counts as open as long as this lives.
struct Open(Arc<Counters>, #[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections_closed.add(1);
    }
}

/// The next connection, when there is room for one.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
            std::future::pending::<()>().await;
            continue;
        };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(AFTER_FAILURE).await;
            }
        }
    }
}
