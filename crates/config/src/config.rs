//! The configuration after all checks: what the live system is built from. Every value here is usable as it stands.

use crate::sections::{
    AccessLog, Admin, AdmissionConfig, BackendConfig, DecisionLogConfig, Forwarded, HandoffConfig,
    HealthConfig, Limits, ListenerConfig, Mechanism, PeersConfig, PolicyConfig, ShadowConfig, TargetConfig,
    Timeouts,
};

/// A whole configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where clients connect; at least one.
    pub listeners: Vec<ListenerConfig>,
    /// Who answers; at least one, names unique.
    pub backends: Vec<BackendConfig>,
    /// How a back-end is chosen.
    pub policy: PolicyConfig,
    /// A policy that is scored beside the live one.
    pub shadow: Option<ShadowConfig>,
    /// How a chosen back-end gets the request.
    pub mechanism: Mechanism,
    /// How connections are handed off; there whenever `mechanism` asks for it.
    pub handoff: Option<HandoffConfig>,
    /// Front-ends beside this one that set the same boundaries.
    pub peers: Option<PeersConfig>,
    /// What a policy takes for the target.
    pub target: TargetConfig,
    /// How many requests are let into the cluster at once.
    pub admission: AdmissionConfig,
    /// Active health checks.
    pub health: HealthConfig,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Bounds on what clients and back-ends may send.
    pub limits: Limits,
    /// Whose `X-Forwarded-*` fields are believed.
    pub forwarded: Forwarded,
    /// The admin API; `None` when switched off.
    pub admin: Option<Admin>,
    /// The access log.
    pub access_log: Option<AccessLog>,
    /// The log of every policy input.
    pub decision_log: Option<DecisionLogConfig>,
    /// Threads that serve clients, at least 1; by default one per CPU.
    pub workers: usize,
}
