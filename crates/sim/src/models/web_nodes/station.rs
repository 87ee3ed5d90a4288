//! A unit that serves one piece of work after the other: a CPU, a network interface, the file server.

use std::collections::VecDeque;

use plimsoll_policy::{Nanos, Time};

use crate::model::Busy;

/// See the module's documentation. `W` is what is to be done.
#[derive(Debug)]
pub(super) struct Station<W> {
    queue: VecDeque<(W, Nanos)>,
    serving: Option<W>,
    pub(super) busy: Busy,
}

impl<W> Default for Station<W> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), serving: None, busy: Busy::default() }
    }
}

impl<W> Station<W> {
    /// Adds work that takes `span`. Returns when it ends if it begins now; its end has to be scheduled then.
    pub(super) fn add(&mut self, work: W, span: Nanos, now: Time) -> Option<Time> {
        self.queue.push_back((work, span));
        if self.serving.is_some() { None } else { self.begin(now) }
    }

    fn begin(&mut self, now: Time) -> Option<Time> {
        let (work, span) = self.queue.pop_front()?;
        self.busy.begin(now, span);
        self.serving = Some(work);
        Some(now + span)
    }

    /// The work that is done at `now`, and when the next one ends, if there is one.
    pub(super) fn done(&mut self, now: Time) -> (Option<W>, Option<Time>) {
        let done = self.serving.take();
        (done, self.begin(now))
    }

    /// Pieces of work that are there.
    pub(super) fn len(&self) -> usize {
        self.queue.len() + usize::from(self.serving.is_some())
    }

    /// Of what waits, only such work stays.
    pub(super) fn keep(&mut self, stays: impl Fn(&W) -> bool) {
        self.queue.retain(|(work, _)| stays(work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_served_in_order_and_one_at_a_time() {
        let mut station = Station::default();
        let (ms, at) = (Nanos::from_millis, |n| Time::ZERO + Nanos::from_millis(n));
        assert_eq!(station.add('a', ms(3), at(0)), Some(at(3)));
        assert_eq!(station.add('b', ms(2), at(1)), None);
        assert_eq!((station.len(), station.busy.until(at(2))), (2, ms(2)));
        assert_eq!(station.done(at(3)), (Some('a'), Some(at(5))));
        assert_eq!(station.done(at(5)), (Some('b'), None));
        for work in ['c', 'd', 'e'] {
            station.add(work, ms(4), at(7));
        }
        station.keep(|&work| work == 'e');
        assert_eq!(station.done(at(11)), (Some('c'), Some(at(15))), "what is being served is not stopped");
        assert_eq!((station.len(), station.done(at(15)), station.len()), (1, (Some('e'), None), 0));
    }
}
