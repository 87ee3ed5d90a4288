//! The event queue: keyed by (time, sequence), so that events of equal time leave in the order in which they came.

use plimsoll_policy::Time;

/// Children per node. Four makes the heap half as deep as a binary one, and the four children share cache lines.
const ARITY: usize = 4;
const _: () = assert!(ARITY == 4, "`first_of` compares four");

#[derive(Clone, Copy)]
struct Scheduled<E> {
    time: u64,
    sequence: u64,
    event: E,
}

impl<E> Scheduled<E> {
    #[inline]
    fn key(&self) -> u128 {
        key(Time::from_nanos(self.time), self.sequence)
    }
}

/// Time and sequence number of an event: one wide comparison instead of two branches.
#[inline]
pub(crate) fn key(time: Time, sequence: u64) -> u128 {
    (u128::from(time.as_nanos()) << 64) | u128::from(sequence)
}

/// The time of a [`key`].
#[inline]
pub(crate) fn time_of(key: u128) -> Time {
    Time::from_nanos((key >> 64) as u64)
}

/// A 4-ary heap of future events.
pub struct EventQueue<E> {
    heap: Vec<Scheduled<E>>,
    next_sequence: u64,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: Vec::new(), next_sequence: 0 }
    }
}

impl<E: Copy> EventQueue<E> {
    /// Schedules `event` at `time`.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        let entry = Scheduled { time: time.as_nanos(), sequence: self.ticket(), event };
        self.heap.push(entry);
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Takes the next sequence number, for an event that is kept outside the heap but ordered with it.
    #[inline]
    pub fn ticket(&mut self) -> u64 {
        let ticket = self.next_sequence;
        self.next_sequence += 1;
        ticket
    }

    /// Time and sequence number of the earliest event.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<(Time, u64)> {
        self.heap.first().map(|e| (Time::from_nanos(e.time), e.sequence))
    }

    /// The [`key`] of the earliest event; `u128::MAX`, which is none's, without any.
    #[inline]
    pub(crate) fn first_key(&self) -> u128 {
        self.heap.first().map_or(u128::MAX, Scheduled::key)
    }

    /// Takes the earliest event; of equal times the one scheduled first.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let last = self.heap.pop()?;
        let Some(&first) = self.heap.first() else {
            return Some((Time::from_nanos(last.time), last.event));
        };
        self.sift_down(last);
        Some((Time::from_nanos(first.time), first.event))
    }

    /// Number of events scheduled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is scheduled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Which of the first [`ARITY`] of `nodes` is earliest.
    #[inline]
    fn first_of(nodes: &[Scheduled<E>]) -> usize {
        // Any child is equally likely to be first: a branch would be predicted wrongly half the time.
        let first = |a: usize, b: usize| a + (b - a) * usize::from(nodes[b].key() < nodes[a].key());
        match nodes.len() {
            0 | 1 => 0,
            2 => first(0, 1),
            3 => first(first(0, 1), 2),
            _ => first(first(0, 1), first(2, 3)),
        }
    }

    #[inline]
    fn sift_down(&mut self, entry: Scheduled<E>) {
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            if first >= self.heap.len() {
                break;
            }
            let least = first + Self::first_of(&self.heap[first..]);
            if entry.key() <= self.heap[least].key() {
                break;
            }
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a stable sort by time.
        #[test]
        fn leaves_by_time_then_first_come_first_served(times in prop::collection::vec(0u64..20, 0..200)) {
            let mut queue = EventQueue::default();
            for (n, &t) in times.iter().enumerate() {
                queue.push(Time::from_nanos(t), n);
            }
            let mut expected: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort_by_key(|&(t, _)| t);
            let got: Vec<(u64, usize)> = std::iter::from_fn(|| queue.pop()).map(|(t, n)| (t.as_nanos(), n)).collect();
            prop_assert_eq!(got, expected);
        }

        /// Popping between pushes, as a simulation does.
        #[test]
        fn never_goes_back(steps in prop::collection::vec((0u64..50, any::<bool>()), 0..300)) {
            let mut queue = EventQueue::default();
            let mut now = Time::ZERO;
            for (delay, pop) in steps {
                if pop {
                    if let Some((time, ())) = queue.pop() {
                        prop_assert!(time >= now);
                        now = time;
                    }
                } else {
                    queue.push(now + plimsoll_policy::Nanos::new(delay), ());
                }
            }
        }
    }
}
