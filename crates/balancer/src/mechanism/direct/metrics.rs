//! The mechanism's part of `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_config::BackendName;
use plimsoll_datapath::switch::{BackendCounters, SwitchCounters};
use plimsoll_switch::HANDSHAKE_ENDS_US;

use super::system::DirectSystem;
use plimsoll_observe::exposition::Out;

/// Everything that is counted of the mechanism.
pub(super) fn encode(system: &DirectSystem, out: &mut Out<'_>) -> Result<(), Error> {
    let shown = system.shown();
    let counts = shown.counts;
    let help = "Connections under way that the switch knows";
    out.gauge("plimsoll_switch_connections", help, shown.conns as u64)?;
    let help = "Those of them of which only first packets have come";
    out.gauge("plimsoll_switch_connections_opening", help, shown.opening as u64)?;
    let help = "Choices that were made ahead and that no connection has taken; each counts as load";
    out.gauge("plimsoll_switch_choices", help, shown.prepared as u64)?;
    let help = "Connections that began, by what placed them: a choice of the policy, or else the hash";
    out.counters("plimsoll_switch_connections_begun", help, || {
        [("policy", counts.taken), ("hash", counts.stayed)].map(|(by, n)| ([("by", by)], n))
    })?;
    let help = "Connections that are over: their client ended them, their back-end was gone, or nobody told";
    out.counters("plimsoll_switch_connections_over", help, || {
        let ends = [("ended", counts.ended), ("lost", counts.lost), ("forgotten", counts.forgotten)];
        ends.map(|(how, n)| ([("how", how)], n))
    })?;
    out.counter("plimsoll_switch_choices_withdrawn", "Choices that were withdrawn", counts.withdrawn)?;
    let sniffed = system.sniffed.load(Ordering::Relaxed);
    out.counter("plimsoll_switch_sniffed", "Requests that were seen to pass, for the policy", sniffed)?;
    if let Ok(packets) = system.switch.counters() {
        encode_packets(&packets, out)?;
    }
    encode_backends(system, out)
}

fn encode_packets(packets: &SwitchCounters, out: &mut Out<'_>) -> Result<(), Error> {
    out.counters("plimsoll_switch_packets", "Packets that the switch saw, by what it did with them", || {
        let actions = [
            ("forwarded", packets.forwarded_packets),
            ("no_backend", packets.no_backend),
            ("error", packets.errors),
            ("fragment", packets.fragments),
            ("fragment_lost", packets.fragments_lost),
            ("options", packets.options),
            ("malformed", packets.malformed),
            ("too_big", packets.too_big),
        ];
        actions.map(|(action, n)| ([("action", action)], n))
    })?;
    let single = [
        ("plimsoll_switch_bytes", "Bytes of forwarded frames", packets.forwarded_bytes),
        ("plimsoll_switch_hashed", "First packets that the hash placed", packets.hashed),
        ("plimsoll_switch_strays", "Unknown connections that the hash placed", packets.stray),
        ("plimsoll_switch_samples", "Beginnings of packets that were copied to be read", packets.samples),
        ("plimsoll_switch_samples_lost", "Those for which there was no room", packets.samples_lost),
        ("plimsoll_switch_events_lost", "Events for which there was no room", packets.events_lost),
    ];
    for (name, help, n) in single {
        out.counter(name, help, n)?;
    }
    Ok(())
}

/// What is counted of one back-end, under all that the packet program knows it by.
#[derive(Default)]
struct NamedCounts {
    packets: BackendCounters,
    opening: u64,
    handshakes: Vec<u64>,
    handshakes_ns: u64,
}

fn by_name(system: &DirectSystem) -> BTreeMap<BackendName, NamedCounts> {
    let shown = system.shown();
    let mut named: BTreeMap<BackendName, NamedCounts> = BTreeMap::new();
    for ((holder, _, name), handshakes) in shown.holders.iter().zip(&shown.handshakes) {
        let Ok(packets) = system.switch.backend_counters(holder.backend) else { continue };
        let counts = named.entry(Arc::clone(name)).or_default();
        counts.packets = counts.packets + packets;
        counts.opening += handshakes.opening as u64;
        counts.handshakes_ns += handshakes.handshakes_ns;
        counts.handshakes.resize(handshakes.handshakes.len(), 0);
        counts.handshakes.iter_mut().zip(handshakes.handshakes).for_each(|(sum, n)| *sum += n);
    }
    named
}

fn encode_backends(system: &DirectSystem, out: &mut Out<'_>) -> Result<(), Error> {
    let named = by_name(system);
    type Of = fn(&BackendCounters) -> u64;
    let all: [(&str, &str, Of); 6] = [
        ("plimsoll_switch_backend_packets", "Packets of clients that a back-end got", |c| c.packets),
        ("plimsoll_switch_backend_bytes", "Bytes of their frames", |c| c.bytes),
        ("plimsoll_switch_backend_syns", "First packets of TCP connections that it got", |c| c.connections),
        ("plimsoll_switch_backend_established", "Connections of it that were established", |c| c.established),
        ("plimsoll_switch_backend_retransmitted", "Packets of clients that came again", |c| c.retransmitted),
        ("plimsoll_switch_backend_lost", "Connections that were lost with it", |c| c.resets),
    ];
    for (name, help, of) in all {
        out.counters(name, help, || {
            named.iter().map(|(backend, c)| ([("backend", &**backend)], of(&c.packets)))
        })?;
    }
    let help = "Connections of it of which only first packets have come";
    out.gauges("plimsoll_switch_backend_opening", help, || {
        named.iter().map(|(backend, c)| ([("backend", &**backend)], c.opening))
    })?;
    let help = "From a client's first packet to its second";
    out.histograms("plimsoll_switch_backend_handshake", help, &HANDSHAKE_ENDS_US, || {
        let of = |c: &NamedCounts| (c.handshakes.clone(), c.handshakes_ns as f64 / 1e9);
        named.iter().map(move |(backend, c)| ([("backend", &**backend)], of(c)))
    })
}
