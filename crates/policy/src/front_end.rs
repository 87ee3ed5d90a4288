//! The front-end's part of a decision that is no policy's: the admission limit and the count of outstanding requests.
//!
//! Simulator and live front-end share this code, so that both admit, count and report alike.

use crate::cluster::{BackendId, Change, Cluster, ClusterView, Health};
use crate::policy::{Completion, Decision, Policy, PollAnswer};
use crate::request::Request;
use crate::thresholds::Thresholds;
use crate::time::Time;
use crate::weight::Weight;

/// How many requests the front-end lets into the cluster at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionLimit {
    /// As many as come.
    Unlimited,
    /// This many.
    Fixed(u64),
    /// LARD's S for the back-ends that are up (section 2.4).
    Lard(Thresholds),
}

impl AdmissionLimit {
    /// The limit for the cluster as it is now.
    #[must_use]
    pub fn requests(self, view: &ClusterView) -> u64 {
        match self {
            // Without a back-end requests wait for one to come up.
            _ if view.eligible() == 0 => 0,
            Self::Unlimited => u64::MAX,
            Self::Fixed(limit) => limit,
            Self::Lard(thresholds) => thresholds.admission_limit(view),
        }
    }
}

/// A policy, the cluster it sees, and the admission limit.
pub struct FrontEnd {
    policy: Box<dyn Policy>,
    cluster: Cluster,
    admission: AdmissionLimit,
    limit: u64,
}

