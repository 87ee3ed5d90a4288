//! The configuration after all checks: what the live system is built from. Every value here is usable as it stands.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_cache::CacheSpec;
use plimsoll_policy::params::ParamSet;
use plimsoll_policy::{PolicySpec, Weight};

mod peers;
mod target;

pub use peers::{PeerConfig, PeersConfig};
pub use target::{DynamicPattern, TargetConfig, TargetKey};

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

/// One listening address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerConfig {
    /// IPv4 or IPv6 address with port; port 0 lets the system choose.
    pub address: SocketAddr,
}

/// Name of a back-end: what logs, metrics and the admin API call it.
pub type BackendName = Arc<str>;

/// One back-end.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendConfig {
    /// Unique; letters, digits, `-`, `_` and `.`, or the address as written when the file gives no name.
    pub name: BackendName,
    /// Address literal or host name, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Share of load relative to the others; 0 takes nothing new.
    pub weight: Weight,
    /// Connections that the front-end opens to it at most, over all workers.
    pub max_connections: u32,
    /// Host and port at which its agent takes handoffs; without it, requests for it are proxied.
    pub agent: Option<(String, u16)>,
}

/// A policy with its parameters, which it takes.
#[derive(Debug, Clone)]
pub struct PolicyConfig {
    /// The policy.
    pub spec: &'static PolicySpec,
    /// Its parameters.
    pub params: ParamSet,
    /// Seed of its randomness.
    pub seed: u64,
    /// Memory cache of one back-end in bytes, for policies that model it.
    pub cache_bytes: u64,
    /// Replacement policy of that cache.
    pub cache: &'static CacheSpec,
}

impl PartialEq for PolicyConfig {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name
            && self.params == other.params
            && self.seed == other.seed
            && self.cache_bytes == other.cache_bytes
            && self.cache.name == other.cache.name
    }
}

/// A policy that runs beside the live one and moves no traffic. The `cache_bytes` and `cache` of its policy are also
/// the caches by which its and the live policy's miss ratios are predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowConfig {
    /// The policy.
    pub policy: PolicyConfig,
}

/// How a chosen back-end gets the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// The front-end passes request and response on.
    Proxy,
    /// The back-end gets the client's connection and answers the client directly.
    Handoff,
}

/// The word that the configuration has for it.
impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Proxy => "proxy",
            Self::Handoff => "handoff",
        })
    }
}

/// How connections are handed off to the agents of back-ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffConfig {
    /// What this front-end is called by agents and in the names of what it leaves in the kernel.
    pub name: String,
    /// What front-end and agents share.
    pub key: plimsoll_wire::Key,
    /// Network interfaces at which packets of clients arrive.
    pub interfaces: Vec<String>,
    /// What is placed by the policy.
    pub placement: Placement,
    /// A response expected to be smaller is proxied if its client's connection ends with it.
    pub min_bytes: u64,
    /// Connections that back-ends may have at once.
    pub flows: u32,
    /// How long an agent may take to take a connection over.
    pub take_over_timeout: Duration,
    /// Bytes of a connection's state at most; one with more under way stays where it is.
    pub state_bytes: usize,
    /// Whether to proxy when this system does not allow handoffs.
    pub fallback: bool,
}

/// What is placed by the policy when connections are handed off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Each request: a connection is handed on when its next request belongs elsewhere.
    Request,
    /// Each connection: its first request decides.
    Connection,
}

/// How many requests are let into the cluster, and what becomes of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// The limit.
    pub limit: AdmissionLimitConfig,
    /// Requests that may wait for room.
    pub queue: usize,
    /// How long a request waits at most.
    pub queue_timeout: Duration,
    /// What a refused client is told to wait, in whole seconds.
    pub retry_after_s: u32,
}

/// The admission limit as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionLimitConfig {
    /// LARD's S from `t_low` and `t_high` of the policy, or their defaults when it has none.
    Lard,
    /// This many.
    Fixed(u64),
    /// No limit.
    Unlimited,
}

