//! `/metrics` of a node, in the text format of OpenMetrics 1.0.

use std::fmt::Error;
use std::sync::Arc;

use plimsoll_datapath::RouterCounters;
use plimsoll_observe::counters::FINE_BUCKETS_US;
use plimsoll_observe::exposition::Out;
use plimsoll_observe::process::ProcessUsage;
use plimsoll_policy::Health;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::super::counters::{CloneCounters, CloneStats, DeclineReason, REFUSALS};
use super::super::mapping::MappingLook;
use super::super::shared::CloneShared;

/// All metrics, as they are now, as OpenMetrics.
pub(super) fn encode(shared: &Arc<CloneShared>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(NodeSample {
        stats: shared.stats(),
        look: shared.mapping.look(),
        process: ProcessUsage::now(),
        shared: Arc::clone(shared),
    }));
    let mut out = String::with_capacity(16 << 10);
    if prometheus_client::encoding::text::encode(&mut out, &registry).is_err() {
        // Writing to a string does not fail.
        tracing::error!("cannot encode the metrics");
    }
    out
}

struct NodeSample {
    stats: CloneStats,
    look: MappingLook,
    process: ProcessUsage,
    shared: Arc<CloneShared>,
}

impl std::fmt::Debug for NodeSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeSample").field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl NodeSample {
    fn counters(&self) -> &CloneCounters {
        &self.shared.counters
    }

    fn clients(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let stats = &self.stats;
        out.counter("plimsoll_connections_accepted", "Connections of clients accepted", stats.connections)?;
        let open = self.shared.open() as u64;
        out.gauge("plimsoll_connections_open", "Connections open, clones included", open)?;
        out.counter(
            "plimsoll_requests",
            "Requests answered, here or by clones, or given up",
            stats.requests,
        )?;
        out.counter("plimsoll_clone_requests_own", "Requests that were answered here", stats.own)?;
        let counters = self.counters();
        out.counters("plimsoll_clone_content_bytes", "Content of answers, by who sent it", || {
            [
                ([("by", "here")], counters.own_content_bytes.get()),
                ([("by", "clone")], counters.clone_content_bytes.get()),
                ([("by", "clone_here")], counters.made_content_bytes.get()),
            ]
        })
    }

    fn clones(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let stats = &self.stats;
        out.counter("plimsoll_clone_asked", "Clones asked of other nodes", stats.cloned)?;
        out.counter(
            "plimsoll_clone_answers",
            "Answers of clones that clients have acknowledged to the end",
            stats.clone_answers,
        )?;
        out.counter("plimsoll_clone_rests", "Those that were the rest of an answer begun here", stats.rests)?;
        out.counter(
            "plimsoll_clone_taken_back",
            "Connections that their original took back, where their clone had come to",
            stats.fast_forwarded,
        )?;
        out.counter("plimsoll_clone_ahead", "Answers of clones that were made ahead", stats.ahead)?;
        out.counter(
            "plimsoll_clone_kept",
            "Further requests answered by clones that kept connections",
            stats.kept,
        )?;
        out.counter("plimsoll_clone_given_back", "Connections that such clones gave back", stats.given_back)?;
        let counters = self.counters();
        out.counters(
            "plimsoll_clone_declined",
            "Requests of other nodes that were answered here, by why",
            || {
                let reasons = DeclineReason::ALL.into_iter().zip(&counters.declined_for);
                reasons.map(|(why, count)| ([("reason", why.name())], count.get()))
            },
        )?;
        out.counter("plimsoll_clone_made", "Clones made here for other nodes", stats.made)?;
        out.counters("plimsoll_clone_refused", "Clones refused here, by why", || {
            REFUSALS.iter().zip(&counters.refused_for).map(|((_, name), n)| ([("reason", *name)], n.get()))
        })?;
        out.counter(
            "plimsoll_clone_answered",
            "Answers of clones made here that their kernel has taken whole",
            stats.answered_as_clone,
        )?;
        out.counters(
            "plimsoll_clone_ended",
            "Connections that ended while a clone answered, by how",
            || {
                [
                    ([("how", "client_reset")], stats.client_resets),
                    ([("how", "forged")], stats.forged),
                    ([("how", "lost")], stats.lost.saturating_sub(stats.client_resets + stats.forged)),
                ]
            },
        )?;
        let (counts, sum_s) = counters.clone_time.0.taken();
        out.histogram(
            "plimsoll_clone_time",
            "From the decision for a clone to the word that it is there",
            &FINE_BUCKETS_US,
            (&counts, sum_s),
        )
    }

    fn links(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let up = self.shared.links_up() as u64;
        out.gauge("plimsoll_clone_links_up", "Links by which clones can be asked for", up)?;
        out.counter("plimsoll_clone_links", "Links of other nodes that began", self.stats.links)?;
        out.counter("plimsoll_clone_links_refused", "Links that were refused", self.stats.refused_links)?;
        out.counter(
            "plimsoll_clone_links_broken",
            "Links closed because a frame was not authentic or not understood",
            self.stats.broken_links,
        )
    }

    fn router(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let RouterCounters { routed_packets, routed_bytes, held, ring_full, too_long, late, .. } =
            self.stats.router;
        let RouterCounters { resets, forged, errors, fragments, options, malformed, .. } = self.stats.router;
        out.gauge("plimsoll_router_connections", "Connections that are led to clones, or held", {
            self.shared.router.entered() as u64
        })?;
        out.counter("plimsoll_router_routed_bytes", "Bytes sent on to clones", routed_bytes)?;
        out.counters("plimsoll_router_packets", "Packets, by what became of them", || {
            [
                ("routed", routed_packets),
                ("held", held),
                ("ring_full", ring_full),
                ("too_long", too_long),
                ("late", late),
                ("reset", resets),
                ("forged", forged),
                ("error", errors),
                ("fragment", fragments),
                ("options", options),
                ("malformed", malformed),
            ]
            .map(|(what, count)| ([("what", what)], count))
        })
    }

    fn mapping(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let MappingLook { policy, nodes, counts, tracked_targets, stats, .. } = &self.look;
        out.counter("plimsoll_decisions", "Requests that the policy gave to a node", counts.assigned)?;
        out.counter("plimsoll_mapping_small", "Requests of documents too small to be cloned", counts.small)?;
        out.counter(
            "plimsoll_mapping_without_node",
            "Requests for which there was no node",
            counts.rejected,
        )?;
        out.counter("plimsoll_mapping_polls", "Polls of nodes before a choice", counts.polls)?;
        out.counter("plimsoll_mapping_reports", "Loads that nodes have told", counts.reports)?;
        out.gauges("plimsoll_policy_info", "The policy", || [([("policy", *policy)], 1)])?;
        out.gauges("plimsoll_policy_stat", "What the policy counts, by its own names", || {
            stats.iter().map(|(stat, value)| ([("policy", *policy), ("stat", *stat)], *value))
        })?;
        out.gauge(
            "plimsoll_policy_tracked_targets",
            "Targets of which the policy keeps state",
            *tracked_targets as u64,
        )?;
        let named = |of: fn(&super::super::mapping::NodeLook) -> u64| {
            move || nodes.iter().map(move |node| ([("backend", &*node.name)], of(node))).collect::<Vec<_>>()
        };
        out.gauges("plimsoll_backend_load", "Requests given to the node and not ended", {
            named(|node| u64::from(node.own_load))
        })?;
        out.gauges("plimsoll_backend_shown_load", "The load that the policy sees", {
            named(|node| u64::from(node.load))
        })?;
        out.gauges("plimsoll_backend_up", "1 while the node can be asked", {
            named(|node| u64::from(node.health == Health::Up))
        })
    }

    fn logs(&self, out: &mut Out<'_>) -> Result<(), Error> {
        if let Some(log) = &self.shared.access_log {
            out.counter(
                "plimsoll_access_log_lines_lost",
                "Lines of the access log that could not be written",
                log.lost(),
            )?;
        }
        let Some((dropped_chunks, errors, _)) = self.shared.mapping.log_state() else { return Ok(()) };
        out.counter(
            "plimsoll_decision_log_dropped_chunks",
            "Chunks of the decision log that could not be written",
            dropped_chunks,
        )?;
        out.counter("plimsoll_decision_log_errors", "Failures to write the decision log", errors)
    }
}

impl Collector for NodeSample {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut out = Out::new(encoder);
        self.clients(&mut out)?;
        self.clones(&mut out)?;
        self.links(&mut out)?;
        self.router(&mut out)?;
        self.mapping(&mut out)?;
        self.logs(&mut out)?;
        self.process.encode(&mut out)
    }
}
