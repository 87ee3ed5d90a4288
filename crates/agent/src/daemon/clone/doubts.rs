//! Clients that may not know that their connection has ended.
//!
//! The original of a clone that is lost does not know what its client has received, so its RST may have another number than the
//! client expects. Such a client answers by the right one (RFC 5961, section 3.2), but not more often than twice a second, and
//! its answer may be lost. So it is asked for its numbers at once, and once more later.
//!
//! A process that is killed while a socket is frozen tells nobody: the kernel closes such a socket without a word. If it had not asked for a
//! clone yet, no other node knows of the connection. The next process of its name tells these clients.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_datapath::{CloneEntry, Flow, PacketRouter, now_ns, tcp};

/// When a client is asked again: Linux answers one wrong number in half a second.
pub(super) const AGAIN: Duration = Duration::from_millis(600);
/// Most clients that are asked again; what ends beyond that was asked once.
const MOST: usize = 65_536;

/// How many are told or asked before others of the thread have their turn.
const AT_A_TIME: usize = 32;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Doubts {
    /// In the order of time.
    asked: Mutex<VecDeque<(Flow, Instant)>>,
    /// Of connections of an earlier process.
    inherited: Mutex<Vec<Flow>>,
}

impl Doubts {
    /// How often [`Self::tell_some`] is to be called.
    pub(super) const PERIOD: Duration = Duration::from_millis(100);

    fn asked(&self) -> MutexGuard<'_, VecDeque<(Flow, Instant)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a client that its connection has ended, which no kernel has any more, if its numbers are known, and asks for them. The
    /// kernel resets a client that says something; this is for one that only waits.
    pub(super) fn reset(&self, router: &PacketRouter, flow: Flow, entry: &CloneEntry) {
        let CloneEntry { last_ack, expected_seq, .. } = *entry;
        if let Some(last_ack) = last_ack
            && let Err(error) = tcp::reset(&flow, last_ack, expected_seq)
        {
            tracing::debug!(%error, ?flow, "a client was not told of the end");
        }
        // It may have received more, and what it says of that may have met the socket that told it.
        self.ask(router, flow);
    }

    /// The clients of these connections, which a killed process of this name had entered, are reset later, by [`Self::tell_some`].
    pub(super) fn inherit(&self, flows: Vec<Flow>) {
        if !flows.is_empty() {
            let connections = flows.len();
            tracing::info!(
                connections,
                "an earlier process was killed; clients whose connections it had cloned are reset"
            );
            self.inherited().extend(flows);
        }
    }

    fn inherited(&self) -> MutexGuard<'_, Vec<Flow>> {
        self.inherited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the entry, so that packets of the connection reach this kernel, which has no socket for them; then resets the client.
    fn end_inherited(&self, router: &PacketRouter, flow: Flow) {
        match router.take(&flow) {
            Ok(Some(entry)) => self.reset(router, flow, &entry),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, ?flow, "a client of an earlier process was not reset"),
        }
    }

    /// Asks the client of this connection for its numbers, now and later.
    fn ask(&self, router: &PacketRouter, flow: Flow) {
        ask(router, &flow);
        let mut asked = self.asked();
        if asked.len() < MOST {
            asked.push_back((flow, Instant::now()));
        }
    }

    /// Asks some of those again whose time has come, and resets some of the inherited ones. Whether there may be more.
    pub(super) fn tell_some(&self, router: &PacketRouter) -> bool {
        for _ in 0..AT_A_TIME {
            if let Some(flow) = self.due(Instant::now()) {
                ask(router, &flow);
                continue;
            }
            let inherited = self.inherited().pop();
            let Some(flow) = inherited else { return false };
            self.end_inherited(router, flow);
        }
        true
    }

    fn due(&self, now: Instant) -> Option<Flow> {
        let mut asked = self.asked();
        let (_, at) = asked.front()?;
        (now.duration_since(*at) >= AGAIN).then(|| asked.pop_front()).flatten().map(|(flow, _)| flow)
    }

    /// Whether nobody has to be told, or asked again.
    pub(super) fn is_empty(&self) -> bool {
        self.asked().is_empty() && self.inherited().is_empty()
    }
}

fn ask(router: &PacketRouter, flow: &Flow) {
    if let Err(error) = router.ask_numbers(flow, now_ns() as u32) {
        tracing::debug!(%error, ?flow, "a client was not asked for its numbers");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_asked_again_in_the_order_of_time() {
        let doubts = Doubts::default();
        let began = Instant::now();
        let flows = [1, 2].map(|port| Flow::new(([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 80).into()));
        for (late_ms, flow) in [(0, flows[0]), (50, flows[1])] {
            doubts.asked().push_back((flow, began + Duration::from_millis(late_ms)));
        }
        assert_eq!(doubts.due(began + Duration::from_millis(599)), None);
        assert_eq!(doubts.due(began + Duration::from_millis(620)), Some(flows[0]));
        assert_eq!(doubts.due(began + Duration::from_millis(620)), None);
        assert!(!doubts.is_empty());
        assert_eq!(doubts.due(began + Duration::from_millis(650)), Some(flows[1]));
        assert!(doubts.is_empty());
    }
}
