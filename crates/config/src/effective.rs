//! What a configuration amounts to, defaults included: for summaries, JSON and differences.

use std::fmt;
use std::path::Path;

use plimsoll_policy::params::ParamValue;
use plimsoll_policy::{AdmissionLimit, BuildContext, BuildError, Policy, Thresholds};
use serde_json::{Map, json};

use crate::model::{
    AccessLogFormat, AdmissionLimitConfig, BackendConfig, Config, HealthProbe, IpNet, Mechanism, PeerConfig,
    Placement, PolicyConfig, WhenFull,
};
use crate::value::{show_duration, show_size};

/// A value of the configuration as a user would write it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text; sizes and durations too.
    Text(String),
    /// A whole number.
    Integer(u64),
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// Several texts.
    List(Vec<String>),
    /// What is not for display.
    Secret,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(n) => n.fmt(f),
            Self::Number(x) => x.fmt(f),
            Self::Flag(b) => b.fmt(f),
            Self::List(all) => write!(f, "[{}]", all.join(", ")),
            Self::Secret => f.write_str("(hidden)"),
        }
    }
}

impl Value {
    fn json(&self) -> serde_json::Value {
        match self {
            Self::Integer(n) => json!(n),
            Self::Number(x) => json!(x),
            Self::Flag(b) => json!(b),
            Self::List(all) => json!(all),
            Self::Text(_) | Self::Secret => json!(self.to_string()),
        }
    }
}

/// Keys with their values.
pub(crate) type Entries = Vec<(&'static str, Value)>;

impl PolicyConfig {
    /// What the policy is built with.
    #[must_use]
    pub fn context(&self) -> BuildContext {
        BuildContext {
            seed: self.seed,
            cache_bytes: self.cache_bytes,
            cache: self.cache,
            ..BuildContext::default()
        }
    }

    /// Builds the policy.
    ///
    /// # Errors
    /// Never for what [`Config::load`] or [`Config::parse`] returned.
    pub fn build(&self) -> Result<Box<dyn Policy>, BuildError> {
        self.spec.build(&self.context(), &self.params)
    }

    /// The thresholds by which LARD's admission limit is computed: `t_low` and `t_high` of the policy, or 25 and 65.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        Thresholds::of(&self.params)
    }
}

impl BackendConfig {
    /// Host and port as a user would write them.
    #[must_use]
    pub fn address(&self) -> String {
        host_port(&self.host, self.port)
    }

    pub(crate) fn entries(&self) -> Entries {
        let mut out = vec![
            ("name", text(&self.name)),
            ("address", Value::Text(self.address())),
            ("weight", Value::Number(self.weight.as_f64())),
            ("max_connections", Value::Integer(self.max_connections.into())),
        ];
        if let Some((host, port)) = &self.agent {
            out.push(("agent", Value::Text(host_port(host, *port))));
        }
        out
    }
}

fn host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl fmt::Display for IpNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

impl Config {
    /// The admission limit as the front-end takes it.
    #[must_use]
    pub fn admission_limit(&self) -> AdmissionLimit {
        match self.admission.limit {
            AdmissionLimitConfig::Lard => AdmissionLimit::Lard(self.policy.thresholds()),
            AdmissionLimitConfig::Fixed(limit) => AdmissionLimit::Fixed(limit),
            AdmissionLimitConfig::Unlimited => AdmissionLimit::Unlimited,
        }
    }

