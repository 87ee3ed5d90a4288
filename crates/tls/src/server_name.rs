//! Names of hosts as TLS has them.

use rustls::pki_types::ServerName;

/// Whether a certificate can be for this: a host name, or an IP address.
#[must_use]
pub fn is_server_name(text: &str) -> bool {
    ServerName::try_from(text).is_ok()
}
