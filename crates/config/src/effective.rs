//! Effective values of a configuration, defaults included, for summaries, JSON and differences.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_policy::AdmissionLimit;
use plimsoll_policy::estimator::ClassCost;
use plimsoll_tls::{Certificate, CertificateFiles};
use serde_json::Map;

use crate::address::BackendPlace;
use crate::config::Config;
use crate::declare::Entries;
use crate::sections::{
    Admin, AdmissionLimitConfig, BackendConfig, BackendTlsConfig, CertificateConfig, PoolConfig, PoolTable,
    Root,
};

impl BackendConfig {
    /// Where it answers, as a user would write it.
    #[must_use]
    pub fn address(&self) -> String {
        self.at.to_string()
    }

    /// The host, with its port, that health checks ask it for unless they name another one.
    #[must_use]
    pub fn authority(&self) -> String {
        match &self.at {
            BackendPlace::Host(at) => at.to_string(),
            BackendPlace::Socket(_) => "localhost".to_owned(),
        }
    }
}

impl Config {
    /// The admission limit for the front-end.
    #[must_use]
    pub fn admission_limit(&self) -> AdmissionLimit {
        match self.admission.limit {
            AdmissionLimitConfig::Adaptive => AdmissionLimit::Adaptive(self.policy.thresholds()),
            AdmissionLimitConfig::Lard => AdmissionLimit::Lard(self.policy.thresholds()),
            AdmissionLimitConfig::Fixed(limit) => AdmissionLimit::Fixed(limit),
            AdmissionLimitConfig::Unlimited => AdmissionLimit::Unlimited,
        }
    }

    /// The files of certificates, keys and authorities, which are read again when they change.
    #[must_use]
    pub fn tls_files(&self) -> Vec<&PathBuf> {
        let certificates = self.certificates.iter().map(|certificate| &certificate.files);
        let of = certificates.flat_map(|f| [Some(&f.chain), Some(&f.key), f.ocsp.as_ref()]);
        let BackendTlsConfig { authorities, chain, key, .. } = &self.backend_tls;
        of.chain([self.tls.client_authorities.as_ref(), authorities.as_ref(), chain.as_ref(), key.as_ref()])
            .flatten()
            .collect()
    }

    /// What classes of requests cost, from class 1 on; empty without a class table.
    #[must_use]
    pub fn class_costs(&self) -> Arc<[ClassCost]> {
        self.classes.as_ref().map_or_else(Arc::default, |classes| Arc::clone(&classes.file.costs))
    }

    /// The configuration with all defaults, in the layout of the file, as JSON, without the token.
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
        let listeners = self.listeners.iter().map(|l| object(l.entries()));
        out.insert("listener".to_owned(), listeners.collect());
        if !self.certificates.is_empty() {
            let certificates = self.certificates.iter().map(|c| object(certificate_entries(c)));
            out.insert("certificate".to_owned(), certificates.collect());
        }
        let backends = self.all_backends().map(|b| object(b.entries()));
        out.insert("backend".to_owned(), backends.collect());
        if !self.pools.is_empty() {
            let shown = |pool: &PoolConfig| {
                let mut shown = object(PoolTable { name: pool.name.clone() }.entries());
                for (name, entries) in pool.sections().into_iter().filter(|(_, entries)| !entries.is_empty())
                {
                    shown[name] = object(entries);
                }
                shown
            };
            out.insert("pool".to_owned(), self.pools.iter().map(shown).collect());
        }
        if !self.routes.is_empty() {
            out.insert("route".to_owned(), self.routes.iter().map(|r| object(r.entries())).collect());
        }
        serde_json::Value::Object(out)
    }

    /// The back-ends of all pools.
    pub fn all_backends(&self) -> impl Iterator<Item = &BackendConfig> {
        self.backends.iter().chain(self.pools.iter().flat_map(|pool| &pool.backends))
    }

    /// Of `[tls]`; none where no listener speaks it.
    fn tls_entries(&self) -> Entries {
        if self.listeners.iter().any(|l| l.tls) { self.tls.entries() } else { Entries::new() }
    }

    /// The tables with their effective values, without listeners, certificates and back-ends. An absent table that would
    /// switch something on has no entries.
    pub(crate) fn sections(&self) -> Vec<(&'static str, Entries)> {
        let root = Root {
            workers: self.workers,
            mechanism: self.mechanism,
            unmatched: self.unmatched.clone(),
            user: self.user.clone(),
            seccomp: self.seccomp,
        };
        vec![
            ("", root.entries()),
            ("tls", self.tls_entries()),
            ("http2", self.http2.entries()),
            (
                "backend_tls",
                if self.client_tls.is_some() { self.backend_tls.entries() } else { Entries::new() },
            ),
            ("discovery", self.discovery.as_ref().map_or_else(Entries::new, |d| d.entries())),
            ("partitions", self.partitions.as_ref().map_or_else(Entries::new, |p| p.entries())),
            ("policy", self.policy.entries("name")),
            ("shadow", self.shadow.as_ref().map_or_else(Entries::new, |s| s.policy.entries("policy"))),
            ("sticky", self.sticky.as_ref().map_or_else(Entries::new, |s| s.entries())),
            ("target", self.target.entries()),
            ("classes", self.classes.as_ref().map_or_else(Entries::new, |c| c.entries())),
            ("admission", self.admission.entries()),
            ("health", self.health.entries()),
            ("ejection", self.ejection.entries()),
            ("retry_budget", self.retry_budget.entries()),
            ("timeouts", self.timeouts.entries()),
            ("limits", self.limits.entries()),
            ("forwarded", self.forwarded.entries()),
            ("compression", self.compression.as_ref().map_or_else(Entries::new, |c| c.entries())),
            ("handoff", self.handoff.as_ref().map_or_else(Entries::new, |h| h.entries())),
            ("direct", self.direct.as_ref().map_or_else(Entries::new, |d| d.entries())),
            ("failover", self.failover.as_ref().map_or_else(Entries::new, |f| f.entries())),
            ("peers", self.peers.as_ref().map_or_else(Entries::new, |p| p.entries())),
            ("load_information", self.load_information.entries()),
            ("admin", Admin::entries(self.admin.as_ref())),
            ("access_log", self.access_log.as_ref().map_or_else(Entries::new, |l| l.entries())),
            ("decision_log", self.decision_log.as_ref().map_or_else(Entries::new, |l| l.entries())),
        ]
    }
}

impl PoolConfig {
    /// The tables with their effective values.
    pub(crate) fn sections(&self) -> Vec<(&'static str, Entries)> {
        vec![
            ("policy", self.policy.entries("name")),
            ("sticky", self.sticky.as_ref().map_or_else(Entries::new, |s| s.entries())),
            ("target", self.target.entries()),
            ("admission", self.admission.entries()),
            ("health", self.health.entries()),
            ("ejection", self.ejection.entries()),
            ("retry_budget", self.retry_budget.entries()),
            ("timeouts", self.timeouts.entries()),
            ("limits", self.limits.entries()),
            ("compression", self.compression.as_ref().map_or_else(Entries::new, |c| c.entries())),
        ]
    }
}

/// A certificate as a user would write it.
fn certificate_entries(certificate: &Certificate) -> Entries {
    let CertificateFiles { chain, key, ocsp } = certificate.files.clone();
    CertificateConfig { chain, key, ocsp }.entries()
}
