//! Requests whose load begins or ends at another moment than they do, and choices made ahead.

use super::{Assigned, Core, Ending, OfferOptions, Offered, Phase, Witness};
use crate::request::{Request, TargetId};
use crate::time::Time;

impl<W: Witness> Core<W> {
    /// The connection of a request that was offered as [`Phase::Connecting`] is there: from now on it is load. Changes
    /// nothing in another phase.
    pub fn established(&mut self, assigned: &mut Assigned, now: Time) {
        if assigned.phase == Phase::Connecting {
            self.reserved -= 1;
            // A back-end that has left meanwhile cannot have load.
            let there = self.is_there(assigned);
            if there {
                self.cluster.assign(assigned.backend);
            }
            self.enter(assigned, if there { Phase::Active } else { Phase::Reading }, now);
        }
    }

    /// The back-end is done with a request, and only its client still reads: it is no load any more. Changes nothing in
    /// another phase than [`Phase::Active`].
    pub fn delivered(&mut self, assigned: &mut Assigned, now: Time) {
        if assigned.phase == Phase::Active {
            self.uncount(assigned);
            self.enter(assigned, Phase::Reading, now);
        }
    }

    /// A choice for a request that has not come yet, by policies that do not look at requests. It counts as load until
    /// [`Core::take`] and [`Core::complete`], or [`Core::withdraw`]. Beyond the admission limit there is none to be had.
    pub fn prepare(&mut self, number: u64, now: Time) -> Option<Assigned> {
        if !self.has_room() || !self.waiting.is_empty() {
            return None;
        }
        let options = OfferOptions { begins: Phase::Prepared, ..OfferOptions::PLAIN };
        match self.offer_with(&Request::of(number, TargetId(0)), &options, now) {
            Offered::Assigned(assigned) => Some(assigned),
            Offered::Poll(_) | Offered::Waits => {
                self.give_up(number, now);
                None
            }
            Offered::Rejected(_) => None,
        }
    }

    /// The request for which a choice was prepared is there. Its number stays that of the choice.
    pub fn take(&mut self, assigned: &mut Assigned, request: &Request, now: Time) {
        if assigned.phase != Phase::Prepared {
            return;
        }
        assigned.target = request.target;
        assigned.at = now;
        assigned.phase = Phase::Active;
        if self.is_own(assigned) {
            self.policy.on_assign(request, assigned.backend, &self.cluster, now);
        }
        self.witness.taken(assigned, request, now);
    }

    /// A prepared choice is not needed any more. One that was taken is lost instead.
    pub fn withdraw(&mut self, assigned: Assigned, now: Time) {
        if assigned.phase != Phase::Prepared {
            return self.complete(&assigned, Ending::FAILED, now);
        }
        self.uncount(&assigned);
        let own = self.is_own(&assigned);
        self.witness.moved(&assigned, Phase::Prepared, None, own, now);
    }

    fn enter(&mut self, assigned: &mut Assigned, phase: Phase, now: Time) {
        let from = std::mem::replace(&mut assigned.phase, phase);
        let own = self.is_own(assigned);
        self.witness.moved(assigned, from, Some(phase), own, now);
    }
}
