//! From settings to what rustls serves by.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::{NoClientAuth, ProducesTickets, ServerConfig, WebPkiClientVerifier};
use rustls::{SupportedProtocolVersion, version};

use crate::authorities::TrustedAuthorities;
use crate::certificate::Certificate;
use crate::server_names::ServerNames;

/// The oldest version of TLS that clients may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldestTls {
    /// TLS 1.2, RFC 5246, with forward secrecy and authenticated encryption alone.
    V1_2,
    /// TLS 1.3, RFC 8446.
    V1_3,
}

/// Whether clients need certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCheck {
    /// They are not asked for one.
    None,
    /// They are asked, and may have none; one that no authority has signed ends the handshake.
    Optional(TrustedAuthorities),
    /// They need one.
    Required(TrustedAuthorities),
}

/// The keys of session tickets (RFC 5077; RFC 8446, section 4.6.1): all workers have the same, so a client can resume at any of
/// them, and after a reload. They are random, and change every six hours; a ticket is good for up to twelve.
#[derive(Clone)]
pub struct TicketKeys(Arc<dyn ProducesTickets>);

impl TicketKeys {
    /// New ones.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new() -> Result<Self, rustls::Error> {
        rustls::crypto::ring::Ticketer::new().map(Self)
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys(..)")
    }
}

/// How clients are served.
#[derive(Debug, Clone, Copy)]
pub struct ServerSettings<'a> {
    /// At least one; the first one is for clients that ask for no name, or for one that nobody has.
    pub certificates: &'a [Certificate],
    /// The oldest version.
    pub oldest: OldestTls,
    /// Whether clients need certificates.
    pub clients: &'a ClientCheck,
    /// What is spoken inside, the best first (ALPN, RFC 7301); empty: nothing is said.
    pub protocols: &'a [&'static [u8]],
}

impl ServerSettings<'_> {
    /// What rustls serves by.
    ///
    /// # Errors
    /// When authorities cannot be used for checks.
    pub fn build(&self, tickets: &TicketKeys) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(self.versions())?;
        let verifier = match self.clients {
            ClientCheck::None => Arc::new(NoClientAuth),
            ClientCheck::Optional(by) => checked(by, provider, true)?,
            ClientCheck::Required(by) => checked(by, provider, false)?,
        };
        let names = Arc::new(ServerNames::new(self.certificates));
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(names);
        config.ticketer = Arc::clone(&tickets.0);
        config.alpn_protocols = self.protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }

    fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        static FROM_1_2: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        static FROM_1_3: [&SupportedProtocolVersion; 1] = [&version::TLS13];
        match self.oldest {
            OldestTls::V1_2 => &FROM_1_2,
            OldestTls::V1_3 => &FROM_1_3,
        }
    }
}

fn checked(
    by: &TrustedAuthorities,
    provider: Arc<CryptoProvider>,
    may_be_absent: bool,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, rustls::Error> {
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(&by.roots), provider);
    let builder = if may_be_absent { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(|error| rustls::Error::General(error.to_string()))
}
