//! What agents have counted, in `/metrics`.

use std::fmt::Error;

use plimsoll_wire::message::AgentCounts;

use super::snapshot::{BackendState, Snapshot};
use plimsoll_observe::exposition::Out;

type OneCount = fn(&AgentCounts) -> u64;

/// A counter for each agent that has told what it has counted; nothing where there are none.
pub(super) fn encode(snapshot: &Snapshot, out: &mut Out<'_>) -> Result<(), Error> {
    let told = |b: &BackendState| b.backend.agent_counts().map(|counts| (b.backend.name.clone(), counts));
    let agents: Vec<_> = snapshot.backends.iter().filter(|b| b.is_there()).filter_map(told).collect();
    if agents.is_empty() {
        return Ok(());
    }
    out.gauges("plimsoll_agent_connections", "Connections that the agent has now", || {
        agents.iter().map(|(name, counts)| ([("backend", &**name)], counts.connections))
    })?;
    let single: [(&str, &str, OneCount); 6] = [
        ("plimsoll_agent_requests", "Requests on connections that the agent had", |c| c.requests),
        ("plimsoll_agent_content_bytes", "Content of its answers", |c| c.content_bytes),
        ("plimsoll_agent_cancelled", "Connections that front-ends took back from it unanswered", |c| {
            c.cancelled
        }),
        ("plimsoll_agent_strays", "Flows of which packets came and no connection", |c| c.strays),
        (
            "plimsoll_agent_fenced_packets",
            "Packets that the kernel beside it dropped for lack of a lease",
            |c| c.fenced,
        ),
        (
            "plimsoll_agent_returned_syns",
            "SYNs sent back to a front-end, as a new connection follows one that is over",
            |c| c.syns_returned,
        ),
    ];
    for (name, help, of) in single {
        out.counters(name, help, || agents.iter().map(|(name, c)| ([("backend", &**name)], of(c))))?;
    }
    let help = "Connections that the agent was handed, by what it did";
    several(&agents, out, ("plimsoll_agent_handoffs", help, "outcome"), |c| {
        vec![("taken", c.taken), ("refused", c.refused), ("returned", c.returned), ("kept", c.kept)]
    })?;
    let help = "Links to the agent, by whether it took them";
    several(&agents, out, ("plimsoll_agent_links", help, "outcome"), |c| {
        vec![("begun", c.links), ("refused", c.refused_links)]
    })?;
    let help = "Packets held for a connection to come, by what became of them";
    several(&agents, out, ("plimsoll_agent_held_packets", help, "fate"), |c| {
        vec![("injected", c.packets_injected), ("emitted", c.packets_emitted), ("dropped", c.packets_dropped)]
    })
}

/// Counters that differ by another label.
fn several<N: AsRef<str>>(
    agents: &[(N, AgentCounts)],
    out: &mut Out<'_>,
    (name, help, label): (&str, &str, &str),
    of: fn(&AgentCounts) -> Vec<(&'static str, u64)>,
) -> Result<(), Error> {
    out.counters(name, help, || {
        agents.iter().flat_map(move |(backend, counts)| {
            let each = move |(word, n)| ([("backend", backend.as_ref()), (label, word)], n);
            of(counts).into_iter().map(each)
        })
    })
}
