//! The configuration after all checks, from which the live system is built. Every value is valid.

use std::path::PathBuf;

use plimsoll_tls::{Certificate, ClientCheck, ClientTls};

use crate::sections::{
    AccessLog, Admin, AdmissionConfig, BackendConfig, BackendTlsConfig, ClassesConfig, CompressionConfig,
    DecisionLogConfig, DirectConfig, DiscoveryConfig, EjectionConfig, FailoverConfig, Forwarded,
    HandoffConfig, HealthConfig, Http2Config, Limits, ListenerConfig, LoadInformationConfig, LoadSource,
    MechanismKind, PartitionsConfig, PeersConfig, PolicyConfig, PoolConfig, RetryBudgetConfig, RouteConfig,
    ShadowConfig, StickyConfig, TargetConfig, Timeouts, TlsConfig, Unmatched,
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
    /// HTTP/2 with clients.
    pub http2: Http2Config,
    /// Who answers of the pool `default`, names unique over all pools.
    pub backends: Vec<BackendConfig>,
    /// Whether some of them, or of the other pools, is told whose connection a request has come on, so that both ends of it have to be known.
    pub tells_clients: bool,
    /// The other pools.
    pub pools: Vec<PoolConfig>,
    /// Which requests go to which pool.
    pub routes: Vec<RouteConfig>,
    /// What takes the others.
    pub unmatched: Unmatched,
    /// The route by which requests come that have this configuration; none in that of a file.
    pub taken: Option<RouteConfig>,
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
    /// Sticky sessions, which the policy then has around it.
    pub sticky: Option<StickyConfig>,
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
    /// How many retries there may be.
    pub retry_budget: RetryBudgetConfig,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Bounds on what clients and back-ends may send.
    pub limits: Limits,
    /// Proxies whose `X-Forwarded-*` fields are trusted.
    pub forwarded: Forwarded,
    /// Compression of responses; `None` where there is none.
    pub compression: Option<CompressionConfig>,
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

impl Config {
    /// The configuration as this pool has it: as that of a front-end which has no other one.
    #[must_use]
    pub fn of_pool(&self, pool: &PoolConfig) -> Self {
        let PoolConfig {
            name,
            backends,
            policy,
            sticky,
            target,
            admission,
            health,
            ejection,
            retry_budget,
            timeouts,
            limits,
            compression,
        } = pool.clone();
        let own_log = |log: &DecisionLogConfig| DecisionLogConfig {
            directory: log.directory.join(format!("pool-{name}")),
            ..log.clone()
        };
        Self {
            backends,
            pools: Vec::new(),
            routes: Vec::new(),
            policy,
            sticky,
            target,
            admission,
            health,
            ejection,
            retry_budget,
            timeouts,
            limits,
            compression,
            discovery: None,
            partitions: None,
            peers: None,
            shadow: None,
            load_information: LoadInformationConfig {
                from: LoadSource::Own,
                ..self.load_information.clone()
            },
            decision_log: self.decision_log.as_ref().map(own_log),
            ..self.clone()
        }
    }
}
