//! The configuration of the live system: one TOML file, checked as a whole before anything uses it.
//!
//! Every key is declared once, in `sections`; reading, defaults, the JSON schema and the reference in the documentation
//! follow from it. [`Config::load`] reports everything that is wrong with a file at once, each with its place, its
//! dotted key and what would be right. [`Config::diff`] says what a reload changes.

mod diff;
mod effective;
mod error;
mod keys;
mod model;
mod read;
mod reader;
mod reference;
mod schema;
mod sections;
mod value;

pub use diff::{BackendChange, Changes, KeyChange};
pub use effective::Value;
pub use error::{ConfigError, ConfigErrors, Place};
pub use model::{
    AccessLog, AccessLogFormat, Admin, AdmissionConfig, AdmissionLimitConfig, BackendConfig, BackendName,
    Config, DecisionLogConfig, DynamicPattern, Forwarded, HandoffConfig, HealthConfig, HealthProbe, IpNet,
    Limits, ListenerConfig, Mechanism, PeerConfig, PeersConfig, Placement, PolicyConfig, ShadowConfig,
    TargetConfig, TargetKey, Timeouts, WhenFull,
};
pub use value::size;
