//! `/metrics`: everything that is counted, in the text format of OpenMetrics 1.0.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::backends::CODES;
use super::compressed::CompressionSample;
use super::directory::DirectorySample;
use super::load_information::LoadInformationSample;
use super::snapshot::{BackendState, OtherPool, Snapshot};
use crate::backend_pool::BackendPool;
use crate::mechanism::carry::Mechanism;
use crate::mechanism::registry::{MechanismSystems, Mechanisms};
use crate::metrics::{SharedCounter, WorkerCounts};
use crate::peers::Peers;
use crate::refusal_reason::RefusalReason;
use crate::shared::FrontEndShared;
use plimsoll_observe::exposition::Out;
use plimsoll_observe::process::ProcessUsage;

/// All metrics, as they are now, as OpenMetrics.
pub(super) fn encode(shared: &FrontEndShared, systems: &Arc<MechanismSystems>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Sample::take(shared, systems)));
    let mut out = String::with_capacity(16 << 10);
    if prometheus_client::encoding::text::encode(&mut out, &registry).is_err() {
        // Writing to a string does not fail.
        tracing::error!("cannot encode the metrics");
    }
    out
}

/// The counters of all workers, added up.
#[derive(Debug)]
struct Totals {
    requests: [u64; 5],
    retried: u64,
    accepted: u64,
    made_room: u64,
    /// In full, resumed and failed.
    handshakes: [u64; 3],
    open: u64,
    lines_lost: u64,
    /// By reason.
    refusals: Vec<u64>,
}

struct Sample {
    snapshot: Snapshot,
    /// Of the other pools.
    others: Vec<OtherPool>,
    /// By route.
    routes: Vec<(String, u64)>,
    totals: Totals,
    connections_limit: usize,
    held_bytes: usize,
    speaks_tls: bool,
    policy: &'static str,
    process: ProcessUsage,
    systems: Arc<MechanismSystems>,
    peers: Option<Arc<Peers>>,
    directory: Option<DirectorySample>,
    compression: Option<CompressionSample>,
    load_information: Option<LoadInformationSample>,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("totals", &self.totals).finish_non_exhaustive()
    }
}

impl Sample {
    fn take(shared: &FrontEndShared, systems: &Arc<MechanismSystems>) -> Self {
        let sum =
            |of: fn(&WorkerCounts) -> &SharedCounter| shared.counts.iter().map(|c| of(c).get()).sum::<u64>();
        // What has ended first: no connection ends before it was counted as accepted.
        let closed = sum(|c| &c.closed);
        let accepted = sum(|c| &c.accepted);
        let config = shared.config.load();
        let snapshot = Snapshot::take(shared);
        let others = shared.others.load();
        let other = |pool: &Arc<BackendPool>| OtherPool {
            name: pool.name().to_owned(),
            policy: pool.config.load().policy.spec.name,
            snapshot: Snapshot::take(pool),
        };
        let routing = shared.routing.load();
        let routes = routing.iter().flat_map(|routing| routing.counts());
        Self {
            others: others.iter().map(other).collect(),
            routes: routes.map(|(name, taken)| (name.to_owned(), taken)).collect(),
            totals: Totals {
                requests: std::array::from_fn(|i| shared.counts.iter().map(|c| c.requests[i].get()).sum()),
                retried: sum(|c| &c.retried),
                accepted,
                open: accepted.saturating_sub(closed),
                made_room: sum(|c| &c.made_room),
                handshakes: [
                    sum(|c| &c.handshakes.full),
                    sum(|c| &c.handshakes.resumed),
                    sum(|c| &c.handshakes.failed),
                ],
                refusals: RefusalReason::ALL
                    .iter()
                    .map(|&r| crate::metrics::refusals(&shared.counts, r))
                    .collect(),
                lines_lost: sum(|c| &c.lines_lost) + shared.access_log.lost(),
            },
            connections_limit: shared.connections_limit.load(std::sync::atomic::Ordering::Relaxed),
            held_bytes: shared.held.bytes(),
            speaks_tls: config.listeners.iter().any(|listener| listener.tls),
            policy: config.policy.spec.name,
            process: ProcessUsage::now(),
            systems: Arc::clone(systems),
            peers: shared.peers.clone(),
            compression: CompressionSample::take(shared),
            directory: shared.directory.get().map(DirectorySample::take),
            load_information: LoadInformationSample::take(
                &shared.load_information,
                snapshot.counts.loads_known,
            ),
            snapshot,
        }
    }

