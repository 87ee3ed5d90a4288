//! The configuration of the live system: one TOML file, checked as a whole before anything uses it.

mod model;

pub use model::{
    AccessLog, AccessLogFormat, Admin, AdmissionConfig, AdmissionLimitConfig, BackendConfig, BackendName, Config,
    DecisionLogConfig, Forwarded, HealthConfig, HealthProbe, IpNet, Limits, ListenerConfig, Mechanism, PolicyConfig,
    ShadowConfig, TargetConfig, TargetKey, Timeouts, WhenFull,
};
