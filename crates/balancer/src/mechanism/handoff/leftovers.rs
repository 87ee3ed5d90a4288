//! Flows that an earlier process of this front-end led to back-ends, and that no agent claims.
//!
//! The process may have been killed at any instant. Its packet program and its flows stay, so that connections which agents
//! have go on; their agents offer them to this process ([`super::adopt`]). A flow is entered before its connection
//! leaves this machine's kernel, and stays until the kernel has the connection again, or until it is over. So whichever
//! connection the process left in no kernel at all has its flow here still:
//!
//! | Killed | Where the connection is | What follows |
//! | --- | --- | --- |
//! | before the flow is entered | in this machine's kernel | the kernel ends it |
//! | before it is frozen | in this machine's kernel | the kernel ends it; the flow is left over |
//! | frozen, or its state taken | nowhere: the kernel says nothing for a frozen socket | left over |
//! | its `Handoff` not sent | nowhere | left over |
//! | `Handoff` sent, `Confirm` not | at the agent, until its lease ends | left over |
//! | `Confirm` sent | at the agent | the agent offers it |
//! | adopted, `Adopted` not sent | at the agent | the agent offers it again |
//! | the agent has asked, `Return` not sent | at the agent, which answers itself | the agent offers it |
//! | `Return` sent, `Returned` not read, or read | at the agent or nowhere | offered or left over |
//! | restored, not yet activated | nowhere, as above | left over |
//! | activated, its flow still entered | in this machine's kernel | the kernel ends it; the flow is left over |
//! | `Closed` read, client not quiet yet | it is over | forgotten, as the flow is marked |
//! | `Closed` not read | it is over | left over |
//! | cancelled, lease not over | at the agent, until then | left over |
//!
//! Once all agents have offered what they have, or after a bound, what is left over is nobody's: its client is reset. Where
//! its sequence numbers are not known, the client is asked for them first.

use std::sync::Arc;
use std::time::Instant;

use plimsoll_datapath::{Flow, FlowEntry};

use super::offers::{LeftFlow, agents};
use super::system::System;
use super::times::{LINGER, QUIET};
use crate::backend::Backend;

/// Looks at every flow that is left over. It is called regularly, and does nothing once none is left.
pub(super) fn settle(system: &System, backends: &[Arc<Backend>]) {
    if system.offers.is_over() {
        return;
    }
    let began = system.offers.count();
    if !system.is_active() {
        if system.forget_quiet(LINGER) {
            system.offers.end(began);
        }
        return;
    }
    let left = system.left_over();
    if left.is_empty() {
        return system.offers.end(began);
    }
    let now = Instant::now();
    let settled = agents(backends).is_some_and(|agents| system.offers.is_settled(&agents, now));
    let mut known = system.offers.left();
    known.retain(|flow, _| left.contains_key(flow));
    for (flow, entry) in left {
        let left_flow = known.entry(flow).or_insert_with(|| LeftFlow::new(&entry, now));
        look_at(system, &flow, &entry, settled, now, left_flow);
    }
}

/// Resets the client of a flow if no agent claims the flow any more.
fn look_at(
    system: &System,
    flow: &Flow,
    entry: &FlowEntry,
    settled: bool,
    now: Instant,
    left_flow: &mut LeftFlow,
) {
    if entry.over {
        // The client has everything.
        system.forget(flow, QUIET);
        return;
    }
    let silent_ns = plimsoll_datapath::now_ns().saturating_sub(entry.last_seen_ns);
    let is_stuck = left_flow.is_stuck(entry, now);
    // Without a next hop, the connection was being taken back, and its socket died with the process.
    let is_nobodys = entry.next_hop.ifindex == 0
        || left_flow.questions.have_begun()
        || system
            .offers
            .quiet(entry.next_hop.mac, settled, now)
            .is_some_and(|quiet| is_stuck || u128::from(silent_ns) >= quiet.as_nanos());
    if is_nobodys {
        system.reset_left_over(flow, &mut left_flow.questions);
    }
}
