//! The configuration after all checks, from which the live system is built. Every value is valid.

use std::path::PathBuf;

use plimsoll_tls::{Certificate, ClientCheck, ClientTls};

use crate::sections::{
    AccessLog, Admin, AdmissionConfig, BackendConfig, BackendTlsConfig, ClassesConfig, DecisionLogConfig,
    DirectConfig, DiscoveryConfig, EjectionConfig, FailoverConfig, Forwarded, HandoffConfig, HealthConfig,
    Limits, ListenerConfig, LoadInformationConfig, MechanismKind, PartitionsConfig, PeersConfig,
    PolicyConfig, ShadowConfig, TargetConfig, Timeouts, TlsConfig,
};

/// A whole configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where clients connect; at least one.
    pub listeners: Vec<ListenerConfig>,
    /// Certificates for listeners with TLS; at least one if there is such a listener.
    pub certificates: Vec<Certificate>,
    /// How clients are served that speak TLS.
    pub tls: TlsConfig,
    /// Whether these clients need certificates.
    pub client_check: ClientCheck,
    /// Who answers, names unique; at least one without `discovery`.
    pub backends: Vec<BackendConfig>,
    /// How TLS is spoken to back-ends.
    pub backend_tls: BackendTlsConfig,
    /// The same, ready for use; there if some back-end has `tls`.
    pub client_tls: Option<ClientTls>,
    /// Who tells of further back-ends.
    pub discovery: Option<DiscoveryConfig>,
    /// Parts of the data that only some back-ends hold.
    pub partitions: Option<PartitionsConfig>,
    /// How a back-end is chosen.
    pub policy: PolicyConfig,
    /// A policy that is scored beside the live one.
    pub shadow: Option<ShadowConfig>,
    /// How a chosen back-end gets the request.
    pub mechanism: MechanismKind,
    /// How connections are handed off; always there if `mechanism` needs it.
    pub handoff: Option<HandoffConfig>,
    /// How connections are distributed at layer 4; always there if `mechanism` needs it.
    pub direct: Option<DirectConfig>,
    /// When another front-end may take the virtual address over.
    pub failover: Option<FailoverConfig>,
    /// Other front-ends, which set the same boundaries.
    pub peers: Option<PeersConfig>,
    /// Where policies' loads come from.
    pub load_information: LoadInformationConfig,
    /// What a policy takes for the target.
    pub target: TargetConfig,
    /// Classes of requests and what they cost.
    pub classes: Option<ClassesConfig>,
    /// Admission limit and queue.
    pub admission: AdmissionConfig,
    /// Active health checks.
    pub health: HealthConfig,
    /// When a back-end that fails requests is left out.
    pub ejection: EjectionConfig,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Bounds on what clients and back-ends may send.
    pub limits: Limits,
    /// Proxies whose `X-Forwarded-*` fields are trusted.
    pub forwarded: Forwarded,
    /// The admin API; `None` when switched off.
    pub admin: Option<Admin>,
    /// The access log.
    pub access_log: Option<AccessLog>,
    /// The log of every policy input.
    pub decision_log: Option<DecisionLogConfig>,
    /// Threads that serve clients, at least 1; by default one per CPU.
    pub workers: usize,
    /// The user that the front-end becomes, by name or number; none: it chooses.
    pub user: Option<String>,
    /// Whether the kernel is to refuse system calls that the front-end never makes.
    pub seccomp: bool,
    /// Other files that were read for this configuration, and are read again with it.
    pub files: Vec<PathBuf>,
}