    fn clients(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let totals = &self.totals;
        out.counters("plimsoll_requests", "Requests by the class of the status that the client got", || {
            CODES.into_iter().zip(totals.requests).map(|(code, n)| ([("code", code)], n))
        })?;
        out.counter(
            "plimsoll_requests_retried",
            "Requests that more than one back-end was tried for",
            totals.retried,
        )?;
        self.count(out, "plimsoll_requests_waited", "Requests that had to wait for room", |s| {
            s.counts.waited
        })?;
        self.count(
            out,
            "plimsoll_requests_refused",
            "Requests refused because the queue was full or no back-end took them",
            |s| s.counts.refused,
        )?;
        super::retries::encode(&self.snapshot, &self.others, out)?;
        if !self.routes.is_empty() {
            out.counters(
                "plimsoll_route_requests",
                "Requests that a route took; without a name those that none took",
                || self.routes.iter().map(|(name, taken)| ([("route", name.as_str())], *taken)),
            )?;
        }
        out.counters(
            "plimsoll_refusals",
            "Requests that the front-end itself answered, and connections that it ended or had wait, by reason",
            || {
                RefusalReason::ALL
                    .iter()
                    .zip(&self.totals.refusals)
                    .map(|(r, &n)| ([("reason", r.name())], n))
            },
        )?;
        self.gauge(out, "plimsoll_requests_waiting", "Requests that wait for room", |s| {
            Some(s.waiting as u64)
        })?;
        if self.speaks_tls {
            out.counters(
                "plimsoll_tls_handshakes",
                "TLS handshakes with clients, by what they came to",
                || {
                    let outcomes = ["full", "resumed", "failed"].into_iter().zip(totals.handshakes);
                    outcomes.map(|(outcome, n)| ([("outcome", outcome)], n))
                },
            )?;
        }
        self.connections(out)?;
        out.counter(
            "plimsoll_access_log_lines_lost",
            "Lines of the access log that could not be written",
            totals.lines_lost,
        )
    }

    /// Clients' connections, and what is held for them.
    fn connections(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let totals = &self.totals;
        out.counter("plimsoll_connections_accepted", "Connections of clients accepted", totals.accepted)?;
        out.counter(
            "plimsoll_connections_made_room",
            "Connections without a whole request that were ended because others needed their places",
            totals.made_room,
        )?;
        out.gauge("plimsoll_connections_open", "Connections of clients open", totals.open)?;
        out.gauge(
            "plimsoll_connections_limit",
            "Connections of clients that may be open",
            self.connections_limit as u64,
        )?;
        out.gauge(
            "plimsoll_held_bytes",
            "Memory set aside for content of clients that send or read slowly",
            self.held_bytes as u64,
        )
    }

    /// A counter of each pool, that of the first one without a label.
    fn count(
        &self,
        out: &mut Out<'_>,
        name: &str,
        help: &str,
        of: impl Fn(&Snapshot) -> u64,
    ) -> Result<(), Error> {
        let others = self.others.iter().map(|other| ([("pool", other.name.as_str())], of(&other.snapshot)));
        out.counter_and(name, help, of(&self.snapshot), others)
    }

    /// A gauge of each pool that has it, that of the first one without a label.
    fn gauge(
        &self,
        out: &mut Out<'_>,
        name: &str,
        help: &str,
        of: impl Fn(&Snapshot) -> Option<u64>,
    ) -> Result<(), Error> {
        let other = |other: &'_ OtherPool| of(&other.snapshot);
        let others = self.others.iter().filter_map(|o| Some(([("pool", o.name.as_str())], other(o)?)));
        out.gauge_and(name, help, of(&self.snapshot), others)
    }

    /// Each pool: its label if it is not the first one, its policy, and its state.
    fn pools(&self) -> impl Iterator<Item = (Option<&str>, &'static str, &Snapshot)> {
        let others =
            self.others.iter().map(|other| (Some(other.name.as_str()), other.policy, &other.snapshot));
        std::iter::once((None, self.policy, &self.snapshot)).chain(others)
    }

