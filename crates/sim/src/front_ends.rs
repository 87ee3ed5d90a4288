//! Who decides about requests: one front-end that knows all loads, or several of which each knows what it is told.

mod announcements;
mod backends;
mod exchange;
mod inquiries;
mod known;
mod manager;
mod several;

pub(crate) use several::Several;

use std::collections::VecDeque;

use plimsoll_policy::{
    Assigned, BackendId, ClusterView, Core, Ending, Health, Nanos, Offered, Policy, PollAnswer, Time, Weight,
};

use crate::arrivals::{Arrived, Poll};
use crate::model::Model;
use crate::outcome::LoadMessages;
use crate::workload::Targets;

/// What becomes of a request.
#[derive(Clone, Copy)]
pub(crate) enum FrontEndDecision {
    /// This front-end has assigned it.
    Starts(u16, Assigned),
    /// It waits, or loads are being asked for.
    Held,
    Rejected,
    /// The back-end failed while the request was on its way to it.
    Lost(u16, Assigned),
}

/// The time while nothing but a front-end's own events happens: it may carry them out at once, and pass that time.
#[derive(Clone, Copy)]
pub(crate) struct Quiet {
    pub(crate) now: Time,
    /// When something else happens, or may happen.
    pub(crate) ends: Time,
}

/// The front-ends of a run.
pub(crate) trait FrontEnds {
    /// The cluster, with the loads that the first front-end sees.
    fn view(&self) -> &ClusterView;
    /// The policy of the first front-end.
    fn policy(&self) -> &dyn Policy;
    /// How often [`FrontEnds::tick`] is due; `None` for never.
    fn tick_interval(&self) -> Option<Nanos>;
    /// Requests assigned to `b` by any of them and not completed.
    fn load(&self, b: BackendId) -> u32;
    /// Whether requests wait here, or loads are being asked for.
    fn holds_requests(&self) -> bool;
    /// The time of its next own event; [`Time::MAX`] for none.
    fn next_event(&self) -> Time;
    /// The same, without the events that alone do not keep a run going.
    fn next_lasting_event(&self) -> Time;
    /// Its next event is due. Returns a request about which has been decided, by that event or by a later one, to the time of which
    /// `quiet` has come.
    fn handle(&mut self, model: &mut impl Model, quiet: &mut Quiet) -> Option<(Arrived, FrontEndDecision)>;
    /// A request arrives. What [`FrontEndDecision::Held`] names is copied. The decision is of the time to which `quiet` has come.
    fn offer(&mut self, arrived: &Arrived, model: &mut impl Model, quiet: &mut Quiet) -> FrontEndDecision;
    /// The next request that waited and now has its turn. Call until `None`.
    fn start_next(&mut self, now: Time) -> Option<(Arrived, FrontEndDecision)>;
    /// Whether a closed loop lets a further request arrive.
    fn has_room(&self) -> bool;
    /// Requests that wait for room.
    fn waiting(&self) -> usize;
    /// A request ended.
    fn complete(&mut self, front_end: u16, assigned: &Assigned, ending: Ending, now: Time);
    /// A request was answered that had begun at `b` as one of `load`. Called after [`FrontEnds::complete`].
    fn answered(&mut self, b: BackendId, load: u32, response_time: Nanos, now: Time) {
        let _ = (b, load, response_time, now);
    }
    /// The policies' tick.
    fn tick(&mut self, now: Time);
    /// A back-end's weight changes.
    fn set_weight(&mut self, b: BackendId, weight: Weight, now: Time);
    /// A back-end's health changes.
    fn set_health(&mut self, b: BackendId, health: Health, now: Time);
    /// The measurement starts.
    fn restart(&mut self);
    /// What load information has cost since then.
    fn messages(self) -> LoadMessages;
}

/// One front-end, which knows all loads at once.
pub(crate) struct One<'a> {
    core: Core,
    targets: &'a Targets,
    /// How long a poll takes; it is answered with the loads at its end.
    poll_time: Nanos,
    /// The requests that wait in the core, in the same order.
    waiting: VecDeque<Arrived>,
    /// In the order in which they end; all take equally long.
    polls: VecDeque<Poll>,
}

