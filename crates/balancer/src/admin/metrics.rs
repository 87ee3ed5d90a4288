//! `/metrics`: everything that is counted, in the text format of OpenMetrics 1.0.

use std::fmt::Error;
use std::sync::Arc;

use plimsoll_policy::Health;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::backends::CODES;
use super::directory::DirectorySample;
use super::load_information::LoadInformationSample;
use super::snapshot::{BackendState, Snapshot, health_name};
use crate::mechanism::carry::Mechanism;
use crate::mechanism::registry::{MechanismSystems, Mechanisms};
use crate::metrics::{BUCKETS_US, BackendCounts, SharedCounter, WorkerCounts};
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
    totals: Totals,
    connections_limit: usize,
    speaks_tls: bool,
    policy: &'static str,
    process: ProcessUsage,
    systems: Arc<MechanismSystems>,
    peers: Option<Arc<Peers>>,
    directory: Option<DirectorySample>,
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
        Self {
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
            speaks_tls: config.listeners.iter().any(|listener| listener.tls),
            policy: config.policy.spec.name,
            process: ProcessUsage::now(),
            systems: Arc::clone(systems),
            peers: shared.peers.clone(),
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
        let counts = self.snapshot.counts;
        out.counter("plimsoll_requests_waited", "Requests that had to wait for room", counts.waited)?;
        out.counter(
            "plimsoll_requests_refused",
            "Requests refused because the queue was full or no back-end took them",
            counts.refused,
        )?;
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
        out.gauge("plimsoll_requests_waiting", "Requests that wait for room", self.snapshot.waiting as u64)?;
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
        out.counter("plimsoll_connections_accepted", "Connections of clients accepted", totals.accepted)?;
        out.counter(
            "plimsoll_connections_made_room",
            "Connections without a request that were ended because others needed their places",
            totals.made_room,
        )?;
        out.gauge("plimsoll_connections_open", "Connections of clients open", totals.open)?;
        out.gauge(
            "plimsoll_connections_limit",
            "Connections of clients that may be open",
            self.connections_limit as u64,
        )?;
        out.counter(
            "plimsoll_access_log_lines_lost",
            "Lines of the access log that could not be written",
            totals.lines_lost,
        )
    }

    fn dispatch(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let state = &self.snapshot;
        out.counter("plimsoll_decisions", "Requests that the policy assigned", state.counts.assigned)?;
        out.gauge("plimsoll_load", "Requests assigned and not completed", state.total_load)?;
        if let Some(limit) = state.admission_limit {
            out.gauge("plimsoll_admission_limit", "Requests let into the cluster at once", limit)?;
        }
        out.gauges("plimsoll_policy_info", "The policy", || [([("policy", self.policy)], 1)])?;
        out.gauges("plimsoll_policy_stat", "What the policy counts, by its own names", || {
            state.stats.iter().map(|stat| {
                let partition = stat.partition.map(|partition| ("partition", partition.to_string()));
                let labels = [("policy", self.policy.to_owned()), ("stat", stat.name.to_owned())];
                (labels.into_iter().chain(partition).collect::<Vec<_>>(), stat.value)
            })
        })?;
        out.gauge(
            "plimsoll_policy_tracked_targets",
            "Targets of which the policy keeps state",
            state.tracked_targets as u64,
        )?;
        out.counter(
            "plimsoll_decision_log_dropped_chunks",
            "Chunks of the decision log that could not be written",
            state.log.dropped_chunks,
        )?;
        out.counter("plimsoll_decision_log_errors", "Failures to write the decision log", state.log.errors)?;
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

    fn backends(&self, out: &mut Out<'_>) -> Result<(), Error> {
        const STATES: [Health; 3] = [Health::Up, Health::Draining, Health::Down];
        let all = || self.snapshot.backends.iter();
        let there = || all().filter(|b| b.is_there());
        out.gauges("plimsoll_backend_load", "Requests assigned and not completed", || {
            there().map(|b| (named(b), u64::from(b.load)))
        })?;
        out.gauges("plimsoll_backend_shown_load", "The load that the policy sees", || {
            there().map(|b| (named(b), u64::from(b.shown_load)))
        })?;
        out.gauges(
            "plimsoll_backend_state",
            "1 for the state that the back-end is in, 0 for the others",
            || {
                there().flat_map(|b| {
                    STATES.map(|state| {
                        let labels = [("backend", &*b.backend.name), ("state", health_name(state))];
                        (labels, u64::from(b.health == state))
                    })
                })
            },
        )?;
        out.gauges(
            "plimsoll_backend_ejected",
            "1 while it takes only trials, because it failed requests",
            || there().map(|b| (named(b), u64::from(b.ejected))),
        )?;
        out.gauges(
            "plimsoll_backend_unresolved",
            "1 while it is down because its name leads to no address",
            || there().map(|b| (named(b), u64::from(b.backend.address.is_err()))),
        )?;
        out.gauges("plimsoll_backend_weight", "Weight", || there().map(|b| (named(b), b.weight.as_f64())))?;
        out.gauges("plimsoll_backend_connections_open", "Connections open to the back-end", || {
            there().map(|b| (named(b), b.connections()))
        })?;
        out.gauges("plimsoll_backend_connections_limit", "Connections that may be open to it", || {
            there().map(|b| (named(b), u64::from(b.backend.max_connections)))
        })?;
        out.counters(
            "plimsoll_backend_responses",
            "Responses passed on, by the class of their status",
            || {
                all().flat_map(|b| {
                    let code = |i: usize| [("backend", &*b.backend.name), ("code", CODES[i])];
                    (0..CODES.len()).map(move |i| (code(i), b.sum(|c| &c.answers[i])))
                })
            },
        )?;
        self.backend_counters(out)?;
        out.histograms(
            "plimsoll_backend_response_time",
            "From request head to response end",
            &BUCKETS_US,
            || all().map(|b| (named(b), b.histogram(|c| &c.response_time))),
        )?;
        out.histograms(
            "plimsoll_backend_first_byte",
            "From the choice of the back-end to its response head",
            &BUCKETS_US,
            || all().map(|b| (named(b), b.histogram(|c| &c.first_byte))),
        )
    }

    fn backend_counters(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let mut sums = |name, help, of: fn(&BackendCounts) -> &SharedCounter| {
            out.counters(name, help, || self.snapshot.backends.iter().map(|b| (named(b), b.sum(of))))
        };
        sums("plimsoll_backend_failures", "Requests that ended without a whole answer of it", |c| &c.failed)?;
        sums(
            "plimsoll_backend_attempts_failed",
            "Requests that failed there, repeated ones included",
            |c| &c.attempts_failed,
        )?;
        sums("plimsoll_backend_ejections", "Times that it was ejected", |c| &c.ejections)?;
        sums("plimsoll_backend_content_bytes", "Content passed on to clients", |c| &c.content_bytes)?;
        sums("plimsoll_backend_connections_opened", "Connections opened to it", |c| &c.connections)?;
        sums("plimsoll_backend_connections_failed", "Connections that could not be opened", |c| {
            &c.connect_failures
        })?;
        sums("plimsoll_backend_health_checks_failed", "Health checks that failed", |c| &c.checks_failed)
    }
}

impl Collector for Sample {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut out = Out::new(encoder);
        self.clients(&mut out)?;
        self.dispatch(&mut out)?;
        self.backends(&mut out)?;
        Mechanisms::encode(&self.systems, &mut out)?;
        super::agents::encode(&self.snapshot, &mut out)?;
        if let Some(peers) = &self.peers {
            super::peers::encode(peers, &self.snapshot, &mut out)?;
        }
        if let Some(directory) = &self.directory {
            directory.encode(&mut out)?;
        }
        if let Some(load_information) = &self.load_information {
            load_information.encode(&mut out)?;
        }
        self.process.encode(&mut out)
    }
}

fn named(b: &BackendState) -> [(&'static str, &str); 1] {
    [("backend", &b.backend.name)]
}
