//! Looks regularly at what has a time: handoffs that were not answered, and flows whose connections are over or lost.

use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_datapath::tcp;

use super::adopt;
use super::handoffs::Handoffs;
use super::leaving::{FlowEnd, Leaving};
use super::numbers::{SeenNumbers, Told};
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
        let mut then = then;
        let quiet = match &mut then {
            _ if handoffs.is_reused(&flow) => true,
            FlowEnd::Forget => system.forget(&flow, QUIET),
            FlowEnd::Reset { expected, questions, seen } => {
                let now_seen = system.entry(&flow).as_ref().map(SeenNumbers::of);
                let same = std::mem::replace(seen, now_seen) == now_seen;
                let quiet = questions.have_begun() || same || !system.is_busy(&flow, QUIET);
                if quiet {
                    let told = recover::reset(handoffs, flow, *expected);
                    if questions.go_on(told) {
                        handoffs.leave(flow, then, now + ANSWER_TIME);
                        continue;
                    }
                    if !handoffs.is_reused(&flow) {
                        system.unlead(&flow);
                    }
                }
                quiet
            }
        };
        if quiet {
            system.free_flow();
        } else {
            handoffs.leave(flow, then, now + LINGER);
        }
    }
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
