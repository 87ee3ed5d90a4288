//! The configuration of the live system: one TOML file, checked as a whole before anything uses it.
//!
//! Every key is declared once, in `sections`. The struct for the live system, the reader, defaults, the JSON
//! schema, the reference in the documentation and the comparison on reload follow from it. [`Config::load`]
//! reports all errors of a file at once, each with its place, its dotted key and what would be right.
//! [`Config::diff`] tells what a reload changes.

mod address;
mod config;
mod declare;
mod diff;
mod effective;
mod error;
mod keys;
mod message;
mod path;
mod read;
mod reader;
mod reference;
mod schema;
mod sections;
mod value;

pub use address::{HostPort, IpNet};
pub use config::Config;
pub use diff::{BackendChange, Changes, KeyChange};
pub use error::{ConfigError, ConfigErrors, FilePosition};
pub use sections::{
    AccessLog, AccessLogFormat, Admin, AdmissionConfig, AdmissionLimitConfig, BackendConfig, BackendName,
    BackendTlsConfig, CertificateConfig, ClassFile, ClassesConfig, ClientCertificates, DecisionLogConfig,
    DirectAttach, DirectConfig, DirectVia, DiscoveryConfig, DiscoveryTransport, DynamicPattern,
    EjectionConfig, FailoverConfig, Forwarded, HandoffConfig, HashKey, HealthConfig, HealthProbe,
    HttpsRedirect, Limits, ListenerConfig, ListenerProtocol, LoadInformationConfig, LoadSource,
    MechanismKind, OldestTlsConfig, OnFailure, OnStop, PartitionBy, PartitionsConfig, PeerConfig,
    PeersConfig, Placement, PolicyConfig, ShadowConfig, TargetConfig, TargetKey, Timeouts, TlsConfig,
    WhenFull, admin_token, class_costs,
};
pub use value::{ConfigValue, size};
