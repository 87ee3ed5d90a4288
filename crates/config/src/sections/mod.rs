//! The tables of the configuration file: each with the struct that the live system is built from.

mod admin;
mod admission;
mod backends;
mod classes;
mod compression;
mod direct;
mod discovery;
mod ejection;
mod failover;
mod field_edits;
mod forwarded;
mod handoff;
mod health;
mod http2;
mod limits;
mod load_information;
mod logs;
mod partitions;
mod peers;
mod policy;
mod pool_name;
mod pools;
mod rates;
mod redirects;
mod retry_budget;
mod root;
mod routes;
mod sticky;
mod target;
mod tls;

use crate::keys::SectionSpec;

pub use admin::{Admin, admin_token};
pub use admission::{AdmissionConfig, AdmissionLimitConfig};
pub use backends::{BackendConfig, BackendName, ListenerConfig, ListenerProtocol, ProxyProtocol};
pub use classes::{ClassFile, ClassesConfig, class_costs};
pub use compression::{CompressionConfig, ContentCoding, MediaRange};
pub use direct::{DirectAttach, DirectConfig, DirectVia, OnFailure, OnStop};
pub use discovery::{DiscoveryConfig, DiscoveryTransport};
pub use ejection::EjectionConfig;
pub use failover::FailoverConfig;
pub use field_edits::FieldEdit;
pub use forwarded::{Forwarded, ForwardedField};
pub use handoff::{HandoffConfig, Placement};
pub use health::{HealthConfig, HealthProbe};
pub use http2::Http2Config;
pub use limits::{Limits, Timeouts, UpgradeProtocol};
pub use load_information::{LoadInformationConfig, LoadSource};
pub use logs::{AccessLog, AccessLogFormat, DecisionLogConfig, WhenFull};
pub use partitions::{PartitionBy, PartitionsConfig};
pub use peers::{PeerConfig, PeersConfig};
pub use policy::{PolicyConfig, ShadowConfig};
pub use pool_name::{DEFAULT_POOL, PoolName};
pub use pools::PoolConfig;
pub(crate) use pools::{POOL_TABLES, POOLS_MAX, PoolTable};
pub use rates::RouteRate;
pub use redirects::{RedirectPiece, RedirectTarget};
pub use retry_budget::RetryBudgetConfig;
pub(crate) use root::Root;
pub use root::{MechanismKind, Unmatched};
pub(crate) use routes::ROUTES_MAX;
pub use routes::{RouteBody, RouteConfig, RouteHeader, RouteHost};
pub use sticky::{CookieSecure, SameSite, StickyConfig};
pub use target::{DynamicPattern, HashKey, TargetConfig, TargetKey};
pub use tls::{
    BackendTlsConfig, CertificateConfig, ClientCertificates, HttpsRedirect, OldestTlsConfig, TlsConfig,
};

/// Every table, in the order in which the documentation has them; the keys of the top first.
pub(crate) static SECTIONS: &[SectionSpec] = &[
    Root::SECTION,
    ListenerConfig::SECTION,
    CertificateConfig::SECTION,
    TlsConfig::SECTION,
    Http2Config::SECTION,
    BackendConfig::SECTION,
    BackendTlsConfig::SECTION,
    DiscoveryConfig::SECTION,
    PartitionsConfig::SECTION,
    PolicyConfig::SECTION,
    ShadowConfig::SECTION,
    StickyConfig::SECTION,
    TargetConfig::SECTION,
    ClassesConfig::SECTION,
    AdmissionConfig::SECTION,
    HealthConfig::SECTION,
    EjectionConfig::SECTION,
    RetryBudgetConfig::SECTION,
    Timeouts::SECTION,
    Limits::SECTION,
    Forwarded::SECTION,
    CompressionConfig::SECTION,
    PoolTable::SECTION,
    RouteConfig::SECTION,
    HandoffConfig::SECTION,
    DirectConfig::SECTION,
    FailoverConfig::SECTION,
    PeersConfig::SECTION,
    LoadInformationConfig::SECTION,
    Admin::SECTION,
    AccessLog::SECTION,
    DecisionLogConfig::SECTION,
];

/// The tables that can stand below the one of this name.
pub(crate) fn tables_below(name: &str) -> &'static [&'static str] {
    if name == PoolTable::SECTION.name { POOL_TABLES } else { &[] }
}

/// The table of this name.
pub(crate) fn section(name: &str) -> Option<&'static SectionSpec> {
    SECTIONS.iter().find(|s| s.name == name)
}
