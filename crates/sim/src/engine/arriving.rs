//! Arrivals: the next request of the source, and when it arrives.

use plimsoll_policy::Time;

use super::Engine;
use crate::arrivals::Arrived;
use crate::config::{RunError, RunObserver};
use crate::event_queue::{key, time_of};
use crate::front_ends::{FrontEnds, Quiet};
use crate::model::Model;
use crate::workload::{Arrivals, SimRequest};

impl<M: Model, E, S: Iterator<Item = Result<SimRequest, E>>, F: FrontEnds> Engine<'_, M, S, F> {
    /// Gets the next request from the source and sets its arrival time.
    #[inline(always)]
    pub(super) fn fetch(&mut self) -> Result<(), RunError<E>> {
        let Some(request) = self.source.next().transpose().map_err(RunError::Source)? else {
            (self.upcoming, self.arrives) = (None, u128::MAX);
            return Ok(());
        };
        self.upcoming = Some(request);
        if self.config.settles
            && self.arrived == self.config.warmup
            && self.config.arrivals != Arrivals::Closed
        {
            // The request before it is about to be offered: `settle` sees its end.
            (self.arrives, self.settling) = (u128::MAX, self.arrived > 0);
            if self.settling {
                return Ok(());
            }
        }
        let time = self.times.next(&request, self.now);
        self.plan(time);
        Ok(())
    }

    /// Sets when the upcoming one arrives.
    #[inline(always)]
    fn plan(&mut self, time: Time) {
        let closed = self.config.arrivals == Arrivals::Closed;
        self.arrives = if closed { u128::MAX } else { key(time, self.queue.ticket()) };
        if !self.config.hot_spots.is_empty() {
            self.redirect(time);
        }
    }

    /// Lets the request that waits for the end of all others arrive, if they have ended.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        if self.settling && self.jobs.is_empty() && !self.front_ends.holds_requests() {
            self.settling = false;
            if let Some(request) = self.upcoming {
                let time = self.times.next_settled(&request, self.now);
                self.plan(time);
            }
        }
    }

    #[inline(never)]
    fn redirect(&mut self, time: Time) {
        if let Some(request) = &mut self.upcoming {
            self.hot_spots.redirect(request, time);
        }
    }

    /// Lets the upcoming request arrive and fetches the one after it. Returns whether there was one.
    #[inline]
    pub(super) fn arrive(&mut self, observer: &mut dyn RunObserver) -> Result<bool, RunError<E>> {
        // The request is copied here, and lent from here on: a further copy would cost as much as the event.
        let Some(request) = self.upcoming else {
            return Ok(false);
        };
        let arrived = Arrived { time: self.now, number: self.arrived, request };
        self.arrived += 1;
        self.fetch()?;
        let mut quiet = Quiet { now: self.now, ends: self.quiet_ends() };
        let decided = self.front_ends.offer(&arrived, &mut self.model, &mut quiet);
        let has_passed = quiet.now > self.now;
        self.now = quiet.now;
        self.carry_out(&arrived, &decided, observer);
        if has_passed && self.front_ends.waiting() > 0 {
            self.start_waiting(observer);
        }
        Ok(true)
    }

    /// When the next event that is not the front-ends' own comes. In a closed loop the next request may arrive now.
    #[inline]
    pub(super) fn quiet_ends(&self) -> Time {
        match self.config.arrivals {
            Arrivals::Closed => Time::ZERO,
            _ => time_of(self.queue.first_key().min(self.arrives)).min(self.timed),
        }
    }
}
