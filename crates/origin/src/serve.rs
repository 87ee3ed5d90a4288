//! The origin as a server: it listens, accepts connections, serves them, and stops.

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

/// Pause after a failure to accept a connection, such as for lack of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// An origin that listens. [`Origin::serve`] accepts and serves connections.
#[derive(Debug)]
pub struct Origin {
    listener: TcpListener,
    handle: OriginHandle,
}

/// Observes and controls an origin while it serves, from any thread.
#[derive(Debug, Clone)]
pub struct OriginHandle {
    address: SocketAddr,
    service: OriginService,
}

impl OriginHandle {
    /// The address that the origin listens on; in place of port 0, with the port that it got.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The counts so far.
    #[must_use]
    pub fn stats(&self) -> OriginStats {
        self.service.stats()
    }

    /// Makes the origin behave like a back-end that hangs: it accepts connections and reads requests, but answers none
    /// until [`OriginHandle::resume`]. Responses under way go on.
    pub fn pause(&self) {
        self.service.shared.paused.send_replace(true);
    }

    /// Ends [`OriginHandle::pause`]; the requests that waited are answered.
    pub fn resume(&self) {
        self.service.shared.paused.send_replace(false);
    }
}

impl Origin {
    /// Listens on `address`; port 0 takes a free one. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the system does not let it listen on the address, the cache policy is unknown, or the name cannot stand in a
    /// header.
    pub async fn bind(config: OriginConfig, address: SocketAddr) -> Result<Self, OriginError> {
        let service = OriginService::new(config)?;
        let listen = |error| OriginError::Listen { address, error };
        Self::listen(service, TcpListener::bind(address).await.map_err(listen)?).map_err(listen)
    }

    /// An origin from a service, which may also answer requests that come in elsewhere, and a listener. Must be called
    /// within a tokio runtime.
    ///
    /// # Errors
    /// When the system does not tell the listener's address.
    pub fn listen(service: OriginService, listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, handle: OriginHandle { address, service } })
    }

    /// The address that it listens on; in place of port 0, with the port that it got.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.address
    }

    /// The counts so far.
    #[must_use]
    pub fn stats(&self) -> OriginStats {
        self.handle.stats()
    }

    /// A handle. It stays usable after [`Origin::serve`] has taken the origin.
    #[must_use]
    pub fn handle(&self) -> OriginHandle {
        self.handle.clone()
    }

    /// Serves until `shutdown` completes. Then accepts no more connections, closes idle ones, and gives requests under way
    /// the time [`OriginConfig::drain_timeout`] to end. Dropping the future cuts all connections.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, handle: OriginHandle { service, .. } } = self;
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let (stream, permit) = tokio::select! {
                () = shutdown.as_mut() => break,
                accepted = accept(&listener, &service.permits) => accepted,
                // Removes the ended connection from the set.
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

/// Counts a connection as open until it is dropped.
struct Open(Arc<Counters>, #[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections_closed.add(1);
    }
}

/// Waits until one more connection is allowed, and accepts it.
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
