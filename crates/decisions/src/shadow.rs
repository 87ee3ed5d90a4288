//! The shadow policy of a live front-end, scored beside the live one.

use plimsoll_cache::CacheSpec;
use plimsoll_policy::{
    Assigned, BackendId, Cluster, Completion, Decision, Health, HostMetrics, LoadReport, OfferOptions, Phase,
    Policy, PollAnswer, Request, SniffedRequest, Time, WaitingRequest, Weight, Witness,
};

use crate::counterfactual::Counterfactual;
use crate::score::{Score, Scorer};

/// Scores of live policy and shadow policy on the same requests.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowScore {
    /// The shadow policy's name.
    pub policy: &'static str,
    /// Score of the live policy, with the same cache model.
    pub live: Score,
    /// Score of the shadow policy.
    pub shadow: Score,
}

/// The shadow policy. As the core's witness it decides about each request that the live core assigns.
pub struct Shadow {
    policy: &'static str,
    counterfactual: Counterfactual,
    live: Scorer,
}

impl Shadow {
    /// Runs the fresh `policy` called `name` on `cluster` as it is now, with modelled caches of this kind and
    /// size in bytes.
    #[must_use]
    pub fn new(
        name: &'static str,
        policy: Box<dyn Policy>,
        cluster: Cluster,
        cache: &'static CacheSpec,
        cache_bytes: u64,
    ) -> Self {
        let live = Scorer::new(cluster.len(), cache, cache_bytes);
        let counterfactual = Counterfactual::new(policy, cluster, cache, cache_bytes);
        Self { policy: name, counterfactual, live }
    }

    /// Both scores so far.
    #[must_use]
    pub fn score(&self) -> ShadowScore {
        let (live, shadow) = (self.live.score(), self.counterfactual.score());
        ShadowScore { policy: self.policy, live, shadow }
    }

    #[inline]
    fn decided(&mut self, request: &Request, options: &OfferOptions, decision: Decision, now: Time) {
        if let Decision::Assign(b) = decision {
            self.live.assigned(b, request, now);
            self.counterfactual.assigned(request, options, now);
        }
    }

    fn ended(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        if self.counterfactual.knows(assigned.number) {
            self.live.completed(completion, now);
        }
        self.counterfactual.completed(assigned.number, completion, assigned.phase(), now);
    }
}

impl Witness for Shadow {
    #[inline]
    fn offered(&mut self, request: &Request, options: &OfferOptions, decision: Decision, now: Time) {
        self.decided(request, options, decision, now);
    }

    fn answered(&mut self, of: &WaitingRequest, _: &[PollAnswer], decision: Decision, now: Time) {
        self.decided(&of.request, &of.options, decision, now);
    }

    fn started(&mut self, waited: &WaitingRequest, decision: Decision, now: Time) {
        self.decided(&waited.request, &waited.options, decision, now);
    }

    fn moved(&mut self, assigned: &Assigned, from: Phase, to: Option<Phase>, _: bool, now: Time) {
        self.counterfactual.moved(assigned.number, assigned.backend, from, to, now);
    }

    fn taken(&mut self, assigned: &Assigned, request: &Request, now: Time) {
        self.counterfactual.taken(assigned.number, request, now);
    }

    #[inline]
    fn completed(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        self.ended(assigned, completion, now);
    }

    fn completed_foreign(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        self.ended(assigned, completion, now);
    }

    fn stayed(&mut self, assigned: &Assigned, now: Time) {
        self.counterfactual.stayed(assigned.backend, now);
    }

    fn reported(&mut self, report: &LoadReport, now: Time) {
        self.counterfactual.reported(report, now);
    }

    fn sniffed(&mut self, sniffed: &SniffedRequest, now: Time) {
        self.counterfactual.sniffed(sniffed, now);
    }

    fn host_metrics(&mut self, metrics: &HostMetrics, now: Time) {
        self.counterfactual.host_metrics(metrics, now);
    }

    fn shared(&mut self, sum: &[(u64, u64)], now: Time) {
        self.counterfactual.shared(sum, now);
    }

    fn health(&mut self, backend: BackendId, health: Health, now: Time) {
        self.counterfactual.health(backend, health, now);
        if health == Health::Down {
            self.live.down(backend);
        }
    }

    fn weight(&mut self, backend: BackendId, weight: Weight, now: Time) {
        self.counterfactual.weight(backend, weight, now);
    }

    fn most_requests(&mut self, backend: BackendId, most: Option<u32>, now: Time) {
        self.counterfactual.most_requests(backend, most, now);
    }

    fn joined(&mut self, _: BackendId, _: &str, key: u64, weight: Weight, now: Time) {
        self.counterfactual.joined(weight, key, now);
        self.live.joined(self.counterfactual.view().len(), now);
    }

    fn left(&mut self, backend: BackendId, now: Time) {
        self.counterfactual.left(backend, now);
    }

    fn ticked(&mut self, now: Time) {
        self.counterfactual.ticked(now);
    }
}