impl<'a> One<'a> {
    pub(crate) fn new(core: Core, targets: &'a Targets, poll_time: Nanos) -> Self {
        Self { core, targets, poll_time, waiting: VecDeque::new(), polls: VecDeque::new() }
    }

    #[inline]
    fn carry_out(&mut self, arrived: &Arrived, offered: Offered, now: Time) -> FrontEndDecision {
        match offered {
            Offered::Assigned(assigned) => FrontEndDecision::Starts(0, assigned),
            Offered::Waits => {
                hold(&mut self.waiting, *arrived);
                FrontEndDecision::Held
            }
            Offered::Rejected(_) => FrontEndDecision::Rejected,
            Offered::Poll(candidates) => {
                self.polls.push_back(Poll { ends: now + self.poll_time, arrived: *arrived, candidates });
                match self.poll_time {
                    Nanos::ZERO => self.polled(now).map_or(FrontEndDecision::Held, |(_, decided)| decided),
                    _ => FrontEndDecision::Held,
                }
            }
        }
    }

    /// Answers the first poll under way with the loads of this instant.
    #[inline(never)]
    fn polled(&mut self, now: Time) -> Option<(Arrived, FrontEndDecision)> {
        let Poll { arrived, candidates, .. } = self.polls.pop_front()?;
        let answers: Vec<PollAnswer> = self.core.view().answers(candidates).collect();
        let offered = self.core.answer(arrived.number, &answers, now)?;
        let decided = self.carry_out(&arrived, offered, now);
        Some((arrived, decided))
    }
}

/// Keeps a request that waits in a core, in the core's order.
#[inline(never)]
pub(crate) fn hold(waiting: &mut VecDeque<Arrived>, arrived: Arrived) {
    let after = waiting.iter().rev().take_while(|w| w.number > arrived.number).count();
    waiting.insert(waiting.len() - after, arrived);
}

impl FrontEnds for One<'_> {
    #[inline]
    fn view(&self) -> &ClusterView {
        self.core.view()
    }

    fn policy(&self) -> &dyn Policy {
        self.core.policy()
    }

    fn tick_interval(&self) -> Option<Nanos> {
        self.core.tick_interval()
    }

    #[inline]
    fn load(&self, b: BackendId) -> u32 {
        self.core.view().load(b)
    }

    #[inline]
    fn holds_requests(&self) -> bool {
        !self.waiting.is_empty() || !self.polls.is_empty()
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.polls.front().map_or(Time::MAX, |poll| poll.ends)
    }

    fn next_lasting_event(&self) -> Time {
        self.next_event()
    }

    fn handle(&mut self, _: &mut impl Model, quiet: &mut Quiet) -> Option<(Arrived, FrontEndDecision)> {
        self.polled(quiet.now)
    }

    #[inline]
    fn offer(&mut self, arrived: &Arrived, _: &mut impl Model, quiet: &mut Quiet) -> FrontEndDecision {
        let offered = self.core.offer(&arrived.asked(self.targets), quiet.now);
        self.carry_out(arrived, offered, quiet.now)
    }

    #[inline]
    fn start_next(&mut self, now: Time) -> Option<(Arrived, FrontEndDecision)> {
        let started = self.core.start_next(now)?;
        let arrived = self.waiting.pop_front().expect("what waits in the core waits here");
        debug_assert_eq!(arrived.number, started.number, "the same order");
        let decided = self.carry_out(&arrived, started.offered, now);
        Some((arrived, decided))
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.core.has_room() && self.core.waiting() == 0
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    #[inline(always)]
    fn complete(&mut self, _: u16, assigned: &Assigned, ending: Ending, now: Time) {
        self.core.complete(assigned, ending, now);
    }

    fn tick(&mut self, now: Time) {
        self.core.tick(now);
    }

    fn set_weight(&mut self, b: BackendId, weight: Weight, now: Time) {
        self.core.set_weight(b, weight, now);
    }

    fn set_health(&mut self, b: BackendId, health: Health, now: Time) {
        self.core.set_health(b, health, now);
    }

    fn restart(&mut self) {}

    fn messages(self) -> LoadMessages {
        LoadMessages::default()
    }
}
