//! Asks the policy, carries out its decision, and counts load.

use super::{Assigned, Core, OfferOptions, Offered, Phase, Rejection, WaitingRequest, Witness};
use crate::cluster::BackendId;
use crate::decision::{Candidates, Decision};
use crate::request::Request;
use crate::time::Time;

impl<W: Witness> Core<W> {
    #[inline]
    pub(super) fn ask(&mut self, request: &Request, options: &OfferOptions, now: Time) -> Decision {
        if options.tried.as_slice().is_empty() {
            return self.policy.choose(request, &self.cluster, now);
        }
        let excluded = self.cluster.exclude(options.tried.as_slice());
        let decision = self.policy.choose(request, &self.cluster, now);
        if excluded {
            self.cluster.readmit();
        }
        decision
    }

    #[inline]
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
            Decision::Poll(candidates) => self.poll(request, options, candidates),
            Decision::Wait => self.wait(request, options),
        }
    }

    // These two stay out of line, so that an assignment is inlined where requests are offered.
    #[cold]
    fn poll(&mut self, request: &Request, options: &OfferOptions, candidates: Candidates) -> Offered {
        self.reserved += 1;
        let polled = WaitingRequest { request: request.clone(), options: *options };
        self.polling.insert(request.number, polled);
        Offered::Poll(candidates)
    }

    #[cold]
    fn wait(&mut self, request: &Request, options: &OfferOptions) -> Offered {
        self.waiting.push(WaitingRequest { request: request.clone(), options: *options });
        Offered::Waits
    }

    #[inline]
    pub(super) fn assign(
        &mut self,
        request: &Request,
        phase: Phase,
        backend: BackendId,
        now: Time,
    ) -> Assigned {
        debug_assert!(
            self.cluster.is_eligible(backend) || W::OVERRULES,
            "a policy chose a back-end that takes no new requests"
        );
        if phase.is_load() {
            self.cluster.assign(backend);
        } else {
            self.reserved += 1;
        }
        if phase != Phase::Prepared {
            self.policy.on_assign(request, backend, &self.cluster, now);
        }
        let (number, target, epoch) = (request.number, request.target, self.epoch);
        let generation = self.cluster.backend_generation(backend);
        Assigned { number, target, backend, at: now, phase, epoch, generation }
    }

    /// Whether the current policy assigned it, to the back-end that has this index now.
    #[inline]
    pub(super) fn is_own(&self, assigned: &Assigned) -> bool {
        assigned.epoch == self.epoch && self.is_there(assigned)
    }

    #[inline]
    pub(super) fn is_there(&self, assigned: &Assigned) -> bool {
        assigned.generation == self.cluster.backend_generation(assigned.backend)
    }

    #[inline]
    pub(super) fn uncount(&mut self, assigned: &Assigned) {
        match assigned.phase {
            Phase::Active | Phase::Prepared if self.is_there(assigned) => {
                self.cluster.complete(assigned.backend);
            }
            Phase::Connecting => self.reserved -= 1,
            _ => {}
        }
    }
}