    /// The configuration with all defaults, in the layout of the file, as JSON; a token is not shown.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let object = |entries: Entries| {
            let pairs = entries.into_iter().map(|(key, value)| (key.to_owned(), value.json()));
            serde_json::Value::Object(pairs.collect::<Map<_, _>>())
        };
        let mut out = Map::new();
        for (name, entries) in self.sections() {
            match (name, entries) {
                ("", entries) => {
                    out.extend(entries.into_iter().map(|(key, value)| (key.to_owned(), value.json())));
                }
                (name, entries) if !entries.is_empty() => {
                    out.insert(name.to_owned(), object(entries));
                }
                _ => {}
            }
        }
        let listeners = self.listeners.iter().map(|l| json!({ "address": l.address.to_string() }));
        out.insert("listener".to_owned(), listeners.collect());
        out.insert("backend".to_owned(), self.backends.iter().map(|b| object(b.entries())).collect());
        serde_json::Value::Object(out)
    }

    /// The tables with their effective values, without listeners and back-ends. A table that switches something on by
    /// being there has no entries when it is off.
    pub(crate) fn sections(&self) -> Vec<(&'static str, Entries)> {
        let shadow = self.shadow.as_ref().map(|s| policy_entries("policy", &s.policy));
        vec![
            ("", self.root_entries()),
            ("policy", policy_entries("name", &self.policy)),
            ("shadow", shadow.unwrap_or_default()),
            (
                "target",
                vec![
                    ("key", Value::Text(self.target.key.to_string())),
                    ("sizes", count(self.target.sizes)),
                    ("dynamic", Value::List(self.target.dynamic.iter().map(ToString::to_string).collect())),
                ],
            ),
            ("admission", self.admission_entries()),
            ("health", self.health_entries()),
            ("timeouts", self.timeout_entries()),
            ("limits", self.limit_entries()),
            (
                "forwarded",
                vec![("trusted", Value::List(self.forwarded.trusted.iter().map(IpNet::to_string).collect()))],
            ),
            ("handoff", self.handoff_entries()),
            ("peers", self.peers_entries()),
            ("admin", self.admin_entries()),
            ("access_log", self.access_entries()),
            ("decision_log", self.decision_entries()),
        ]
    }

    fn root_entries(&self) -> Entries {
        let mechanism = match self.mechanism {
            Mechanism::Proxy => "proxy",
            Mechanism::Handoff => "handoff",
        };
        vec![("workers", count(self.workers)), ("mechanism", text(mechanism))]
    }

    fn admission_entries(&self) -> Entries {
        let a = &self.admission;
        let limit = match a.limit {
            AdmissionLimitConfig::Lard => text("lard"),
            AdmissionLimitConfig::Fixed(limit) => Value::Integer(limit),
            AdmissionLimitConfig::Unlimited => text("none"),
        };
        vec![
            ("limit", limit),
            ("queue", count(a.queue)),
            ("queue_timeout", time(a.queue_timeout)),
            ("retry_after", Value::Text(format!("{}s", a.retry_after_s))),
        ]
    }

    fn health_entries(&self) -> Entries {
        let h = &self.health;
        let mut out = match &h.probe {
            HealthProbe::None => vec![("probe", text("none"))],
            HealthProbe::Tcp => vec![("probe", text("tcp"))],
            HealthProbe::Http { path, host, status_min, status_max } => {
                let mut out = vec![("probe", text("http")), ("path", text(path))];
                out.extend(host.iter().map(|host| ("host", text(host))));
                out.push(("status", Value::Text(format!("{status_min}-{status_max}"))));
                out
            }
        };
        out.extend([
            ("interval", time(h.interval)),
            ("fast_interval", time(h.fast_interval)),
            ("timeout", time(h.timeout)),
            ("jitter", Value::Number(f64::from(h.jitter_permille) / 1000.0)),
            ("rise", Value::Integer(h.rise.into())),
            ("fall", Value::Integer(h.fall.into())),
        ]);
        out
    }

    fn timeout_entries(&self) -> Entries {
        let t = &self.timeouts;
        vec![
            ("head", time(t.head)),
            ("body", time(t.body)),
            ("idle", time(t.idle)),
            ("backend_idle", time(t.backend_idle)),
            ("connect", time(t.connect)),
            ("first_byte", time(t.first_byte)),
            ("drain", time(t.drain)),
        ]
    }

    fn limit_entries(&self) -> Entries {
        let l = &self.limits;
        vec![
            ("head", bytes(l.head_bytes as u64)),
            ("fields", count(l.fields)),
            ("body", l.body_bytes.map_or_else(|| text("none"), bytes)),
            ("connections", count(l.connections)),
            ("requests_per_connection", Value::Integer(l.requests_per_connection)),
            ("retries", Value::Integer(l.retries.into())),
        ]
    }

    fn handoff_entries(&self) -> Entries {
        let Some(h) = &self.handoff else { return Vec::new() };
        let placement = match h.placement {
            Placement::Request => "request",
            Placement::Connection => "connection",
        };
        vec![
            ("name", text(&h.name)),
            ("key_file", Value::Secret),
            ("interfaces", Value::List(h.interfaces.clone())),
            ("placement", text(placement)),
            ("min_size", bytes(h.min_bytes)),
            ("flows", Value::Integer(h.flows.into())),
            ("take_over_timeout", time(h.take_over_timeout)),
            ("state_size", bytes(h.state_bytes as u64)),
            ("fallback", text(if h.fallback { "proxy" } else { "none" })),
        ]
    }

    fn peers_entries(&self) -> Entries {
        let Some(p) = &self.peers else { return Vec::new() };
        let other = |peer: &PeerConfig| format!("{}={}", peer.name, host_port(&peer.host, peer.port));
        vec![
            ("name", text(&p.name)),
            ("local", text(&p.local)),
            ("address", Value::Text(p.address.to_string())),
            ("key_file", Value::Secret),
            ("others", Value::List(p.others.iter().map(other).collect())),
            ("period", time(p.period)),
            ("keep", time(p.keep)),
        ]
    }

    fn admin_entries(&self) -> Entries {
        let Some(admin) = &self.admin else { return vec![("enabled", Value::Flag(false))] };
        let mut out =
            vec![("enabled", Value::Flag(true)), ("address", Value::Text(admin.address.to_string()))];
        out.extend(admin.token.iter().map(|_| ("token", Value::Secret)));
        out
    }

    fn access_entries(&self) -> Entries {
        let Some(log) = &self.access_log else { return Vec::new() };
        let format = match log.format {
            AccessLogFormat::Combined => "combined",
            AccessLogFormat::Json => "json",
        };
        vec![("file", log.file.as_deref().map_or_else(|| text("-"), path)), ("format", text(format))]
    }

    fn decision_entries(&self) -> Entries {
        let Some(log) = &self.decision_log else { return Vec::new() };
        let when_full = match log.when_full {
            WhenFull::Rotate => "rotate",
            WhenFull::Stop => "stop",
        };
        vec![
            ("directory", path(&log.directory)),
            ("file_size", bytes(log.file_bytes)),
            ("files", count(log.files)),
            ("when_full", text(when_full)),
        ]
    }
}

fn policy_entries(name: &'static str, policy: &PolicyConfig) -> Entries {
    let mut out = vec![
        (name, text(policy.spec.name)),
        ("seed", Value::Integer(policy.seed)),
        ("cache", bytes(policy.cache_bytes)),
        ("cache_policy", text(policy.cache.name)),
    ];
    out.extend(policy.params.iter().map(|(key, value)| (key, parameter(value))));
    out
}

/// Whole where the value is.
fn parameter(value: ParamValue) -> Value {
    value.as_u64().map_or_else(|| Value::Number(value.as_f64()), Value::Integer)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn path(path: &Path) -> Value {
    Value::Text(path.display().to_string())
}

fn count(n: usize) -> Value {
    Value::Integer(n as u64)
}

fn bytes(n: u64) -> Value {
    Value::Text(show_size(n))
}

fn time(d: std::time::Duration) -> Value {
    Value::Text(show_duration(d))
}