    fn dispatch(&self, out: &mut Out<'_>) -> Result<(), Error> {
        self.count(out, "plimsoll_decisions", "Requests that the policy assigned", |s| s.counts.assigned)?;
        self.gauge(out, "plimsoll_load", "Requests assigned and not completed", |s| Some(s.total_load))?;
        self.gauge(out, "plimsoll_admission_limit", "Requests let into the cluster at once", |s| {
            s.admission_limit
        })?;
        let labels = |pool: Option<&str>, policy: &str| -> Vec<(&'static str, String)> {
            let pool = pool.map(|pool| ("pool", pool.to_owned()));
            std::iter::once(("policy", policy.to_owned())).chain(pool).collect()
        };
        out.gauges("plimsoll_policy_info", "The policy", || {
            self.pools().map(|(pool, policy, _)| (labels(pool, policy), 1))
        })?;
        out.gauges("plimsoll_policy_stat", "What the policy counts, by its own names", || {
            self.pools().flat_map(|(pool, policy, state)| {
                state.stats.iter().map(move |stat| {
                    let mut labels = labels(pool, policy);
                    labels.insert(1, ("stat", stat.name.to_owned()));
                    labels.extend(stat.partition.map(|partition| ("partition", partition.to_string())));
                    (labels, stat.value)
                })
            })
        })?;
        self.gauge(out, "plimsoll_policy_tracked_targets", "Targets of which the policy keeps state", |s| {
            Some(s.tracked_targets as u64)
        })?;
        out.counter(
            "plimsoll_decision_log_dropped_chunks",
            "Chunks of the decision log that could not be written",
            self.pools().map(|(_, _, s)| s.log.dropped_chunks).sum::<u64>(),
        )?;
        let errors = self.pools().map(|(_, _, s)| s.log.errors).sum::<u64>();
        out.counter("plimsoll_decision_log_errors", "Failures to write the decision log", errors)?;
        self.shadow(out)
    }

    fn shadow(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let Some(score) = &self.snapshot.shadow else { return Ok(()) };
        let rows = [(self.policy, "live", &score.live), (score.policy, "shadow", &score.shadow)];
        let labels = |policy, role| [("policy", policy), ("role", role)];
        out.gauges("plimsoll_shadow_requests", "Requests scored since the shadow policy began", || {
            rows.map(|(policy, role, score)| (labels(policy, role), score.requests))
        })?;
        let mut ratio = |name, help, of: fn(&plimsoll_decisions::Score) -> Option<f64>| {
            out.gauges(name, help, || {
                rows.into_iter()
                    .filter_map(|(policy, role, score)| of(score).map(|value| (labels(policy, role), value)))
            })
        };
        ratio("plimsoll_shadow_miss_ratio", "Misses per request in the modelled caches", |s| s.miss_ratio)?;
        ratio("plimsoll_shadow_imbalance", "Requests of the busiest back-end over the mean of all", |s| {
            s.imbalance
        })?;
        ratio("plimsoll_shadow_load_imbalance", "Largest mean load over the mean of all", |s| {
            s.load_imbalance
        })
    }

    fn all_backends(&self) -> impl Iterator<Item = &BackendState> {
        self.pools().flat_map(|(_, _, snapshot)| &snapshot.backends)
    }
}

impl Collector for Sample {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut out = Out::new(encoder);
        self.clients(&mut out)?;
        self.dispatch(&mut out)?;
        let backends: Vec<&BackendState> = self.all_backends().collect();
        super::backend_metrics::encode(&backends, &mut out)?;
        Mechanisms::encode(&self.systems, &mut out)?;
        super::agents::encode(&self.snapshot, &mut out)?;
        if let Some(peers) = &self.peers {
            super::peers::encode(peers, &self.snapshot, &mut out)?;
        }
        if let Some(directory) = &self.directory {
            directory.encode(&mut out)?;
        }
        if let Some(compression) = &self.compression {
            compression.encode(&mut out)?;
        }
        if let Some(load_information) = &self.load_information {
            load_information.encode(&mut out)?;
        }
        self.process.encode(&mut out)
    }
}
