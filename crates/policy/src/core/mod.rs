//! The core of a front-end, without input or output: everything that decides about requests and is no policy's.
//!
//! A runtime (the simulator, the live front-end, a replay, a shadow policy) hands in what happened and when; the core counts
//! it, asks the policy, and returns what is to be done. Nobody else calls a policy or changes a [`Cluster`].
//!
//! ```text
//! input                               effect
//! offer(request)                      assigned · poll these · waits · rejected
//! answer(answers or none in time)     assigned · waits · rejected
//! start_next()                        the next request that waited: assigned · poll these · rejected
//! give_up(waiting request)
//! established · delivered             load begins, or ends, before the request does
//! prepare · take · withdraw           a choice made ahead of its request
//! complete(assigned)                  room for who waits
//! stay(back-end)                      a further request on a connection that stays: counted, nobody asked
//! join · leave · health · weight      room for who waits
//! report(load) · share(sums) · tick
//! ```
//!
//! After each input that may have made room the runtime calls [`Core::start_next`] until it returns `None`.
//!
//! Each input goes to the core's [`Witness`] with the decision that it led to: that is what a decision log holds.

mod admission;
mod assigned;
mod carry_out;
mod membership;
mod offer;
mod phases;
#[cfg(test)]
mod tests;
mod waiting;
mod witness;

pub use admission::{AdmissionControl, AdmissionLimit};
pub use assigned::{Assigned, Ending, Phase};
pub use membership::ClusterFull;
pub use offer::{OfferOptions, Offered, Rejection, Started, Tried};
pub use waiting::WaitingRequest;
pub use witness::Witness;

use std::collections::BTreeMap;

use assigned::NO_POLICY;
use waiting::WaitQueue;

use crate::capability::least_polled;
use crate::cluster::{BackendId, Cluster, ClusterView};
use crate::policy::{Completion, Decision, LoadReport, Policy, PollAnswer};
use crate::request::{Request, TargetId};
use crate::time::{Nanos, Time};

/// A policy, the cluster that it sees, the admission limit, and the requests that wait or whose polls are under way.
pub struct Core<W = ()> {
    policy: Box<dyn Policy>,
    cluster: Cluster,
    admission: AdmissionControl,
    /// What the admission limit comes to for the cluster of now.
    limit: u64,
    /// Requests that take room without being load: with a poll under way, or not established yet.
    reserved: u64,
    /// Those of them that were there when this core began.
    inherited: u64,
    waiting: WaitQueue,
    polling: BTreeMap<u64, WaitingRequest>,
    /// Counts the policies that there have been: a request ends under the policy that assigned it, or untold.
    epoch: u32,
    witness: W,
}

impl Core<()> {
    /// A core that asks `policy` about requests to `cluster`, which nobody watches.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, cluster: Cluster, admission: AdmissionControl) -> Self {
        Self::with_witness(policy, cluster, admission, ())
    }
}

impl<W: Witness> Core<W> {
    /// The same with a witness.
    #[must_use]
    pub fn with_witness(
        policy: Box<dyn Policy>,
        cluster: Cluster,
        admission: AdmissionControl,
        witness: W,
    ) -> Self {
        let limit = admission.limit.requests(&cluster);
        Self {
            policy,
            cluster,
            admission,
            limit,
            reserved: 0,
            inherited: 0,
            waiting: WaitQueue::default(),
            polling: BTreeMap::new(),
            epoch: 0,
            witness,
        }
    }

    /// The cluster as it is.
    #[must_use]
    #[inline]
    pub fn view(&self) -> &ClusterView {
        &self.cluster
    }

    /// The policy, to be looked at.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// How often the policy wants its tick; `None` for never.
    #[must_use]
    pub fn tick_interval(&self) -> Option<Nanos> {
        self.policy.tick_interval()
    }

    /// What is told of every input.
    #[must_use]
    pub fn witness(&self) -> &W {
        &self.witness
    }

    /// The same, to be changed.
    pub fn witness_mut(&mut self) -> &mut W {
        &mut self.witness
    }

    /// The admission limit S now, in requests.
    #[must_use]
    pub fn admission_limit(&self) -> u64 {
        self.limit
    }

