//! What another policy would have done with the live policy's requests.

use std::collections::BTreeMap;

use plimsoll_cache::CacheSpec;
use plimsoll_policy::{
    AdmissionControl, Assigned, BackendId, Cluster, ClusterView, Completion, Core, Ending, Health,
    HostMetrics, LoadReport, OfferOptions, Offered, Phase, Policy, PollAnswer, Request, SniffedRequest,
    TargetId, Time, Weight,
};

use crate::score::{Score, Scorer};

/// A policy beside the live one. It is asked about each assigned request and hears of its end when the live
/// request ends. Its own cluster counts its own assignments.
pub struct Counterfactual {
    core: Core,
    scorer: Scorer,
    /// This policy's assignment of each live request under way, by number; `None` where it found no back-end.
    under_way: BTreeMap<u64, Option<Assigned>>,
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
        let core = Core::new(policy, cluster, AdmissionControl::UNLIMITED);
        Self { core, scorer, under_way: BTreeMap::new() }
    }

    /// The cluster as this policy would have it.
    #[must_use]
    pub fn view(&self) -> &ClusterView {
        self.core.view()
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        self.core.policy()
    }

    /// A request was assigned in the live system. Returns this policy's choice; `None` when it finds no
    /// back-end. Polls are answered at once from the loads of its own cluster.
    pub fn assigned(&mut self, request: &Request, options: &OfferOptions, now: Time) -> Option<BackendId> {
        let mut offered = self.core.offer_with(request, options, now);
        if let Offered::Poll(candidates) = offered {
            let answers: Vec<PollAnswer> = self.core.view().answers(candidates).collect();
            offered = self.core.answer(request.number, &answers, now).unwrap_or(offered);
        }
        let assigned = match offered {
            Offered::Assigned(assigned) => Some(assigned),
            // In the live system it was assigned; when it would have stopped waiting here is unknown.
            Offered::Waits | Offered::Poll(_) => {
                self.core.give_up(request.number, now);
                None
            }
            Offered::Rejected(_) => None,
        };
        if let Some(assigned) = assigned {
            self.scorer.assigned(assigned.backend, request, now);
        }
        if let Some(Some(lost)) = self.under_way.insert(request.number, assigned) {
            // The log lost the end of an earlier request of this number.
            self.end(&lost, Ending::FAILED, now);
        }
        assigned.map(|assigned| assigned.backend)
    }

    /// Whether the request of this number was assigned live since this policy began, and is under way.
    #[must_use]
    pub fn knows(&self, number: u64) -> bool {
        self.under_way.contains_key(&number)
    }

    /// Request `number` ended in the live system, where `live` had it in `phase`.
    pub fn completed(&mut self, number: u64, live: &Completion, phase: Phase, now: Time) {
        let Completion { outcome, size_bytes, hit, .. } = *live;
        match self.under_way.remove(&number) {
            Some(Some(assigned)) => {
                // Another back-end's cache is another one.
                let hit = hit.filter(|_| assigned.backend == live.backend);
                self.end(&assigned, Ending { outcome, size_bytes, hit }, now);
            }
            Some(None) => {}
            // It was under way from the start.
            None => self.inherited_ended(live.backend, phase),
        }
    }

    /// A request ended in this phase that was under way from the start, or of which only the back-end is
    /// known.
    pub fn inherited_ended(&mut self, backend: BackendId, phase: Phase) {
        if backend.index() < self.view().len() {
            self.core.complete_inherited(backend, phase);
        }
    }

    /// A further request stayed with its connection's back-end; no policy would have been asked. Report its
    /// end by [`Counterfactual::inherited_ended`].
    pub fn stayed(&mut self, backend: BackendId, now: Time) {
        if backend.index() < self.view().len() && !self.view().has_left(backend) {
            self.core.stay(backend, 0, TargetId(0), now);
        }
    }

    /// Request `number`, live on `backend`, changed its phase.
    pub fn moved(&mut self, number: u64, backend: BackendId, from: Phase, to: Option<Phase>, now: Time) {
        match self.under_way.get_mut(&number) {
            // A damaged log may have ended it already.
            Some(Some(assigned)) if !has_load(&self.core, assigned) => {}
            Some(Some(assigned)) => match to {
                Some(Phase::Active) => {
                    self.core.established(assigned, now);
                    self.core.resumed(assigned, now);
                }
                Some(_) => self.core.stalled(assigned, now),
                None => {
                    let assigned = *assigned;
                    self.core.withdraw(assigned, now);
                    self.under_way.remove(&number);
                }
            },
            Some(None) => {}
            None => {
                self.inherited_ended(backend, from);
                if to == Some(Phase::Active) {
                    self.stayed(backend, now);
                }
            }
        }
    }

    /// This request took a choice that the live policy had prepared.
    pub fn taken(&mut self, number: u64, request: &Request, now: Time) {
        if let Some(Some(assigned)) = self.under_way.get_mut(&number) {
            self.core.take(assigned, request, now);
        }
    }

    /// A back-end reported its load.
    pub fn reported(&mut self, report: &LoadReport, now: Time) {
        self.core.report(report, now);
    }

    /// A request passed on a connection.
    pub fn sniffed(&mut self, sniffed: &SniffedRequest, now: Time) {
        self.core.sniffed(sniffed, now);
    }

    /// A back-end was measured.
    pub fn host_metrics(&mut self, metrics: &HostMetrics, now: Time) {
        self.core.host_metrics(metrics, now);
    }

    /// The sum over all front-ends came.
    pub fn shared(&mut self, sum: &[(u64, u64)], now: Time) {
        self.core.share(sum, now);
    }

    /// A back-end's health changed.
    pub fn health(&mut self, b: BackendId, health: Health, now: Time) {
        if b.index() < self.view().len() {
            self.core.set_health(b, health, now);
            if health == Health::Down {
                self.scorer.down(b);
            }
        }
    }

    /// A back-end's weight changed.
    pub fn weight(&mut self, b: BackendId, weight: Weight, now: Time) {
        if b.index() < self.view().len() {
            self.core.set_weight(b, weight, now);
        }
    }

    /// A back-end may have this many requests at once.
    pub fn most_requests(&mut self, b: BackendId, most: Option<u32>, now: Time) {
        if b.index() < self.view().len() {
            self.core.set_most_requests(b, most, now);
        }
    }

    /// A back-end joined. Ignored beyond 65,535, the most that a cluster holds.
    pub fn joined(&mut self, weight: Weight, key: u64, now: Time) {
        if self.core.join("", key, weight, now).is_ok() {
            self.scorer.joined(self.core.view().len(), now);
        }
    }

    /// A back-end left. Requests that only this policy had sent there are lost.
    pub fn left(&mut self, b: BackendId, now: Time) {
        if b.index() >= self.view().len() {
            return;
        }
        for assigned in self.under_way.values_mut() {
            if let Some(lost) = assigned.take_if(|assigned| assigned.backend == b)
                && has_load(&self.core, &lost)
            {
                self.core.complete(&lost, Ending::FAILED, now);
                self.scorer.completed(&ended(&lost, Ending::FAILED, now), now);
            }
        }
        while self.core.view().own_load(b) > 0 && self.core.complete_inherited(b, Phase::Active) {}
        self.core.leave(b, now);
    }

    /// The policy's tick.
    pub fn ticked(&mut self, now: Time) {
        self.core.tick(now);
    }

    /// The score so far.
    #[must_use]
    pub fn score(&self) -> Score {
        self.scorer.score()
    }

    fn end(&mut self, assigned: &Assigned, ending: Ending, now: Time) {
        if has_load(&self.core, assigned) {
            self.core.complete(assigned, ending, now);
        }
        self.scorer.completed(&ended(assigned, ending, now), now);
    }
}

/// Whether the request's back-end still has load to end. A damaged log may end more requests than there are.
fn has_load(core: &Core, assigned: &Assigned) -> bool {
    !assigned.phase().is_load() || core.view().own_load(assigned.backend) > 0
}

fn ended(assigned: &Assigned, ending: Ending, now: Time) -> Completion {
    Completion {
        target: assigned.target,
        backend: assigned.backend,
        outcome: ending.outcome,
        size_bytes: ending.size_bytes,
        hit: ending.hit,
        response_time: now.since(assigned.at),
        class: 0,
    }
}
