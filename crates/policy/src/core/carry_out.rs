//! Asks the policy, carries out its decision, and counts load.

use super::{Assigned, Core, OfferOptions, Offered, Phase, Rejection, WaitingRequest, Witness};
use crate::cluster::{BackendId, Health};
use crate::decision::{Decision, assign_or_reject};
use crate::request::Request;
use crate::time::Time;
use crate::weight::Weight;

impl<W: Witness> Core<W> {
    #[inline]
    pub(super) fn ask(&mut self, request: &Request, options: &OfferOptions, now: Time) -> Decision {
        self.without_tried(options, |core| match &mut core.inquirer {
            Some(inquirer) if core.polls_for_policy => inquirer.ask(&core.cluster),
            _ => core.policy.choose(request, &core.cluster, now),
        })
    }

    /// Has the policy decide while back-ends that were tried, or are full, are not eligible.
    #[inline(always)]
    pub(super) fn without_tried(
        &mut self,
        options: &OfferOptions,
        decide: impl FnOnce(&mut Self) -> Decision,
    ) -> Decision {
        let tried = options.tried.as_slice();
        if tried.is_empty() && !self.cluster.any_full() {
            return decide(self);
        }
        if self.cluster.all_full() {
            // They have become so while they were asked for their loads.
            return Decision::Wait;
        }
        let excluded = self.cluster.exclude(tried);
        let decision = match decide(self) {
            // Out of a table that the policy made before.
            Decision::Assign(b) if self.is_left_out(b, excluded, tried) => {
                assign_or_reject(self.cluster.least_loaded())
            }
            decided => decided,
        };
        if excluded {
            self.cluster.readmit(tried);
        }
        decision
    }

    /// Whether a choice is not to be: of a full back-end, or of one that has failed the request. One of weight 0, where a session has
    /// stayed, need not have been excluded.
    fn is_left_out(&self, b: BackendId, excluded: bool, tried: &[BackendId]) -> bool {
        self.cluster.is_full(b) || tried.contains(&b) && (excluded || self.cluster.weight(b) == Weight::ZERO)
    }

    /// Inlined, and calls nothing that needs the result's address: so an assignment stays in registers. Written to memory in
    /// small parts and read back as a whole, it costs a tenth of a cheap decision.
    #[inline(always)]
    pub(super) fn carry_out(
        &mut self,
        request: &Request,
        options: &OfferOptions,
        decision: Decision,
        rejection: Rejection,
        now: Time,
    ) -> Offered {
        match decision {
            Decision::Assign(backend) => {
                Offered::Assigned(self.assign(request, options.begins, backend, now))
            }
            Decision::Reject => Offered::Rejected(rejection),
            Decision::Poll(candidates) => {
                self.poll(request, options);
                Offered::Poll(candidates)
            }
            Decision::Wait => {
                self.wait(request, options);
                Offered::Waits
            }
        }
    }

    #[inline(never)]
    fn poll(&mut self, request: &Request, options: &OfferOptions) {
        self.reserved += 1;
        self.polling.push(request, options);
    }

    #[inline(never)]
    fn wait(&mut self, request: &Request, options: &OfferOptions) {
        let waiting = WaitingRequest { request: request.clone(), options: *options };
        self.waiting.push(request.number, waiting);
    }

    /// Inlined for the same reason.
    #[inline(always)]
    pub(super) fn assign(
        &mut self,
        request: &Request,
        phase: Phase,
        backend: BackendId,
        now: Time,
    ) -> Assigned {
        debug_assert!(
            self.cluster.is_eligible(backend)
                || self.cluster.weight(backend) == Weight::ZERO && self.cluster.health(backend) == Health::Up
                || W::OVERRULES,
            "a policy chose a back-end that takes no new requests"
        );
        if phase.is_load() {
            self.cluster.assign(backend);
            if let Some(growth) = &mut self.growth {
                growth.begins(now, now);
            }
        } else {
            self.reserved += 1;
        }
        if phase != Phase::Prepared {
            self.policy.on_assign(request, backend, &self.cluster, now);
            if self.policy_probes {
                self.probe(now);
            }
        }
        let (number, target, class, epoch) = (request.number, request.target, request.class, self.epoch);
        let generation = self.cluster.backend_generation(backend);
        Assigned { number, target, backend, at: now, phase, epoch, generation, has_stalled: false, class }
    }

    /// Whether the current policy assigned it, to the back-end that has this index now.
    #[inline]
    pub(super) fn is_own(&self, assigned: &Assigned) -> bool {
        assigned.epoch == self.epoch && self.is_there(assigned)
    }

    /// Whether no other back-end has its back-end's index. A back-end with load never leaves.
    #[inline]
    pub(super) fn is_there(&self, assigned: &Assigned) -> bool {
        assigned.phase.is_load() || assigned.generation == self.cluster.backend_generation(assigned.backend)
    }

    /// This request of the current policy is load from now on.
    pub(super) fn perhaps_recent(&mut self, assigned: &Assigned, now: Time) {
        if let Some(growth) = &mut self.growth
            && assigned.epoch == self.epoch
        {
            growth.begins(assigned.at, now);
        }
    }

    /// This request of the current policy is no longer load, if it was.
    pub(super) fn no_longer_recent(&mut self, assigned: &Assigned) {
        if let Some(growth) = &mut self.growth
            && assigned.epoch == self.epoch
            && assigned.phase.is_load()
        {
            growth.ends(assigned.at);
        }
    }

    #[inline]
    pub(super) fn uncount(&mut self, assigned: &Assigned) {
        if assigned.phase.is_load() {
            self.cluster.complete(assigned.backend);
        } else if assigned.phase == Phase::Connecting {
            self.reserved -= 1;
        }
    }
}