    /// The admission limit and the length of the queue, as set.
    #[must_use]
    pub fn admission(&self) -> AdmissionControl {
        self.admission
    }

    /// Whether the admission limit leaves room for one more request.
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        self.cluster.total_load() + self.reserved < self.limit
    }

    /// Number of requests that wait.
    #[must_use]
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The requests that wait, in the order in which they start.
    pub fn waiting_requests(&self) -> impl Iterator<Item = &WaitingRequest> {
        self.waiting.iter()
    }

    /// Requests that take room under the admission limit without being load.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Decides about `request`, whose number is that of no other request under way, and above those of all that wait.
    #[inline]
    pub fn offer(&mut self, request: &Request, now: Time) -> Offered {
        self.offer_with(request, &OfferOptions::PLAIN, now)
    }

    /// The same, with more to say of the request.
    #[inline]
    pub fn offer_with(&mut self, request: &Request, options: &OfferOptions, now: Time) -> Offered {
        let mut rejection = Rejection::NoBackend;
        let own = if self.waiting.is_empty() && self.has_room() {
            self.ask(request, options, now)
        } else if self.waiting.len() < self.admission.queue {
            Decision::Wait
        } else {
            rejection = Rejection::QueueFull;
            Decision::Reject
        };
        let decision = self.witness.overrule(own);
        let offered = self.carry_out(request, options, decision, rejection, now);
        self.witness.offered(request, options, decision, now);
        offered
    }

    /// The answers to the poll of request `number`: all that came in time, none if its time was up without any. `None` when
    /// that request has no poll under way.
    pub fn answer(&mut self, number: u64, answers: &[PollAnswer], now: Time) -> Option<Offered> {
        let polled = self.polling.remove(&number)?;
        let WaitingRequest { request, options } = &polled;
        self.reserved -= 1;
        let excluded = self.cluster.exclude(options.tried.as_slice());
        let own = match self.policy.as_polls() {
            Some(polls) => polls.on_poll(request, answers, &self.cluster, now),
            None => least_polled(answers, &self.cluster),
        };
        if excluded {
            self.cluster.readmit();
        }
        // One poll for each request: a policy that cannot decide from what came gets the default rule.
        let own = match own {
            Decision::Poll(_) => least_polled(answers, &self.cluster),
            decided => decided,
        };
        let decision = self.witness.overrule(own);
        let offered = self.carry_out(request, options, decision, Rejection::NoBackend, now);
        self.witness.answered(&polled, answers, decision, now);
        Some(offered)
    }

    /// The next request that waited, if it starts now or its deadline has come; to be called until `None`.
    #[inline]
    pub fn start_next(&mut self, now: Time) -> Option<Started> {
        if self.waiting.is_empty() { None } else { self.start_waiting(now) }
    }

    fn start_waiting(&mut self, now: Time) -> Option<Started> {
        let expired = self.waiting.front()?.options.deadline.is_some_and(|deadline| deadline <= now);
        if !expired && !self.has_room() {
            return None;
        }
        let waited = self.waiting.pop()?;
        let WaitingRequest { request, options } = &waited;
        let own = if expired { Decision::Reject } else { self.ask(request, options, now) };
        let decision = self.witness.overrule(own);
        let rejection = if expired { Rejection::Expired } else { Rejection::NoBackend };
        let offered = self.carry_out(request, options, decision, rejection, now);
        self.witness.started(&waited, decision, now);
        (offered != Offered::Waits).then_some(Started { number: request.number, offered })
    }

    /// When the first request in the queue is to be rejected: then [`Core::start_next`] has something to do, if not before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.waiting.front()?.options.deadline
    }

    /// The client of request `number` does not wait any longer; whether it still waited, or its poll was under way.
    pub fn give_up(&mut self, number: u64, now: Time) -> bool {
        let polled = self.polling.remove(&number).is_some();
        self.reserved -= u64::from(polled);
        let gone = polled || self.waiting.remove(number).is_some();
        if gone {
            self.witness.gave_up(number, now);
        }
        gone
    }

    /// Reports the end of a request, exactly once for each assignment.
    ///
    /// # Panics
    /// When its back-end has no request: each assignment ends once.
    #[inline]
    pub fn complete(&mut self, assigned: &Assigned, ending: Ending, now: Time) {
        self.uncount(assigned);
        let completion = Completion {
            target: assigned.target,
            backend: assigned.backend,
            outcome: ending.outcome,
            size_bytes: ending.size_bytes,
            response_time: now.since(assigned.at),
        };
        if self.is_own(assigned) && assigned.phase != Phase::Prepared {
            self.policy.on_complete(&completion, &self.cluster, now);
            self.witness.completed(assigned, &completion, now);
        } else {
            self.witness.completed_foreign(assigned, &completion, now);
        }
    }

    /// Counts a request that a back-end has without the policy having been asked, because its connection is there. At one that has
    /// left it is no load.
    pub fn stay(&mut self, backend: BackendId, number: u64, target: TargetId, now: Time) -> Assigned {
        let generation = self.cluster.backend_generation(backend);
        let phase = if self.cluster.has_left(backend) { Phase::Reading } else { Phase::Active };
        if phase == Phase::Active {
            self.cluster.assign(backend);
        }
        let assigned = Assigned { number, target, backend, at: now, phase, epoch: NO_POLICY, generation };
        self.witness.stayed(&assigned, now);
        assigned
    }

    /// A back-end reported its load. Reaches policies that take reports.
    pub fn report(&mut self, report: &LoadReport, now: Time) {
        if let Some(takes) = self.policy.as_takes_reports() {
            takes.on_report(report, &self.cluster, now);
        }
        self.witness.reported(report, now);
    }

    /// Everything that several front-ends have seen, added up. Reaches policies that share state.
    pub fn share(&mut self, sum: &[(u64, u64)], now: Time) {
        if let Some(shares) = self.policy.as_shares_state() {
            shares.on_shared(sum, now);
        }
        self.witness.shared(sum, now);
    }

    /// The policy's tick.
    pub fn tick(&mut self, now: Time) {
        self.policy.on_tick(&self.cluster, now);
        self.witness.ticked(now);
    }

    /// From now on another admission limit and queue length apply. Requests that wait stay, however many.
    pub fn set_admission(&mut self, admission: AdmissionControl, now: Time) {
        self.admission = admission;
        self.limit = admission.limit.requests(&self.cluster);
        self.witness.admission(admission, now);
    }

    /// From now on asks `policy`, which has seen nothing, under `admission`. The cluster stays with its loads; requests under
    /// way end without the new policy being told, those that wait go on waiting, and those with a poll under way wait
    /// again. The witness is not told: what it is to know of a new policy, its owner tells it.
    pub fn replace_policy(&mut self, policy: Box<dyn Policy>, admission: AdmissionControl) {
        self.policy = policy;
        self.epoch += 1;
        self.admission = admission;
        self.limit = admission.limit.requests(&self.cluster);
        self.reserved -= self.polling.len() as u64;
        for (_, polled) in std::mem::take(&mut self.polling) {
            self.waiting.push(polled);
        }
    }

    /// Ends a request, in this phase, that `backend` had when this core began, or of which nothing else is known: the policy is not
    /// told, nor is the witness. Whether there was one.
    pub fn complete_inherited(&mut self, backend: BackendId, phase: Phase) -> bool {
        match phase {
            Phase::Active | Phase::Prepared if self.cluster.load(backend) > 0 => {
                self.cluster.complete(backend);
            }
            Phase::Connecting if self.inherited > 0 => {
                self.inherited -= 1;
                self.reserved -= 1;
            }
            Phase::Reading => {}
            _ => return false,
        }
        true
    }

    /// Lets `waiting` wait as if it had been offered, and takes `reserved` requests for not established yet: how a replay begins
    /// where an earlier policy had such requests.
    pub fn inherit(&mut self, waiting: impl IntoIterator<Item = WaitingRequest>, reserved: u64) {
        waiting.into_iter().for_each(|waiting| self.waiting.push(waiting));
        self.inherited += reserved;
        self.reserved += reserved;
    }
}
