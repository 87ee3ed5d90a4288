//! What is known of a request beside its bytes.

use std::net::SocketAddr;

use plimsoll_config::{
    ClassesConfig, CompressionConfig, DynamicPattern, Forwarded, ForwardedField, TargetKey, UpgradeProtocol,
};

use super::target_hash::TargetHash;
use crate::routing::Routing;

/// What rewriting needs to know besides the bytes.
pub(crate) struct RequestContext<'a> {
    /// Which pool takes a request, where that is not always the first one; what follows is of that one.
    pub(crate) routing: Option<&'a Routing>,
    /// What a policy takes for the target.
    pub(crate) key: &'a TargetKey,
    /// How its identity is computed.
    pub(crate) hash: &'a TargetHash,
    /// Which requests are computed, whatever their method.
    pub(crate) dynamic: &'a [DynamicPattern],
    /// Which classes requests have.
    pub(crate) classes: Option<&'a ClassesConfig>,
    /// Fields allowed.
    pub(crate) fields: usize,
    /// Protocols to which the client may change.
    pub(crate) upgrades: &'a [UpgradeProtocol],
    /// The address to which the client has connected: the host, where the client names none.
    pub(crate) own: &'a dyn Fn() -> Option<SocketAddr>,
    /// The peer's address as text.
    pub(crate) peer: &'a [u8],
    /// Whether the peer's forwarding fields are believed.
    pub(crate) trusted: bool,
    /// Which responses are compressed, where some are.
    pub(crate) compression: Option<&'a CompressionConfig>,
    /// What back-ends are told in the field `Forwarded`.
    pub(crate) forwarded: &'a Forwarded,
    /// Whether the request has come by HTTP/2.
    pub(crate) http2: bool,
    /// Whether the request has come under TLS.
    pub(crate) secure: bool,
    /// Fields that say who the client is, as its certificate says.
    pub(crate) identity: Option<&'a [u8]>,
}

/// With its defaults.
static FORWARDED: Forwarded =
    Forwarded { trusted: Vec::new(), field: ForwardedField::Off, by: None, via: false };

impl RequestContext<'_> {
    /// Of a request by HTTP/1.1 from a stranger at 192.0.2.1, where nothing is configured: for tests and fuzz targets.
    pub(crate) fn plain() -> Self {
        Self {
            routing: None,
            key: &TargetKey::PathQuery,
            hash: &TargetHash::PLAIN,
            dynamic: &[],
            classes: None,
            fields: 50,
            upgrades: &[],
            compression: None,
            own: &|| None,
            peer: b"192.0.2.1",
            trusted: false,
            forwarded: &FORWARDED,
            http2: false,
            secure: false,
            identity: None,
        }
    }
}
