//! Clients that may not know that their connection has ended.
//!
//! The original of a clone that is lost does not know what its client has received, so its RST may have another number than the
//! client expects. Such a client answers by the right one (RFC 5961, section 3.2), but not more often than twice a second, and
//! its answer may be lost. So it is asked for its numbers at once, and once more later.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_datapath::{Flow, PacketRouter, now_ns};

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

    /// Asks the client of this connection for its numbers, now and later.
    pub(super) fn ask(&self, router: &PacketRouter, flow: Flow) {
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
