//! The way of requests through a load index manager, which chooses for all front-ends.

use std::collections::VecDeque;

use plimsoll_policy::{Assigned, Ending, Nanos, Time};

use super::FrontEndDecision;
use crate::arrivals::Arrived;

/// What happens next.
#[derive(Clone, Copy)]
pub(super) enum ManagerEvent {
    /// A front-end's question reaches the manager.
    Asked(Arrived),
    /// The manager's answer reaches the front-end.
    Told(Arrived, FrontEndDecision),
    /// The manager hears that a request has ended about which this core of its decided.
    Ended(u16, Assigned, Ending),
}

/// Messages under way to and from the manager, each kind in the order in which they arrive.
pub(super) struct Manager {
    latency: Nanos,
    asked: VecDeque<(Time, Arrived)>,
    told: VecDeque<(Time, Arrived, FrontEndDecision)>,
    ended: VecDeque<(Time, u16, Assigned, Ending)>,
}

impl Manager {
    pub(super) fn new(latency: Nanos) -> Self {
        Self { latency, asked: VecDeque::new(), told: VecDeque::new(), ended: VecDeque::new() }
    }

    pub(super) fn ask(&mut self, arrived: Arrived, now: Time) {
        self.asked.push_back((now + self.latency, arrived));
    }

    pub(super) fn tell(&mut self, arrived: Arrived, decided: FrontEndDecision, now: Time) {
        self.told.push_back((now + self.latency, arrived, decided));
    }

    pub(super) fn end(&mut self, core: u16, assigned: Assigned, ending: Ending, now: Time) {
        self.ended.push_back((now + self.latency, core, assigned, ending));
    }

    /// Whether requests are on their way to or from the manager.
    pub(super) fn holds_requests(&self) -> bool {
        !self.asked.is_empty() || !self.told.is_empty()
    }

    /// The time of the next event; [`Time::MAX`] where there is none.
    pub(super) fn next(&self) -> Time {
        let asked = self.asked.front().map_or(Time::MAX, |(time, ..)| *time);
        let told = self.told.front().map_or(Time::MAX, |(time, ..)| *time);
        let ended = self.ended.front().map_or(Time::MAX, |(time, ..)| *time);
        asked.min(told).min(ended)
    }

    /// The event of `now`; of several, what frees a place comes first.
    pub(super) fn take(&mut self, now: Time) -> Option<ManagerEvent> {
        if self.ended.front().is_some_and(|(time, ..)| *time <= now) {
            let ended = self.ended.pop_front();
            return ended.map(|(_, core, assigned, ending)| ManagerEvent::Ended(core, assigned, ending));
        }
        if self.asked.front().is_some_and(|(time, ..)| *time <= now) {
            return self.asked.pop_front().map(|(_, arrived)| ManagerEvent::Asked(arrived));
        }
        let due = self.told.front().is_some_and(|(time, ..)| *time <= now);
        let (_, arrived, decided) = due.then(|| self.told.pop_front()).flatten()?;
        Some(ManagerEvent::Told(arrived, decided))
    }
}
