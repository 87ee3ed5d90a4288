//! What another policy would have done with the requests that the live one got.

use plimsoll_cache::CacheSpec;
use plimsoll_policy::{
    AdmissionLimit, BackendId, Cluster, ClusterView, Completion, Decision, FrontEnd, Health, Policy,
    PollAnswer, Request, Time, Weight,
};

use crate::score::{Score, Scorer};

/// A policy beside the live one: asked about each request that was assigned, told of its end when the live request
/// ends. Its cluster counts its own assignments.
pub struct Counterfactual {
    front_end: FrontEnd,
    scorer: Scorer,
}

impl Counterfactual {
    /// `policy` on `cluster`, scored with caches of this kind and size in bytes.
    #[must_use]
    pub fn new(
        policy: Box<dyn Policy>,
        cluster: Cluster,
        cache: &'static CacheSpec,
        cache_bytes: u64,
    ) -> Self {
        let scorer = Scorer::new(cluster.len(), cache, cache_bytes);
        Self { front_end: FrontEnd::new(policy, cluster, AdmissionLimit::Unlimited), scorer }
    }

    /// The cluster as this policy would have it.
    #[must_use]
    pub fn view(&self) -> &ClusterView {
        self.front_end.view()
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        self.front_end.policy()
    }

    /// A request was assigned in the live system, at this moment: where it would have gone; `None` when the policy
    /// finds no back-end. Polls are answered at once, from the loads of its own cluster.
    pub fn offered(&mut self, request: &Request, now: Time) -> Option<BackendId> {
        let mut decision = self.front_end.offer(request, now);
        if let Decision::Poll(candidates) = decision {
            let view = self.front_end.view();
            let there = candidates.as_slice().iter().copied().filter(|b| b.index() < view.len());
            let answers: Vec<PollAnswer> =
                there.map(|backend| PollAnswer { backend, load: view.load(backend) }).collect();
            decision = self.front_end.answer_poll(request, &answers, now);
        }
        let Decision::Assign(b) = decision else { return None };
        self.scorer.assigned(b, request, now);
        Some(b)
    }

    /// A request ended in the live system. `backend` is where it would have gone, `live` how it ended.
    pub fn completed(&mut self, backend: Option<BackendId>, live: &Completion, now: Time) {
        let Some(backend) = backend.filter(|&b| self.has_load(b)) else { return };
        let own = Completion { backend, ..*live };
        self.front_end.complete(&own, now);
        self.scorer.completed(&own, now);
    }

    /// A back-end has a further request on its connection: no policy would have been asked.
    pub fn stayed(&mut self, backend: BackendId) {
        if backend.index() < self.view().len() {
            self.front_end.stay(backend);
        }
    }

    /// A request ended that was under way from the start, assigned by an earlier policy, or that stayed.
    pub fn completed_foreign(&mut self, backend: BackendId) {
        if self.has_load(backend) {
            self.front_end.complete_foreign(backend);
        }
    }

    /// The health of a back-end is now this.
    pub fn health(&mut self, b: BackendId, health: Health, now: Time) {
        if b.index() < self.view().len() {
            self.front_end.set_health(b, health, now);
            if health == Health::Down {
                self.scorer.down(b);
            }
        }
    }

    /// The weight of a back-end is now this.
    pub fn weight(&mut self, b: BackendId, weight: Weight, now: Time) {
        if b.index() < self.view().len() {
            self.front_end.set_weight(b, weight, now);
        }
    }

    /// A back-end joined. Beyond 65,535, the most that a cluster holds, it is left out.
    pub fn joined(&mut self, weight: Weight, key: u64, now: Time) {
        if self.view().len() < usize::from(u16::MAX) {
            self.front_end.join(weight, key, now);
            self.scorer.joined(self.front_end.view().len(), now);
        }
    }

    /// The policy's tick.
    pub fn ticked(&mut self, now: Time) {
        self.front_end.tick(now);
    }

    /// What its assignments come to so far.
    #[must_use]
    pub fn score(&self) -> Score {
        self.scorer.score()
    }

    fn has_load(&self, b: BackendId) -> bool {
        b.index() < self.view().len() && self.view().load(b) > 0
    }
}