/// How back-ends are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthConfig {
    /// What is asked.
    pub probe: HealthProbe,
    /// Time between checks of a healthy back-end.
    pub interval: Duration,
    /// Time between checks after one that disagreed with the present state.
    pub fast_interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Each interval is changed at random by at most this share, 0 to 1 (in per mille).
    pub jitter_permille: u16,
    /// Good answers in a row that bring a back-end up.
    pub rise: u32,
    /// Bad ones in a row, failed connections of requests included, that take it down.
    pub fall: u32,
}

/// What a health check asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthProbe {
    /// Nothing: back-ends are taken to be up.
    None,
    /// A TCP connection.
    Tcp,
    /// `GET path`, answered with a status in this range, both ends included.
    Http {
        /// Origin-form, starts with `/`.
        path: String,
        /// `Host` to send; by default the back-end's own address.
        host: Option<String>,
        /// Least good status.
        status_min: u16,
        /// Largest good status.
        status_max: u16,
    },
}

/// How long is waited for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// A client's whole request head, from its first byte.
    pub head: Duration,
    /// Between two reads or writes of a body, on either side.
    pub body: Duration,
    /// A keep-alive connection of a client without a request.
    pub idle: Duration,
    /// A kept connection to a back-end without a request.
    pub backend_idle: Duration,
    /// A connection to a back-end.
    pub connect: Duration,
    /// The first byte of a response, from the end of the request.
    pub first_byte: Duration,
    /// Requests under way when draining or stopping.
    pub drain: Duration,
}

/// Bounds on what peers may send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head (request line or status line, fields, trailers).
    pub head_bytes: usize,
    /// Fields of a head.
    pub fields: usize,
    /// Bytes of a request body; `None` for no bound.
    pub body_bytes: Option<u64>,
    /// Connections of clients at once, over all listeners.
    pub connections: usize,
    /// Requests on one client connection before it is closed.
    pub requests_per_connection: u64,
    /// How many further back-ends a request that did not reach one is offered to.
    pub retries: u32,
}

/// Whose `X-Forwarded-*` fields are believed and added to; those of others are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forwarded {
    /// Trusted proxies.
    pub trusted: Vec<IpNet>,
}

/// A block of IP addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNet {
    /// An address of the block.
    pub address: IpAddr,
    /// Leading bits that count.
    pub prefix_bits: u8,
}

impl IpNet {
    /// Whether `ip` lies in the block. An IPv4 address that came as IPv6 (`::ffff:a.b.c.d`) counts as IPv4.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let bits = |ip: IpAddr| match ip.to_canonical() {
            IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, true),
            IpAddr::V6(v6) => (v6.to_bits(), false),
        };
        let ((net, net_is_v4), (ip, ip_is_v4)) = (bits(self.address), bits(ip));
        let ignored = 128 - u32::from(self.prefix_bits);
        net_is_v4 == ip_is_v4 && (net ^ ip).checked_shr(ignored).unwrap_or(0) == 0
    }
}

/// The admin API.
#[derive(Clone, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub address: SocketAddr,
    /// Bearer token that every request must carry; always there when `address` is not loopback.
    pub token: Option<String>,
}

/// Without the token.
impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = self.token.as_ref().map(|_| "(hidden)");
        f.debug_struct("Admin").field("address", &self.address).field("token", &token).finish()
    }
}

/// The access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    /// The file, appended to and opened anew on reload; `None` is standard output.
    pub file: Option<PathBuf>,
    /// Its format.
    pub format: AccessLogFormat,
}

/// Format of the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// Combined log format of Apache and nginx.
    Combined,
    /// One JSON object a line, with policy, back-end, reason and the split of the latency.
    Json,
}

/// The log of every policy input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionLogConfig {
    /// Directory of its files.
    pub directory: PathBuf,
    /// Bytes of one file at most.
    pub file_bytes: u64,
    /// Files kept.
    pub files: usize,
    /// What happens when they are full.
    pub when_full: WhenFull,
}

/// What happens when a bounded log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest file goes.
    Rotate,
    /// Nothing more is written.
    Stop,
}
