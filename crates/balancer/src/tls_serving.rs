//! What TLS handshakes go by, replaced by each reload.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use plimsoll_config::{Config, OldestTlsConfig};
use plimsoll_tls::{OldestTls, ServerSettings, TicketKeys};
use rustls::ServerConfig;

/// Spoken inside, the best first.
const PROTOCOLS: &[&[u8]] = &[b"http/1.1"];

/// What connections that begin now go by. Those that are open keep theirs.
pub(crate) struct TlsServing {
    now: ArcSwapOption<ServerConfig>,
    /// The same after each reload, so that clients can resume.
    tickets: TicketKeys,
}

impl TlsServing {
    /// By this configuration.
    ///
    /// # Errors
    /// What rustls does not take.
    pub(crate) fn new(config: &Config) -> Result<Self, rustls::Error> {
        let serving = Self { now: ArcSwapOption::empty(), tickets: TicketKeys::new()? };
        serving.replace(serving.prepare(config)?);
        Ok(serving)
    }

    /// What another configuration asks for; none where no listener speaks TLS.
    ///
    /// # Errors
    /// As [`TlsServing::new`].
    pub(crate) fn prepare(&self, config: &Config) -> Result<Option<Arc<ServerConfig>>, rustls::Error> {
        if config.listeners.iter().all(|listener| !listener.tls) {
            return Ok(None);
        }
        let settings = ServerSettings {
            certificates: &config.certificates,
            oldest: match config.tls.oldest {
                OldestTlsConfig::V1_2 => OldestTls::V1_2,
                OldestTlsConfig::V1_3 => OldestTls::V1_3,
            },
            clients: &config.client_check,
            protocols: PROTOCOLS,
        };
        settings.build(&self.tickets).map(Some)
    }

    /// From now on connections go by this.
    pub(crate) fn replace(&self, config: Option<Arc<ServerConfig>>) {
        self.now.store(config);
    }

    /// What a connection goes by that begins now.
    pub(crate) fn now(&self) -> Option<Arc<ServerConfig>> {
        self.now.load_full()
    }
}
