//! What TLS handshakes go by, replaced by each reload.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use plimsoll_config::{Config, OldestTlsConfig};
use plimsoll_tls::{ClientCheck, OldestTls, ServerSettings, TicketKeys};
use rustls::ServerConfig;

/// Spoken inside, the best first.
const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

/// What connections that begin now go by. Those that are open keep theirs.
pub(crate) struct TlsServing {
    now: ArcSwapOption<ServerConfig>,
    /// The same after each reload, so that clients can resume, unless other certificates of clients are good: a session that is resumed is
    /// not checked again.
    tickets: Mutex<(ClientCheck, TicketKeys)>,
}

/// What another configuration asks for.
pub(crate) struct PreparedTls {
    config: Option<Arc<ServerConfig>>,
    tickets: (ClientCheck, TicketKeys),
}

impl TlsServing {
    /// By this configuration.
    ///
    /// # Errors
    /// What rustls does not take.
    pub(crate) fn new(config: &Config) -> Result<Self, rustls::Error> {
        let tickets = Mutex::new((config.client_check.clone(), TicketKeys::new()?));
        let serving = Self { now: ArcSwapOption::empty(), tickets };
        serving.replace(serving.prepare(config)?);
        Ok(serving)
    }

    /// What another configuration asks for; none where no listener speaks TLS.
    ///
    /// # Errors
    /// As [`TlsServing::new`].
    pub(crate) fn prepare(&self, config: &Config) -> Result<PreparedTls, rustls::Error> {
        let (check, keys) = &*self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = if *check == config.client_check { keys.clone() } else { TicketKeys::new()? };
        let is_spoken = config.listeners.iter().any(|listener| listener.tls);
        let built = is_spoken.then(|| Self::build(config, &keys)).transpose()?;
        Ok(PreparedTls { config: built, tickets: (config.client_check.clone(), keys) })
    }

    fn build(config: &Config, keys: &TicketKeys) -> Result<Arc<ServerConfig>, rustls::Error> {
        let settings = ServerSettings {
            certificates: &config.certificates,
            oldest: match config.tls.oldest {
                OldestTlsConfig::V1_2 => OldestTls::V1_2,
                OldestTlsConfig::V1_3 => OldestTls::V1_3,
            },
            clients: &config.client_check,
            protocols: if config.http2.clients { PROTOCOLS } else { &PROTOCOLS[1..] },
        };
        settings.build(keys)
    }

    /// From now on connections go by this.
    pub(crate) fn replace(&self, prepared: PreparedTls) {
        *self.tickets.lock().unwrap_or_else(PoisonError::into_inner) = prepared.tickets;
        self.now.store(prepared.config);
    }

    /// What a connection goes by that begins now.
    pub(crate) fn now(&self) -> Option<Arc<ServerConfig>> {
        self.now.load_full()
    }
}
