//! The configuration of the live system: one TOML file, checked as a whole before anything uses it.
//!
//! Every key is declared once, in `sections`: the struct that the live system is built from, reading, defaults, the JSON
//! schema, the reference in the documentation and what a reload compares follow from it. [`Config::load`] reports everything that is wrong with a file at once, each with its place, its
//! dotted key and what would be right. [`Config::diff`] says what a reload changes.

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
pub use error::{ConfigError, ConfigErrors, Place};
pub use sections::{
    AccessLog, AccessLogFormat, Admin, AdmissionConfig, AdmissionLimitConfig, BackendConfig, BackendName,
    DecisionLogConfig, DynamicPattern, Forwarded, HandoffConfig, HealthConfig, HealthProbe, Limits,
    ListenerConfig, Mechanism, PeerConfig, PeersConfig, Placement, PolicyConfig, ShadowConfig, TargetConfig,
    TargetKey, Timeouts, WhenFull,
};
pub use value::{Value, size};
