//! TLS to back-ends: what rustls connects by.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

use crate::authorities::TrustedAuthorities;
use crate::certificate::Certificate;
use crate::server_verifier::{BackendVerifier, Believed};

/// How back-ends are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerCheck {
    /// By certificates that these authorities have signed, for the name that is asked for.
    By(TrustedAuthorities),
    /// By certificates that the system's authorities have signed.
    BySystem,
    /// Not at all: whoever answers is taken for the back-end.
    None,
}

/// TLS to back-ends, ready for use. Two are equal if they were made from equal settings.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    /// The same, for connections on which HTTP/2 is wanted.
    http2_config: Arc<ClientConfig>,
    check: ServerCheck,
    own: Option<Certificate>,
}

impl ClientTls {
    /// With this check, and a certificate of our own.
    ///
    /// # Errors
    /// In words: the system has no authorities, or rustls does not take what it is given.
    pub fn new(check: ServerCheck, own: Option<Certificate>) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let believed = match &check {
            ServerCheck::By(authorities) => Believed::ByAuthorities {
                by_webpki: verifier(&authorities.roots, Arc::clone(&provider))?,
                named: Arc::clone(&authorities.certificates),
            },
            ServerCheck::BySystem => Believed::ByAuthorities {
                by_webpki: verifier(&Arc::new(system_roots()?), Arc::clone(&provider))?,
                named: Arc::default(),
            },
            ServerCheck::None => Believed::All,
        };
        let verifier = Arc::new(BackendVerifier { believed, provider });
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let config = match &own {
            None => builder.with_no_client_auth(),
            Some(own) => builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                Arc::clone(&own.certified),
            ))),
        };
        let mut http2_config = config.clone();
        http2_config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { config: Arc::new(config), http2_config: Arc::new(http2_config), check, own })
    }

    /// What rustls connects by.
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The same, for a connection on which HTTP/2 is wanted (ALPN `h2`).
    #[must_use]
    pub fn http2_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.http2_config)
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("check", &self.check).finish_non_exhaustive()
    }
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        (&self.check, &self.own) == (&other.check, &other.own)
    }
}

impl Eq for ClientTls {}

fn verifier(
    roots: &Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), provider);
    builder.build().map_err(|error| error.to_string())
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(format!("the system has no certificates of authorities{why}"));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::TestAuthority;

    use super::*;

    #[test]
    fn equal_settings_are_equal() {
        let authority = TestAuthority::new();
        let read = || ServerCheck::By(TrustedAuthorities::read(&authority.file()).unwrap());
        let made = |check| ClientTls::new(check, None).unwrap();
        assert_eq!(made(read()), made(read()));
        assert_ne!(made(read()), made(ServerCheck::None));
    }
}
