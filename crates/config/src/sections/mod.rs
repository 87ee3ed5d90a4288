//! The tables of the configuration file: each with the struct that the live system is built from.

mod admin;
mod admission;
mod backends;
mod classes;
mod direct;
mod discovery;
mod ejection;
mod failover;
mod handoff;
mod health;
mod limits;
mod load_information;
mod logs;
mod partitions;
mod peers;
mod policy;
mod root;
mod target;
mod tls;

use crate::keys::SectionSpec;

pub use admin::{Admin, admin_token};
pub use admission::{AdmissionConfig, AdmissionLimitConfig};
pub use backends::{BackendConfig, BackendName, ListenerConfig, ListenerProtocol};
pub use classes::{ClassFile, ClassesConfig, class_costs};
pub use direct::{DirectAttach, DirectConfig, DirectVia, OnFailure, OnStop};
pub use discovery::{DiscoveryConfig, DiscoveryTransport};
pub use ejection::EjectionConfig;
pub use failover::FailoverConfig;
pub use handoff::{HandoffConfig, Placement};
pub use health::{HealthConfig, HealthProbe};
pub use limits::{Forwarded, Limits, Timeouts};
pub use load_information::{LoadInformationConfig, LoadSource};
pub use logs::{AccessLog, AccessLogFormat, DecisionLogConfig, WhenFull};
pub use partitions::{PartitionBy, PartitionsConfig};
pub use peers::{PeerConfig, PeersConfig};
pub use policy::{PolicyConfig, ShadowConfig};
pub use root::MechanismKind;
pub(crate) use root::Root;
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
    BackendConfig::SECTION,
    BackendTlsConfig::SECTION,
    DiscoveryConfig::SECTION,
    PartitionsConfig::SECTION,
    PolicyConfig::SECTION,
    ShadowConfig::SECTION,
    TargetConfig::SECTION,
    ClassesConfig::SECTION,
    AdmissionConfig::SECTION,
    HealthConfig::SECTION,
    EjectionConfig::SECTION,
    Timeouts::SECTION,
    Limits::SECTION,
    Forwarded::SECTION,
    HandoffConfig::SECTION,
    DirectConfig::SECTION,
    FailoverConfig::SECTION,
    PeersConfig::SECTION,
    LoadInformationConfig::SECTION,
    Admin::SECTION,
    AccessLog::SECTION,
    DecisionLogConfig::SECTION,
];

/// The table of this name.
pub(crate) fn section(name: &str) -> Option<&'static SectionSpec> {
    SECTIONS.iter().find(|s| s.name == name)
}
