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
#[doc(hidden)]
pub mod fuzz;
mod keys;
mod message;
mod name;
mod path;
mod read;
mod reader;
mod reference;
mod schema;
mod sections;
mod value;

pub use address::{BackendPlace, HostPort, IpNet};
pub use config::Config;
pub use diff::{BackendChange, Changes, KeyChange};
pub use error::{ConfigError, ConfigErrors, FilePosition};
pub use sections::{
    AccessLog, AccessLogFormat, Admin, AdmissionConfig, AdmissionLimitConfig, BackendConfig, BackendName,
    BackendTlsConfig, CertificateConfig, ClassFile, ClassesConfig, ClientCertificates, CompressionConfig,
    ContentCoding, CookieSecure, DEFAULT_POOL, DecisionLogConfig, DirectAttach, DirectConfig, DirectVia,
    DiscoveryConfig, DiscoveryTransport, DynamicPattern, EjectionConfig, FailoverConfig, FieldEdit,
    Forwarded, ForwardedField, HandoffConfig, HashKey, HealthConfig, HealthProbe, Http2Config, HttpsRedirect,
    Limits, ListenerConfig, ListenerProtocol, LoadInformationConfig, LoadSource, MechanismKind, MediaRange,
    OldestTlsConfig, OnFailure, OnStop, PartitionBy, PartitionsConfig, PeerConfig, PeersConfig, Placement,
    PolicyConfig, PoolConfig, PoolName, ProxyProtocol, RedirectPiece, RedirectTarget, RetryBudgetConfig,
    RouteBody, RouteConfig, RouteHeader, RouteHost, RouteRate, SameSite, ShadowConfig, StickyConfig,
    TargetConfig, TargetKey, Timeouts, TlsConfig, Unmatched, UpgradeProtocol, WhenFull, admin_token,
    class_costs,
};
pub use value::{ConfigValue, size};
