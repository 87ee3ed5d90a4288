//! The sans-I/O core of a front-end: every decision about requests that is not the policy's own.
//!
//! A runtime (simulator, live front-end, replay, shadow policy) passes in what happened and when. The core
//! counts it, asks the policy, and returns what to do. Only the core calls a policy or changes a [`Cluster`].
//!
//! ```text
//! input                               effect
//! offer(request)                      assigned · poll these · waits · rejected
//! answer(answers or none in time)     assigned · waits · rejected
//! start_next()                        the next request that waited: assigned · poll these · rejected
//! give_up(waiting request)
//! established                         load begins later than the request
//! stalled · resumed                   no load while only the client is waited for
//! prepare · take · withdraw           a choice made ahead of its request
//! complete(assigned)                  room for who waits
//! stay(back-end)                      a further request on a connection that stays: counted, nobody asked
//! join · leave · health · weight · most requests      room for who waits
//! report(load)                        what policy and view know of it
//! sniffed(request) · host_metrics     what the policy knows of it
//! take_probes()                       ask these, no request waits for it
//! share(sums) · tick
//! ```
//!
//! After each input that may have made room the runtime calls [`Core::start_next`] until it returns `None`.
//!
//! The core passes each input, with the resulting decision, to its [`Witness`]; a decision log records
//! exactly these.

mod admission;
mod assigned;
mod carry_out;
mod growth;
mod inquirer;
mod inquiries;
mod membership;
mod offer;
mod phases;
mod room;
mod sniffing;
#[cfg(test)]
mod tests;
mod waiting;
mod witness;

pub use admission::{AdmissionControl, AdmissionLimit};
pub use assigned::{Assigned, Ending, Phase};
pub use inquirer::{Inquiries, random_candidates};
pub use membership::ClusterFull;
pub use offer::{OfferOptions, Offered, Rejection, Started, Tried};
pub use waiting::WaitingRequest;
pub use witness::Witness;

use assigned::NO_POLICY;
use growth::Growth;
use inquirer::Inquirer;
use waiting::{ByNumber, PollingRequests};

use crate::capability::least_polled;
use crate::cluster::{BackendId, Cluster, ClusterView};
use crate::decision::{Candidates, Completion, Decision, PollAnswer};
use crate::policy::Policy;
use crate::request::{Request, TargetId};
use crate::time::{Nanos, Time};

/// A policy, the cluster that it sees, the admission limit, and the requests that wait or whose polls are under way.
pub struct Core<W = ()> {
    policy: Box<dyn Policy>,
    cluster: Cluster,
    admission: AdmissionControl,
    /// The admission limit for the cluster as it is now, in requests.
    limit: u64,
    /// For an adaptive limit.
    growth: Option<Box<Growth>>,
    /// Requests that count against the admission limit without being load: polls under way, and connections
    /// not established yet.
    reserved: u64,
    /// Those of them that this core began with.
    inherited: u64,
    waiting: ByNumber<WaitingRequest>,
    /// Those whose polls are under way.
    polling: PollingRequests,
    inquirer: Option<Box<Inquirer>>,
    /// Whether it asks before this policy chooses.
    polls_for_policy: bool,
    /// Whether this policy probes.
    policy_probes: bool,
    /// What it wants to be asked.
    probes: Candidates,
    /// Number of policies before this one. Only the policy that assigned a request hears of its end.
    epoch: u32,
    witness: W,
}

impl Core<()> {
    /// A core without a witness.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, cluster: Cluster, admission: AdmissionControl) -> Self {
        Self::with_witness(policy, cluster, admission, ())
    }
}

