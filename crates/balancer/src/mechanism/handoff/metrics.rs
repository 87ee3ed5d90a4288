//! The mechanism's part of `/metrics`.

use std::fmt::Error;
use std::sync::atomic::Ordering;

use super::role::FailoverRole;
use super::system::System;
use crate::metrics::{FINE_BUCKETS_US, SharedCounter};
use plimsoll_observe::exposition::Out;

/// Everything that is counted of the mechanism.
pub(super) fn encode(system: &System, out: &mut Out<'_>) -> Result<(), Error> {
    let counts = &system.counts;
    out.counters("plimsoll_handoffs", "Connections sent to an agent, by what became of it", || {
        let outcomes =
            [("taken", &counts.taken), ("refused", &counts.refused), ("timed_out", &counts.timed_out)];
        outcomes.map(|(outcome, n)| ([("outcome", outcome)], n.get()))
    })?;
    let single: [(&str, &str, &SharedCounter); 7] = [
        ("plimsoll_handoffs_on", "Connections handed on from one back-end to another", &counts.handed_on),
        (
            "plimsoll_handoffs_kept",
            "Connections proxied although chosen for handing off: they could not travel, or had no room",
            &counts.kept,
        ),
        (
            "plimsoll_requests_stayed",
            "Further requests answered by the back-end that had their connection",
            &counts.stayed,
        ),
        ("plimsoll_connections_adopted", "Connections taken over from an earlier link", &counts.adopted),
        ("plimsoll_connections_lost", "Connections lost with their agent", &counts.lost),
        ("plimsoll_connections_reset", "Clients whose connection was reset", &counts.reset),
        ("plimsoll_flows_stray", "Flows that led to an agent that did not have them", &counts.strays),
    ];
    for (name, help, n) in single {
        out.counter(name, help, n.get())?;
    }
    if let Some(failover) = &system.failover {
        let (is_active, term) = match failover.role() {
            FailoverRole::Active { term } => (1, term),
            FailoverRole::Standby | FailoverRole::Superseded => (0, 0),
        };
        let help = "Whether this is the active one of the front-ends that share the virtual address";
        out.gauge("plimsoll_front_end_active", help, is_active)?;
        out.gauge("plimsoll_front_end_term", "The term with which it is active, 0 for a standby", term)?;
    }
    let links = system.links();
    let all: u64 = links.values().map(|&count| u64::from(count)).sum();
    out.gauge("plimsoll_links", "Links to agents that are up, over all workers", all)?;
    out.gauges(
        "plimsoll_backend_links",
        "Links to the agent of each back-end that are up, over all workers",
        || links.iter().map(|(backend, &count)| ([("backend", &**backend)], u64::from(count))),
    )?;
    if system.chooses {
        let help = "Share of responses of middle size that are handed off so that the front-end has CPU time left, mean over workers";
        let all: u32 = system.relief.iter().map(|share| share.load(Ordering::Relaxed)).sum();
        out.gauge("plimsoll_relief_ratio", help, f64::from(all) / 1e6 / system.relief.len().max(1) as f64)?;
    }
    out.gauge("plimsoll_flows", "Flows that are forwarded to back-ends", u64::from(system.flows()))?;
    let take_over = &counts.take_over;
    let buckets = take_over.buckets.each_ref().map(SharedCounter::get);
    let sum_s = take_over.sum_us.get() as f64 / 1e6;
    let help = "From telling the agent to its answer";
    out.histogram("plimsoll_take_over", help, &FINE_BUCKETS_US, (&buckets, sum_s))?;
    let Ok(packets) = system.forwarder.counters() else { return Ok(()) };
    out.counters("plimsoll_packets", "Packets that the forwarder saw, by what it did with them", || {
        let actions = [
            ("forwarded", packets.forwarded_packets),
            ("passed", packets.unknown),
            ("fragment", packets.fragments),
            ("options", packets.options),
            ("malformed", packets.malformed),
        ];
        actions.map(|(action, n)| ([("action", action)], n))
    })
}
