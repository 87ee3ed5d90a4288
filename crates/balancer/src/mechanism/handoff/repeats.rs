//! Clients that were reset are made to say something, as a RST may be lost or come with an old number. A client that only waits
//! for an answer would never learn that its connection is over.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_datapath::Flow;

/// How often a client is asked. It answers a question only if its connection is still there, and this machine's kernel answers
/// that by a RST with the right number.
const MOST: u8 = 3;

/// The time before each question. A client answers at most twice a second.
const PAUSE: Duration = Duration::from_millis(600);

/// How many clients may wait for a question; others are not asked.
const MOST_CLIENTS: usize = 1 << 16;

/// How many are asked at a time.
const MOST_AT_ONCE: usize = 512;

#[derive(Debug, Clone, Copy)]
struct Repeat {
    at: Instant,
    flow: Flow,
    left: u8,
}

/// Clients that were reset lately, in the order in which they are to be asked.
#[derive(Default)]
pub(super) struct Repeats {
    queue: Mutex<VecDeque<Repeat>>,
}

impl Repeats {
    /// Adds a client that was reset now.
    pub(super) fn add(&self, flow: Flow, now: Instant) {
        self.push(Repeat { at: now + PAUSE, flow, left: MOST });
    }

    /// Calls `ask` for each client whose time has come. Clients for which it returns true are asked again.
    pub(super) fn ask(&self, now: Instant, mut ask: impl FnMut(&Flow) -> bool) {
        for _ in 0..MOST_AT_ONCE {
            // Unlocked while it asks.
            let Some(next) = self.next(now) else { return };
            let left = next.left - 1;
            if ask(&next.flow) && left > 0 {
                self.push(Repeat { at: now + PAUSE, left, ..next });
            }
        }
    }

    fn push(&self, repeat: Repeat) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() < MOST_CLIENTS {
            queue.push_back(repeat);
        }
    }

    fn next(&self, now: Instant) -> Option<Repeat> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front_if(|repeat| repeat.at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_is_asked_three_times_unless_it_is_enough() {
        let repeats = Repeats::default();
        let flow = |port: u16| Flow::new(([10, 0, 0, 9], port).into(), ([10, 0, 0, 1], 80).into());
        let start = Instant::now();
        repeats.add(flow(1), start);
        repeats.add(flow(2), start);
        let asked = |now| {
            let mut asked = Vec::new();
            repeats.ask(now, |flow| {
                asked.push(flow.client.port());
                flow.client.port() == 1
            });
            asked
        };
        assert!(asked(start).is_empty(), "the RST is on its way");
        assert_eq!(asked(start + PAUSE), [1, 2]);
        assert_eq!(asked(start + PAUSE), [0; 0]);
        assert_eq!(asked(start + 2 * PAUSE), [1]);
        assert_eq!(asked(start + 3 * PAUSE), [1]);
        assert_eq!(asked(start + 9 * PAUSE), [0; 0]);
    }

    #[test]
    fn the_queue_is_bounded() {
        let repeats = Repeats::default();
        let start = Instant::now();
        for number in 0..MOST_CLIENTS + 10 {
            let client = ([10, 0, 0, (number >> 16) as u8], number as u16).into();
            repeats.add(Flow::new(client, ([10, 0, 0, 1], 80).into()), start);
        }
        let mut asked = 0;
        for _ in 0..MOST_CLIENTS {
            repeats.ask(start + PAUSE, |_| {
                asked += 1;
                false
            });
        }
        assert_eq!(asked, MOST_CLIENTS);
    }
}
