//! Back-ends that announce their loads at intervals.

use std::collections::VecDeque;

use plimsoll_policy::{BackendId, ClusterView, Core, Health, LoadReport, Nanos, Rng, Time};

use crate::event_queue::EventQueue;
use crate::load_information::BroadcastParams;
use crate::model::Model;
use crate::outcome::LoadMessages;

/// Stream of the run's seed that intervals are drawn from.
const STREAM: u64 = 0x616E_6E6F;

/// Who takes announcements.
pub(super) struct Receivers<'a> {
    pub(super) cores: &'a mut [Core],
    pub(super) front_ends: u64,
    /// All back-ends.
    pub(super) whole: &'a ClusterView,
}

/// See the module's documentation.
pub(super) struct Announcements {
    how: BroadcastParams,
    rng: Rng,
    /// The back-ends by the time at which each announces next.
    due: EventQueue<BackendId>,
    /// Under way to the front-ends, in the order in which they arrive.
    flying: VecDeque<(Time, LoadReport)>,
}

impl Announcements {
    pub(super) fn new(how: BroadcastParams, backends: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed, STREAM);
        let mut due = EventQueue::default();
        for b in (0..backends).map(BackendId::new) {
            // Jittered ones begin out of step, so that the first interval is like the others.
            let begins = if how.jittered == 1 { rng.unit() } else { 1.0 };
            due.push(Time::ZERO + how.interval_s.scaled(begins), b);
        }
        Self { how, rng, due, flying: VecDeque::new() }
    }

    /// The time of the next event.
    pub(super) fn next(&self) -> Time {
        let due = self.due.peek().map_or(Time::MAX, |(time, _)| time);
        due.min(self.flying.front().map_or(Time::MAX, |(time, _)| *time))
    }

    /// A back-end announces, or an announcement arrives.
    pub(super) fn handle<M: Model>(
        &mut self,
        receivers: &mut Receivers<'_>,
        load_of: impl FnOnce(&M, BackendId) -> u32,
        model: &mut M,
        messages: &mut LoadMessages,
        now: Time,
    ) {
        if self.flying.front().is_some_and(|(time, _)| *time <= now) {
            if let Some((_, report)) = self.flying.pop_front() {
                let receive_ns = self.how.receive_cpu_s.as_nanos().saturating_mul(receivers.front_ends);
                messages.receive_cpu += Nanos::new(receive_ns);
                receivers.cores.iter_mut().for_each(|core| core.report(&report, now));
            }
            return;
        }
        let Some((_, b)) = self.due.pop() else { return };
        let factor = if self.how.jittered == 1 { 0.5 + self.rng.unit() } else { 1.0 };
        self.due.push(now + self.how.interval_s.scaled(factor), b);
        if receivers.whole.health(b) == Health::Down {
            return;
        }
        messages.cpu += model.inquired(b, self.how.cpu_s, now);
        // Each front-end has to take it.
        messages.messages += receivers.front_ends;
        self.flying.push_back((now + self.how.latency_s, LoadReport::of(b, load_of(model, b))));
    }
}
