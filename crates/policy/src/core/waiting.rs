//! The admission queue: requests that wait for room, first come, first served, by their numbers.

use std::collections::VecDeque;

use super::offer::OfferOptions;
use crate::request::Request;

/// A request that waits, or whose poll is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRequest {
    /// What is asked for.
    pub request: Request,
    /// Its options.
    pub options: OfferOptions,
}

/// The queue, by request number: the lowest goes first, so that a request that came back goes before later ones.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    /// In the order of numbers; `None` where one was taken out. The first one is never `None`.
    places: VecDeque<(u64, Option<WaitingRequest>)>,
    len: usize,
}

/// Empty places are compacted once they outnumber the taken ones by this much.
const EMPTY_PLACES: usize = 64;

impl WaitQueue {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, waiting: WaitingRequest) {
        let number = waiting.request.number;
        // Nearly all requests come in order of their numbers.
        let at = match self.places.back() {
            Some(&(last, _)) if last >= number => self.places.partition_point(|&(n, _)| n < number),
            _ => self.places.len(),
        };
        self.places.insert(at, (number, Some(waiting)));
        self.len += 1;
    }

    pub(super) fn front(&self) -> Option<&WaitingRequest> {
        self.places.front().and_then(|(_, waiting)| waiting.as_ref())
    }

    pub(super) fn pop(&mut self) -> Option<WaitingRequest> {
        let (_, waiting) = self.places.pop_front()?;
        self.len -= 1;
        self.tidy();
        waiting
    }

    /// Removes and returns the request with this number.
    pub(super) fn remove(&mut self, number: u64) -> Option<WaitingRequest> {
        let at = self.places.binary_search_by_key(&number, |&(n, _)| n).ok()?;
        let removed = self.places[at].1.take()?;
        self.len -= 1;
        self.tidy();
        Some(removed)
    }

    /// The waiting requests, next to leave first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &WaitingRequest> {
        self.places.iter().filter_map(|(_, waiting)| waiting.as_ref())
    }

    fn tidy(&mut self) {
        while self.places.front().is_some_and(|(_, waiting)| waiting.is_none()) {
            self.places.pop_front();
        }
        if self.places.len() > 2 * self.len + EMPTY_PLACES {
            self.places.retain(|(_, waiting)| waiting.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::request::TargetId;

    proptest! {
        /// Against a map by number: pushes in any order, pops, removals.
        #[test]
        fn leaves_by_number(steps in prop::collection::vec((0u8..4, 0u64..200), 0..600)) {
            let mut queue = WaitQueue::default();
            let mut plain = BTreeMap::new();
            let mut next = 100;
            for (what, n) in steps {
                match what {
                    0 | 1 => {
                        next += 1;
                        let number = if n < 20 && !plain.contains_key(&n) { n } else { next };
                        let request = Request::of(number, TargetId(n));
                        queue.push(WaitingRequest { request, options: OfferOptions::PLAIN });
                        plain.insert(number, n);
                    }
                    2 => {
                        let popped = queue.pop().map(|w| (w.request.number, w.request.target.0));
                        prop_assert_eq!(popped, plain.pop_first());
                    }
                    _ => prop_assert_eq!(queue.remove(n + 90).is_some(), plain.remove(&(n + 90)).is_some()),
                }
                prop_assert_eq!(queue.len(), plain.len());
                prop_assert_eq!(queue.front().map(|w| w.request.number), plain.keys().next().copied());
                prop_assert!(queue.iter().map(|w| w.request.number).eq(plain.keys().copied()));
                prop_assert!(queue.places.len() <= 2 * queue.len() + EMPTY_PLACES);
            }
        }
    }
}
