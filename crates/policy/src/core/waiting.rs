//! Requests in the core, by their numbers: those that wait for room, first come, first served, and those whose polls are under way.

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

/// A queue by request number: the lowest goes first, so that a request that came back goes before later ones. Any of them may leave
/// before.
#[derive(Debug)]
pub(super) struct ByNumber<T> {
    /// In the order of numbers; `None` where one was taken out. The first one is never `None`.
    places: VecDeque<(u64, Option<T>)>,
    len: usize,
}

impl<T> Default for ByNumber<T> {
    fn default() -> Self {
        Self { places: VecDeque::new(), len: 0 }
    }
}

/// Empty places are compacted once they outnumber the taken ones by this much.
const EMPTY_PLACES: usize = 64;

impl<T> ByNumber<T> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, number: u64, waiting: T) {
        self.len += 1;
        // Nearly all requests come in order of their numbers.
        if self.places.back().is_none_or(|&(last, _)| last < number) {
            self.places.push_back((number, Some(waiting)));
            return;
        }
        let at = self.places.partition_point(|&(n, _)| n < number);
        match self.places.get_mut(at) {
            // It was here before.
            Some((n, place @ None)) if *n == number => *place = Some(waiting),
            _ => self.places.insert(at, (number, Some(waiting))),
        }
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.places.front().and_then(|(_, waiting)| waiting.as_ref())
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let (_, waiting) = self.places.pop_front()?;
        self.len -= 1;
        self.tidy();
        waiting
    }

    /// Removes and returns the request with this number.
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        // Nearly all polls end in the order in which they begin.
        if self.places.front()?.0 == number {
            return self.pop();
        }
        // Where one takes long, those after it do.
        if self.places.back()?.0 == number {
            self.len -= usize::from(self.places.back()?.1.is_some());
            return self.places.pop_back()?.1;
        }
        let at = self.places.binary_search_by_key(&number, |&(n, _)| n).ok()?;
        let removed = self.places[at].1.take()?;
        self.len -= 1;
        self.tidy();
        Some(removed)
    }

    /// The waiting requests, next to leave first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
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

/// Requests whose polls are under way.
///
/// They are large and in boxes, which are used again: nothing but a pointer moves when a poll ends.
#[derive(Debug, Default)]
pub(super) struct PollingRequests {
    under_way: ByNumber<Box<WaitingRequest>>,
    #[allow(clippy::vec_box, reason = "the boxes go back and forth")]
    free: Vec<Box<WaitingRequest>>,
}

impl PollingRequests {
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    #[inline]
    pub(super) fn push(&mut self, request: &Request, options: &OfferOptions) {
        let polled = match self.free.pop() {
            Some(mut polled) => {
                (polled.request, polled.options) = (request.clone(), *options);
                polled
            }
            None => Box::new(WaitingRequest { request: request.clone(), options: *options }),
        };
        self.under_way.push(request.number, polled);
    }

    /// Removes the request with this number. Give it back by [`PollingRequests::reuse`].
    #[inline]
    pub(super) fn remove(&mut self, number: u64) -> Option<Box<WaitingRequest>> {
        self.under_way.remove(number)
    }

    #[inline]
    pub(super) fn reuse(&mut self, polled: Box<WaitingRequest>) {
        self.free.push(polled);
    }

    /// Removes the one with the lowest number.
    pub(super) fn pop(&mut self) -> Option<WaitingRequest> {
        self.under_way.pop().map(|polled| *polled)
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
            let mut queue = ByNumber::default();
            let mut plain = BTreeMap::new();
            let mut next = 100;
            for (what, n) in steps {
                match what {
                    0 | 1 => {
                        next += 1;
                        let number = if n < 20 && !plain.contains_key(&n) { n } else { next };
                        let request = Request::of(number, TargetId(n));
                        queue.push(number, WaitingRequest { request, options: OfferOptions::PLAIN });
                        plain.insert(number, n);
                    }
                    2 => {
                        let popped = queue.pop().map(|w| (w.request.number, w.request.target.0));
                        prop_assert_eq!(popped, plain.pop_first());
                    }
                    // Out of the middle, and perhaps in again.
                    _ => {
                        let (number, comes_back) = (n / 2 + 90, n % 2 == 0);
                        let removed = queue.remove(number);
                        prop_assert_eq!(removed.as_ref().map(|w| w.request.target.0), plain.get(&number).copied());
                        match removed {
                            Some(removed) if comes_back => queue.push(number, removed),
                            _ => drop(plain.remove(&number)),
                        }
                    }
                }
                prop_assert_eq!(queue.len(), plain.len());
                prop_assert_eq!(queue.front().map(|w| w.request.number), plain.keys().next().copied());
                prop_assert!(queue.iter().map(|w| w.request.number).eq(plain.keys().copied()));
                prop_assert!(queue.places.len() <= 2 * queue.len() + EMPTY_PLACES);
            }
        }
    }
}
