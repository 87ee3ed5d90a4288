//! The listener, and what holds an origin together.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::config::OriginConfig;
use super::connection;
use super::error::OriginError;
use super::service::OriginService;
use super::stats::{Counters, OriginStats};

/// Pause after a connection could not be accepted, such as for want of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// An origin that listens. Connections are served from [`Origin::serve`] on.
#[derive(Debug)]
pub struct Origin {
    listener: TcpListener,
    handle: OriginHandle,
}

/// What can be done with an origin while it serves, from any thread.
#[derive(Debug, Clone)]
pub struct OriginHandle {
    address: SocketAddr,
    service: OriginService,
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
        self.service.stats()
    }

    /// Makes the origin a back-end that hangs: connections are accepted and requests read, and none is answered until
    /// [`OriginHandle::resume`]. Responses under way go on.
    pub fn pause(&self) {
        self.service.shared.paused.send_replace(true);
    }

    /// Ends [`OriginHandle::pause`]; what waited is answered.
    pub fn resume(&self) {
        self.service.shared.paused.send_replace(false);
    }
}

impl Origin {
    /// Listens on `address`; port 0 takes a free one. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be had, or the configuration names an unknown cache policy or an unusable name.
    pub async fn bind(config: OriginConfig, address: SocketAddr) -> Result<Self, OriginError> {
        let service = OriginService::new(config)?;
        let listen = |error| OriginError::Listen { address, error };
        Self::listen(service, TcpListener::bind(address).await.map_err(listen)?).map_err(listen)
    }

    /// Listens for a service that may have other ways in. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the socket's address cannot be had.
    pub fn listen(service: OriginService, listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, handle: OriginHandle { address, service } })
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
        let Self { listener, handle: OriginHandle { service, .. } } = self;
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let (stream, permit) = tokio::select! {
                () = shutdown.as_mut() => break,
                accepted = accept(&listener, &service.permits) => accepted,
                // Whoever ended makes room in the set.
                Some(_) = connections.join_next() => continue,
            };
            service.counters.connections.add(1);
            let open = Open(Arc::clone(&service.counters), permit);
            let shared = Arc::clone(&service.shared);
            connections.spawn(async move {
                let _open = open;
                connection::serve(stream, &shared).await;
            });
        }
        drop(listener);
        service.shared.stopping.send_replace(true);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        if timeout(service.drain_timeout, all_ended).await.is_err() {
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
