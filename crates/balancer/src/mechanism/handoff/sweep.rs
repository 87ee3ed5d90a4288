//! Looks regularly at what has a time: handoffs that were not answered, and flows whose connections are over or lost.

use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_datapath::{Flow, tcp};

use super::adopt;
use super::handoffs::Handoffs;
use super::leaving::{FlowEnd, Leaving};
use super::lost_client::LostClient;
use super::numbers::Told;
use super::recover::{self, TakeBackReason};
use super::stuck;
use super::system::System;
use super::times::{LINGER, QUIET};
use crate::worker::Worker;

/// How long a client has to tell its sequence numbers before it is asked again.
const ANSWER_TIME: Duration = Duration::from_millis(200);

/// Takes back what no agent took over in time, and ends the flows whose time has come.
pub(super) fn sweep(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>) {
    let now = Instant::now();
    while let Some(conn) = handoffs.next_overdue(now) {
        recover::take_back(worker, handoffs, conn, TakeBackReason::TimedOut);
    }
    adopt::look_again(worker, handoffs);
    stuck::look(worker, handoffs, now);
    sweep_leaving(handoffs, now);
}

/// Forgets flows, or resets their clients, as was scheduled by [`Handoffs::leave`]. Flows of clients that are not quiet yet
/// are scheduled again.
fn sweep_leaving(handoffs: &Handoffs, now: Instant) {
    let system = &handoffs.system;
    if !system.is_active() {
        // Lost with links while this worker did not know yet.
        system.registry().leaving = Leaving::default();
        return;
    }
    loop {
        let next = system.registry().leaving.next(now);
        let Some((flow, then)) = next else { return };
        let again = match then {
            _ if handoffs.is_reused(&flow) => None,
            FlowEnd::Forget => (!system.forget(&flow, QUIET)).then(|| (then, now + LINGER)),
            FlowEnd::Reset(client) => end_lost(handoffs, flow, client, now),
        };
        match again {
            Some((then, at)) => handoffs.leave(flow, then, at),
            None => system.free_flow(),
        }
    }
}

/// Resets a client, if nothing new comes from it. Returns what is left to do, and when.
fn end_lost(
    handoffs: &Handoffs,
    flow: Flow,
    mut client: LostClient,
    now: Instant,
) -> Option<(FlowEnd, Instant)> {
    let system = &handoffs.system;
    if !client.questions.have_begun()
        && let Some(at) = client.look(system.entry(&flow).as_ref(), now, plimsoll_datapath::now_ns())
    {
        return Some((FlowEnd::Reset(client), at));
    }
    let told = recover::reset(handoffs, flow, client.expected);
    if client.questions.go_on(told) {
        return Some((FlowEnd::Reset(client), now + ANSWER_TIME));
    }
    if !handoffs.is_reused(&flow) {
        system.unlead(&flow);
    }
    None
}

/// Tells clients again that were reset, unless they have another connection by now, or another front-end has the address. A
/// client that expects other numbers than the RST's ignores it; it is also asked for them, and this machine's kernel answers by
/// a RST with those.
pub(super) fn reset_again(system: &System) {
    system.repeats.tell(Instant::now(), |flow, numbers| {
        // Locked until the end, so that no connection gets the flow in between.
        let registry = system.registry();
        let is_over = system.is_active() && !registry.is_owned(flow) && system.entry(flow).is_none();
        // The kernel refuses both where it has another connection of the same client.
        is_over
            && tcp::reset(flow, numbers.from_us, numbers.from_client).is_ok()
            && system.ask_numbers(flow) == Told::Asked
    });
}