impl<W: Witness> Core<W> {
    /// A core with a witness.
    #[must_use]
    pub fn with_witness(
        policy: Box<dyn Policy>,
        cluster: Cluster,
        admission: AdmissionControl,
        witness: W,
    ) -> Self {
        let limit = admission.limit.requests(&cluster);
        let policy_probes = policy.capabilities().can_probe();
        Self {
            policy,
            cluster,
            admission,
            limit,
            growth: admission.limit.growth(),
            reserved: 0,
            inherited: 0,
            waiting: ByNumber::default(),
            polling: PollingRequests::default(),
            inquirer: None,
            polls_for_policy: false,
            policy_probes,
            probes: Candidates::NONE,
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

    /// The policy, read-only.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// The policy's tick interval; `None` for never.
    #[must_use]
    pub fn tick_interval(&self) -> Option<Nanos> {
        self.policy.tick_interval()
    }

    /// The witness.
    #[must_use]
    pub fn witness(&self) -> &W {
        &self.witness
    }

    /// The witness, mutably.
    pub fn witness_mut(&mut self) -> &mut W {
        &mut self.witness
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

    /// Decides about `request`. Its number must be unused by other requests under way and larger than those
    /// of all that wait.
    #[inline]
    pub fn offer(&mut self, request: &Request, now: Time) -> Offered {
        self.offer_with(request, &OfferOptions::PLAIN, now)
    }

    /// Like [`Core::offer`], with options.
    #[inline]
    pub fn offer_with(&mut self, request: &Request, options: &OfferOptions, now: Time) -> Offered {
        self.advance(now);
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

    /// Takes the answers to the poll of request `number`, as many as came in time. `None` when that request
    /// has no poll under way.
    #[inline]
    pub fn answer(&mut self, number: u64, answers: &[PollAnswer], now: Time) -> Option<Offered> {
        let polled = self.polling.remove(number)?;
        let WaitingRequest { request, options } = &*polled;
        self.reserved -= 1;
        let mut raised = None;
        let heard = self.heard(answers, &mut raised);
        let own = self.without_tried(options, |core| match core.policy.as_polls() {
            Some(polls) => polls.on_poll(request, heard, &core.cluster, now),
            None if core.polls_for_policy => core.policy.choose(request, &core.cluster, now),
            None => least_polled(heard, &core.cluster),
        });
        // One poll per request: if the policy asks for another, the default rule decides.
        let own = match own {
            Decision::Poll(_) => least_polled(heard, &self.cluster),
            decided => decided,
        };
        let decision = self.witness.overrule(own);
        let offered = self.carry_out(request, options, decision, Rejection::NoBackend, now);
        self.witness.answered(&polled, answers, decision, now);
        self.polling.reuse(polled);
        Some(offered)
    }

    /// The next waiting request that starts now or whose deadline has passed. Call until `None`.
    #[inline]
    pub fn start_next(&mut self, now: Time) -> Option<Started> {
        if self.waiting.is_empty() { None } else { self.start_waiting(now) }
    }

    fn start_waiting(&mut self, now: Time) -> Option<Started> {
        self.advance(now);
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

    /// The deadline of the first request in the queue: call [`Core::start_next`] then at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.waiting.front()?.options.deadline
    }

    /// The client of request `number` has given up. Returns whether the request was still waiting or polling.
    pub fn give_up(&mut self, number: u64, now: Time) -> bool {
        let polled = self.polling.remove(number).is_some();
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
        let completion = Completion {
            target: assigned.target,
            backend: assigned.backend,
            outcome: ending.outcome,
            size_bytes: ending.size_bytes,
            hit: ending.hit,
            response_time: now.since(assigned.at),
            class: assigned.class,
        };
        // Nearly all requests end here: the current policy assigned them, and they count as load.
        if assigned.phase == Phase::Active && assigned.epoch == self.epoch {
            self.cluster.complete(assigned.backend);
            match &mut self.growth {
                Some(growth) if assigned.has_stalled => {
                    growth.advance(now);
                    growth.ends(assigned.at);
                }
                Some(growth) => growth.completed(&completion, assigned.at, self.limit, &self.cluster, now),
                None => {}
            }
            self.policy.on_complete(&completion, &self.cluster, now);
            self.witness.completed(assigned, &completion, now);
        } else {
            self.complete_unusual(assigned, &completion, now);
        }
    }

    #[inline(never)]
    fn complete_unusual(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        self.advance(now);
        self.uncount(assigned);
        self.no_longer_recent(assigned);
        if self.is_own(assigned) && assigned.phase != Phase::Prepared {
            self.policy.on_complete(completion, &self.cluster, now);
            self.witness.completed(assigned, completion, now);
        } else {
            self.witness.completed_foreign(assigned, completion, now);
        }
    }

    /// Counts a further request on a connection that stays with its back-end; the policy is not asked. Not
    /// counted as load if the back-end has left.
    pub fn stay(&mut self, backend: BackendId, number: u64, target: TargetId, now: Time) -> Assigned {
        let generation = self.cluster.backend_generation(backend);
        let phase = if self.cluster.has_left(backend) { Phase::Stalled } else { Phase::Active };
        if phase == Phase::Active {
            self.cluster.assign(backend);
        }
        let epoch = NO_POLICY;
        let assigned = Assigned {
            number,
            target,
            backend,
            at: now,
            phase,
            epoch,
            generation,
            has_stalled: false,
            class: 0,
        };
        self.witness.stayed(&assigned, now);
        assigned
    }

    /// Passes the sum over all front-ends to a policy that shares state.
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

    /// Replaces the policy and the admission control. The cluster keeps its loads. The new policy does not
    /// hear of the end of requests under way; waiting requests keep waiting, and those with a poll under way
    /// wait again. The core does not tell the witness of the new policy; whoever replaces it does.
    pub fn replace_policy(&mut self, policy: Box<dyn Policy>, admission: AdmissionControl) {
        self.policy = policy;
        (self.policy_probes, self.probes) = (self.policy.capabilities().can_probe(), Candidates::NONE);
        self.set_inquiries(self.inquiries());
        self.epoch += 1;
        self.set_limit(admission);
        self.reserved -= self.polling.len() as u64;
        std::iter::from_fn(|| self.polling.pop())
            .for_each(|polled| self.waiting.push(polled.request.number, polled));
    }

    /// Ends a request in this phase that `backend` had before this core began. Neither policy nor witness is
    /// told. Returns whether there was one.
    pub fn complete_inherited(&mut self, backend: BackendId, phase: Phase) -> bool {
        match phase {
            Phase::Active | Phase::Prepared if self.cluster.own_load(backend) > 0 => {
                self.cluster.complete(backend);
            }
            Phase::Connecting if self.inherited > 0 => {
                self.inherited -= 1;
                self.reserved -= 1;
            }
            Phase::Stalled => {}
            _ => return false,
        }
        true
    }

    /// Queues `waiting` as if offered, and counts `reserved` requests as not established yet: a replay begins
    /// so where an earlier policy had such requests.
    pub fn inherit(&mut self, waiting: impl IntoIterator<Item = WaitingRequest>, reserved: u64) {
        waiting.into_iter().for_each(|waiting| self.waiting.push(waiting.request.number, waiting));
        self.inherited += reserved;
        self.reserved += reserved;
    }
}
