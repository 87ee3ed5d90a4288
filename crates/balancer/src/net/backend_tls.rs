//! What TLS to a back-end goes by.

use plimsoll_tls::ClientTls;
use rustls::pki_types::ServerName;

/// How TLS is spoken to a back-end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackendTls {
    pub(crate) client: ClientTls,
    /// What its certificate must be for.
    pub(crate) name: ServerName<'static>,
}
