//! Phases of assigned requests, and prepared choices.

use super::{Assigned, Core, Ending, OfferOptions, Offered, Phase, Witness};
use crate::cluster::BackendId;
use crate::decision::PollAnswer;
use crate::request::{Kind, Request, TargetId};
use crate::time::Time;

impl<W: Witness> Core<W> {
    /// The connection of a [`Phase::Connecting`] request is established: it counts as load from now on. No
    /// effect in other phases.
    pub fn established(&mut self, assigned: &mut Assigned, now: Time) {
        self.advance(now);
        if assigned.phase == Phase::Connecting {
            self.reserved -= 1;
            // A back-end that has left meanwhile cannot have load.
            let there = self.is_there(assigned);
            if there {
                self.cluster.assign(assigned.backend);
                self.perhaps_recent(assigned, now);
            }
            self.enter(assigned, if there { Phase::Active } else { Phase::Stalled }, now);
        }
    }

    /// From now on only the client of a [`Phase::Active`] request is waited for: it no longer counts as load.
    /// No effect in other phases.
    pub fn stalled(&mut self, assigned: &mut Assigned, now: Time) {
        self.advance(now);
        if assigned.phase == Phase::Active {
            self.uncount(assigned);
            self.no_longer_recent(assigned);
            assigned.has_stalled = true;
            self.enter(assigned, Phase::Stalled, now);
        }
    }

    /// The back-end of a [`Phase::Stalled`] request works on it again: it counts as load, whatever the admission
    /// limit. No effect in other phases, and where the back-end has left.
    pub fn resumed(&mut self, assigned: &mut Assigned, now: Time) {
        self.advance(now);
        if assigned.phase == Phase::Stalled
            && self.is_there(assigned)
            && !self.cluster.has_left(assigned.backend)
        {
            self.cluster.assign(assigned.backend);
            self.perhaps_recent(assigned, now);
            self.enter(assigned, Phase::Active, now);
        }
    }

    /// Prepares a choice for a connection that has not come yet; for policies that ignore what is asked for. Where the policy asks
    /// back-ends, the loads in its view answer. Counts as load until [`Core::take`] and [`Core::complete`], or
    /// [`Core::withdraw`]. `None` at the admission limit.
    pub fn prepare(&mut self, number: u64, now: Time) -> Option<Assigned> {
        self.advance(now);
        if !self.has_room() || !self.waiting.is_empty() {
            return None;
        }
        let options = OfferOptions { begins: Phase::Prepared, ..OfferOptions::PLAIN };
        let request = Request { kind: Kind::Connection, ..Request::of(number, TargetId(0)) };
        let mut offered = Some(self.offer_with(&request, &options, now));
        if let Some(Offered::Poll(asked)) = offered {
            let load_of = |&b: &BackendId| PollAnswer::of(b, self.cluster.load(b));
            let answers: Vec<PollAnswer> = asked.as_slice().iter().map(load_of).collect();
            offered = self.answer(number, &answers, now);
        }
        match offered {
            Some(Offered::Assigned(assigned)) => Some(assigned),
            Some(Offered::Poll(_) | Offered::Waits) => {
                self.give_up(number, now);
                None
            }
            Some(Offered::Rejected(_)) | None => None,
        }
    }

    /// The request for a prepared choice has come. It keeps the number of the choice.
    pub fn take(&mut self, assigned: &mut Assigned, request: &Request, now: Time) {
        if assigned.phase != Phase::Prepared {
            return;
        }
        self.advance(now);
        self.no_longer_recent(assigned);
        (assigned.target, assigned.class) = (request.target, request.class);
        assigned.at = now;
        assigned.phase = Phase::Active;
        self.perhaps_recent(assigned, now);
        // A choice of an earlier policy is load as before; neither the policy nor its run knows of it.
        if self.is_own(assigned) {
            self.policy.on_assign(request, assigned.backend, &self.cluster, now);
            self.witness.taken(assigned, request, now);
        }
    }

    /// Withdraws a prepared choice. One that was already taken ends as failed.
    pub fn withdraw(&mut self, assigned: Assigned, now: Time) {
        if assigned.phase != Phase::Prepared {
            return self.complete(&assigned, Ending::FAILED, now);
        }
        self.advance(now);
        self.uncount(&assigned);
        self.no_longer_recent(&assigned);
        let own = self.is_own(&assigned);
        self.witness.moved(&assigned, Phase::Prepared, None, own, now);
    }

    fn enter(&mut self, assigned: &mut Assigned, phase: Phase, now: Time) {
        let from = std::mem::replace(&mut assigned.phase, phase);
        let own = self.is_own(assigned);
        self.witness.moved(assigned, from, Some(phase), own, now);
    }
}