impl FrontEnd {
    /// A front-end that asks `policy` about requests to `cluster`.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, cluster: Cluster, admission: AdmissionLimit) -> Self {
        let limit = admission.requests(&cluster);
        Self { policy, cluster, admission, limit }
    }

    /// The cluster as it is.
    #[must_use]
    pub fn view(&self) -> &ClusterView {
        &self.cluster
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// The admission limit S now.
    #[must_use]
    pub fn admission_limit(&self) -> u64 {
        self.limit
    }

    /// Whether the admission limit leaves room for one more request.
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        self.cluster.total_load() < self.limit
    }

    /// Decides about `request`. `Assign` has been counted already when this returns; `Wait` means that the admission
    /// limit is reached and the request is to be offered again after a completion.
    pub fn offer(&mut self, request: &Request, now: Time) -> Decision {
        if !self.has_room() {
            return Decision::Wait;
        }
        let decision = self.policy.choose(request, &self.cluster, now);
        self.settle(request, decision, now)
    }

    /// Decides about a polled `request` from the answers that came.
    pub fn answer_poll(&mut self, request: &Request, answers: &[PollAnswer], now: Time) -> Decision {
        let decision = self.policy.on_poll(request, answers, &self.cluster, now);
        self.settle(request, decision, now)
    }

    /// Asks the policy about `request`, or about the `answers` to its poll, but carries out `taken`: how a replay keeps a
    /// policy on the path that a decision log tells. Returns what the policy decided. The admission limit does not
    /// apply.
    ///
    /// # Panics
    /// When `taken` names a back-end that the cluster does not have.
    pub fn follow(
        &mut self,
        request: &Request,
        answers: Option<&[PollAnswer]>,
        taken: Decision,
        now: Time,
    ) -> Decision {
        let decision = match answers {
            None => self.policy.choose(request, &self.cluster, now),
            Some(answers) => self.policy.on_poll(request, answers, &self.cluster, now),
        };
        if let Decision::Assign(b) = taken {
            self.cluster.assign(b);
            self.policy.on_assign(request, b, &self.cluster, now);
        }
        decision
    }

    fn settle(&mut self, request: &Request, decision: Decision, now: Time) -> Decision {
        if let Decision::Assign(b) = decision {
            debug_assert!(
                self.cluster.is_eligible(b),
                "a policy chose a back-end that takes no new requests"
            );
            self.cluster.assign(b);
            self.policy.on_assign(request, b, &self.cluster, now);
        }
        decision
    }

    /// Reports the end of a request, exactly once for each assignment.
    pub fn complete(&mut self, completion: &Completion, now: Time) {
        self.cluster.complete(completion.backend);
        self.policy.on_complete(completion, &self.cluster, now);
    }

    /// Reports the end of a request that an earlier policy assigned: it no longer counts in the cluster, and the policy,
    /// which never heard of it, is not told.
    pub fn complete_foreign(&mut self, b: BackendId) {
        self.cluster.complete(b);
    }

    /// Counts a request that a back-end has without the policy having been asked, because its connection is there; it ends
    /// through [`FrontEnd::complete_foreign`].
    pub fn stay(&mut self, b: BackendId) {
        self.cluster.assign(b);
    }

    /// From now on another admission limit applies.
    pub fn set_admission(&mut self, admission: AdmissionLimit) {
        self.admission = admission;
        self.limit = admission.requests(&self.cluster);
    }

    /// From now on asks `policy`, under `admission`. The cluster stays with its loads; requests under way end through
    /// [`FrontEnd::complete_foreign`].
    pub fn replace_policy(&mut self, policy: Box<dyn Policy>, admission: AdmissionLimit) {
        self.policy = policy;
        self.set_admission(admission);
    }

    /// Passes on what several front-ends have seen of sizes; see [`Policy::on_sizes`].
    pub fn learn_sizes(&mut self, load: &[(u64, u64)], now: Time) {
        self.policy.on_sizes(load, now);
    }

    /// Sets the health of a back-end and tells the policy.
    pub fn set_health(&mut self, b: BackendId, health: Health, now: Time) {
        self.cluster.set_health(b, health);
        self.changed(b, Change::Health(health), now);
    }

    /// Sets the weight of a back-end and tells the policy.
    pub fn set_weight(&mut self, b: BackendId, weight: Weight, now: Time) {
        self.cluster.set_weight(b, weight);
        self.changed(b, Change::Weight(weight), now);
    }

    /// Adds a back-end and tells the policy.
    pub fn join(&mut self, weight: Weight, key: u64, now: Time) -> BackendId {
        let b = self.cluster.join(weight, key);
        self.changed(b, Change::Joined, now);
        b
    }

    /// Passes on a tick.
    pub fn tick(&mut self, now: Time) {
        self.policy.on_tick(&self.cluster, now);
    }

    fn changed(&mut self, b: BackendId, change: Change, now: Time) {
        self.limit = self.admission.requests(&self.cluster);
        self.policy.on_membership(b, change, &self.cluster, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::round_robin::RoundRobin;
    use crate::request::{Outcome, TargetId};
    use crate::time::Nanos;

    fn done(backend: BackendId) -> Completion {
        Completion {
            target: TargetId(1),
            backend,
            outcome: Outcome::Completed,
            size_bytes: None,
            response_time: Nanos::ZERO,
        }
    }

    #[test]
    fn the_limit_makes_requests_wait_until_one_completes() {
        let mut fe = FrontEnd::new(Box::<RoundRobin>::default(), Cluster::new(2), AdmissionLimit::Fixed(2));
        let request = Request::of(0, TargetId(1));
        assert_eq!(fe.offer(&request, Time::ZERO), Decision::Assign(BackendId(0)));
        assert_eq!(fe.offer(&request, Time::ZERO), Decision::Assign(BackendId(1)));
        assert_eq!(fe.offer(&request, Time::ZERO), Decision::Wait);
        fe.complete(&done(BackendId(1)), Time::ZERO);
        assert_eq!(fe.offer(&request, Time::ZERO), Decision::Assign(BackendId(0)));
    }

    #[test]
    fn lards_limit_follows_the_number_of_live_backends() {
        let lard = AdmissionLimit::Lard(Thresholds { t_low: 25, t_high: 65 });
        let mut fe = FrontEnd::new(Box::<RoundRobin>::default(), Cluster::new(8), lard);
        assert_eq!(fe.admission_limit(), 7 * 65 + 25 - 1);
        fe.set_health(BackendId(3), Health::Down, Time::ZERO);
        assert_eq!(fe.admission_limit(), 6 * 65 + 25 - 1);
        fe.join(Weight::ONE, 99, Time::ZERO);
        assert_eq!(fe.admission_limit(), 7 * 65 + 25 - 1);
    }

    /// Fails on a request that it did not assign.
    #[derive(Default)]
    struct OwnOnly(u32);

    impl Policy for OwnOnly {
        fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
            crate::policy::assign_or_reject(view.least_loaded())
        }

        fn on_assign(&mut self, _: &Request, _: BackendId, _: &ClusterView, _: Time) {
            self.0 += 1;
        }

        fn on_complete(&mut self, _: &Completion, _: &ClusterView, _: Time) {
            self.0 = self.0.checked_sub(1).unwrap();
        }

        fn stats(&self) -> Vec<(&'static str, f64)> {
            vec![("outstanding", f64::from(self.0))]
        }
    }

    #[test]
    fn a_new_policy_inherits_the_loads_but_not_the_requests() {
        let mut fe = FrontEnd::new(Box::<RoundRobin>::default(), Cluster::new(2), AdmissionLimit::Fixed(2));
        let request = Request::of(0, TargetId(1));
        assert_eq!(fe.offer(&request, Time::ZERO), Decision::Assign(BackendId(0)));
        fe.replace_policy(Box::<OwnOnly>::default(), AdmissionLimit::Fixed(3));
        assert_eq!((fe.admission_limit(), fe.view().total_load()), (3, 1));
        // The least loaded one: back-end 0 still has the first request.
        assert_eq!(fe.offer(&request, Time::ZERO), Decision::Assign(BackendId(1)));
        fe.complete_foreign(BackendId(0));
        assert_eq!(fe.view().load(BackendId(0)), 0);
        assert_eq!(fe.policy().stats(), [("outstanding", 1.0)]);
        fe.complete(&done(BackendId(1)), Time::ZERO);
        assert_eq!(fe.view().total_load(), 0);
        assert_eq!(fe.policy().stats(), [("outstanding", 0.0)]);
    }

    #[test]
    fn a_request_that_stays_is_load_but_no_news_to_the_policy() {
        let mut fe = FrontEnd::new(Box::<OwnOnly>::default(), Cluster::new(2), AdmissionLimit::Unlimited);
        fe.stay(BackendId(1));
        assert_eq!((fe.view().load(BackendId(1)), fe.policy().stats()), (1, vec![("outstanding", 0.0)]));
        fe.complete_foreign(BackendId(1));
        assert_eq!(fe.view().total_load(), 0);
    }

    #[test]
    fn a_front_end_starts_with_the_loads_of_its_cluster() {
        let mut cluster = Cluster::new(2);
        cluster.assign(BackendId(0));
        let mut fe = FrontEnd::new(Box::<OwnOnly>::default(), cluster, AdmissionLimit::Fixed(2));
        assert_eq!(fe.offer(&Request::of(0, TargetId(1)), Time::ZERO), Decision::Assign(BackendId(1)));
        assert_eq!(fe.offer(&Request::of(1, TargetId(1)), Time::ZERO), Decision::Wait);
    }

    #[test]
    fn following_counts_what_was_taken_and_tells_what_the_policy_wanted() {
        let mut fe = FrontEnd::new(Box::<OwnOnly>::default(), Cluster::new(2), AdmissionLimit::Unlimited);
        let (request, taken) = (Request::of(0, TargetId(1)), Decision::Assign(BackendId(1)));
        assert_eq!(fe.follow(&request, None, taken, Time::ZERO), Decision::Assign(BackendId(0)));
        assert_eq!((fe.view().load(BackendId(0)), fe.view().load(BackendId(1))), (0, 1));
        let answers = [PollAnswer { backend: BackendId(1), load: 0 }];
        assert_eq!(fe.follow(&request, Some(&answers), Decision::Wait, Time::ZERO), taken);
        assert_eq!(fe.view().total_load(), 1);
        assert_eq!(fe.policy().stats(), [("outstanding", 1.0)]);
    }
}
