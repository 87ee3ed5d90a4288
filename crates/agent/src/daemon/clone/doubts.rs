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
const AGAIN: Duration = Duration::from_millis(600);
/// Most clients that are asked again; what ends beyond that was asked once.
const MOST: usize = 65_536;

/// How many are asked again before others of the thread have their turn.
const AT_A_TIME: usize = 32;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Doubts {
    /// In the order of time.
    asked: Mutex<VecDeque<(Flow, Instant)>>,
}

impl Doubts {
    /// How often [`Self::ask_again`] is to be called.
    pub(super) const PERIOD: Duration = Duration::from_millis(100);

    fn asked(&self) -> MutexGuard<'_, VecDeque<(Flow, Instant)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the client of a connection that no kernel has any more that it has ended, as far as its numbers are known, and asks for them.
    /// The kernel resets a client that says something; this is for one that only waits.
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

    /// Tells the clients of a process of this name that was killed. A client that has reset its connection, or whose clone has ended it,
    /// knows.
    pub(super) fn reset_left(&self, router: &PacketRouter, left: Vec<(Flow, CloneEntry)>) {
        let waiting = left.into_iter().filter(|(_, entry)| !entry.reset && !entry.closing);
        let count = waiting.map(|(flow, entry)| self.reset(router, flow, &entry)).count();
        if count > 0 {
            tracing::info!(connections = count, "clients of an earlier process that was killed are reset");
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

    /// Asks some of those again whose time has come. Whether there may be more.
    pub(super) fn ask_again(&self, router: &PacketRouter) -> bool {
        for _ in 0..AT_A_TIME {
            let Some(flow) = self.due(Instant::now()) else { return false };
            ask(router, &flow);
        }
        true
    }

    fn due(&self, now: Instant) -> Option<Flow> {
        let mut asked = self.asked();
        let (_, at) = asked.front()?;
        (now.duration_since(*at) >= AGAIN).then(|| asked.pop_front()).flatten().map(|(flow, _)| flow)
    }

    /// Whether nobody has to be asked again.
    pub(super) fn is_empty(&self) -> bool {
        self.asked().is_empty()
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
