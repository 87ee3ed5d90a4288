//! Clients that were reset are told again, as a RST may be lost or come with an old number. A client that only waits for an
//! answer would never learn that its connection is over.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_datapath::Flow;

use super::numbers::Expected;

/// How often a client is told again.
const MOST: u8 = 3;

/// The time before each repetition. A client answers questions for its numbers at most twice a second.
const PAUSE: Duration = Duration::from_millis(600);

/// How many clients may wait; others are not told again.
const MOST_CLIENTS: usize = 1 << 16;

/// How many are told at a time.
const MOST_AT_ONCE: usize = 512;

#[derive(Debug, Clone, Copy)]
struct Repeat {
    at: Instant,
    flow: Flow,
    numbers: Expected,
    left: u8,
}

/// Clients that were reset lately, in the order in which they are told again.
#[derive(Default)]
pub(super) struct Repeats {
    queue: Mutex<VecDeque<Repeat>>,
}

impl Repeats {
    /// Adds a client that was reset now, by a RST with these numbers.
    pub(super) fn add(&self, flow: Flow, numbers: Expected, now: Instant) {
        self.push(Repeat { at: now + PAUSE, flow, numbers, left: MOST });
    }

    /// Calls `tell` for each client whose time has come. Those for which it returns true are told again.
    pub(super) fn tell(&self, now: Instant, mut tell: impl FnMut(&Flow, Expected) -> bool) {
        for _ in 0..MOST_AT_ONCE {
            // Unlocked while it tells.
            let Some(next) = self.next(now) else { return };
            let left = next.left - 1;
            if tell(&next.flow, next.numbers) && left > 0 {
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
    fn each_client_is_told_three_times_unless_it_is_enough() {
        let repeats = Repeats::default();
        let flow = |port: u16| Flow::new(([10, 0, 0, 9], port).into(), ([10, 0, 0, 1], 80).into());
        let start = Instant::now();
        let numbers = Expected { from_us: 5, from_client: 6 };
        repeats.add(flow(1), numbers, start);
        repeats.add(flow(2), numbers, start);
        let told = |now| {
            let mut told = Vec::new();
            repeats.tell(now, |flow, expected| {
                assert_eq!(expected, numbers);
                told.push(flow.client.port());
                flow.client.port() == 1
            });
            told
        };
        assert!(told(start).is_empty(), "the RST is on its way");
        assert_eq!(told(start + PAUSE), [1, 2]);
        assert_eq!(told(start + PAUSE), [0; 0]);
        assert_eq!(told(start + 2 * PAUSE), [1]);
        assert_eq!(told(start + 3 * PAUSE), [1]);
        assert_eq!(told(start + 9 * PAUSE), [0; 0]);
    }

    #[test]
    fn the_queue_is_bounded() {
        let repeats = Repeats::default();
        let start = Instant::now();
        for number in 0..MOST_CLIENTS + 10 {
            let client = ([10, 0, 0, (number >> 16) as u8], number as u16).into();
            let numbers = Expected { from_us: 0, from_client: 0 };
            repeats.add(Flow::new(client, ([10, 0, 0, 1], 80).into()), numbers, start);
        }
        let mut told = 0;
        for _ in 0..MOST_CLIENTS {
            repeats.tell(start + PAUSE, |_, _| {
                told += 1;
                false
            });
        }
        assert_eq!(told, MOST_CLIENTS);
    }
}
