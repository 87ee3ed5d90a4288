//! The part of an origin that answers requests, however they come in: by its own listener or through the agent.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts as Head;
use http::{HeaderValue, Response};
use tokio::sync::{Semaphore, watch};

use super::body::{OriginAccess, OriginBody};
use super::config::OriginConfig;
use super::connection::Shared;
use super::error::OriginError;
use super::own_memory::OriginMemory;
use super::respond::Responder;
use super::stats::{Counters, OriginStats};
use super::store::Store;

/// Answers requests. It has the contents, the cache, the emulated disk and CPU, and the limits of connections; clones
/// share all of these.
#[derive(Debug, Clone)]
pub struct OriginService {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Arc<Store>,
    pub(super) counters: Arc<Counters>,
    /// One for each connection that listeners may have open.
    pub(super) permits: Arc<Semaphore>,
    pub(super) drain_timeout: Duration,
}

impl OriginService {
    /// Makes a service from its settings. Its cache starts empty.
    ///
    /// # Errors
    /// When the cache policy is unknown, or the name cannot stand in a header.
    pub fn new(config: OriginConfig) -> Result<Self, OriginError> {
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
        let store = Store::new(
            &config.cache_policy,
            config.cache_bytes,
            config.cache_object_limit_bytes,
            config.disk,
            // Each connection has one request at a time; reads beyond that number are of requests that were given up.
            max_connections,
            Arc::clone(&counters),
        )?;
        let store = Arc::new(store.with_peers(config.peers.clone()));
        if let Some(peers) = &config.peers {
            peers.attach(Arc::new(OriginMemory::new(&config.source, &store)));
        }
        let responder =
            Responder::new(config.source, Arc::clone(&store), config.cpu, name, Arc::clone(&counters));
        let shared = Arc::new(Shared {
            responder,
            gauge: config.gauge,
            head_timeout: config.head_timeout,
            write_timeout: config.write_timeout,
            paused: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
        });
        let permits = Arc::new(Semaphore::new(max_connections));
        Ok(Self { shared, store, counters, permits, drain_timeout: config.drain_timeout })
    }

    /// Answers a request without a body.
    pub async fn answer(&self, head: &Head) -> Response<OriginBody> {
        let access = OriginAccess::begin(&self.shared.gauge);
        // An error means that nobody can pause any more.
        drop(self.shared.paused.subscribe().wait_for(|paused| !paused).await);
        let mut response = self.shared.responder.respond_to(head).await;
        response.body_mut().belongs_to(access);
        response
    }

    /// The counts so far, of requests by all ways.
    #[must_use]
    pub fn stats(&self) -> OriginStats {
        self.store.stats()
    }
}
