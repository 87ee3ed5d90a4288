//! Join-shortest-weighted-queue: the back-end with the fewest bytes still to be sent.
//!
//! Citation: the size-aware baseline of AdaptLoad's first version (Riska, Sun, Smirni and Ciardo, "AdaptLoad: effective
//! balancing in clustered web servers under transient load conditions", ICDCS 2002), see AdaptLoad, section 5, footnote 3.
//!
//! ```text
//! n <- back-end with the least sum of sizes in progress / weight, ties at random
//! send r to n
//! ```
//!
//! A request of unknown size counts as the mean of the known ones so far.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{BuildContext, Built, PolicySpec};
use crate::cluster::{BackendId, ClusterView};
use crate::params::ParamSet;
use crate::policy::{Completion, Decision, Policy, assign_or_reject};
use crate::request::{Request, TargetId};
use crate::rng::Rng;
use crate::time::Time;

/// Stream of the run's seed that this policy draws from.
const STREAM: u64 = 0x6a73_7771;

/// Requests for one target at one back-end.
#[derive(Debug, Clone, Copy, Default)]
struct InProgress {
    requests: u64,
    bytes: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct JoinShortestWeightedQueue {
    rng: Rng,
    /// Bytes in progress by back-end.
    queued: Vec<u64>,
    /// What is in progress: as much is taken off at the end of a request as was added at its beginning.
    in_progress: HashMap<(TargetId, BackendId), InProgress, FixedState>,
    known: InProgress,
}

impl JoinShortestWeightedQueue {
    /// Draws from the stream that `seed` gives.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed, STREAM),
            queued: Vec::new(),
            in_progress: HashMap::default(),
            known: InProgress::default(),
        }
    }

    fn relative(&self, b: BackendId, view: &ClusterView) -> f64 {
        let bytes = self.queued.get(b.index()).copied().unwrap_or(0);
        bytes as f64 / f64::from(view.weight(b).steps())
    }
}

impl Policy for JoinShortestWeightedQueue {
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        let (mut least, mut chosen, mut ties) = (f64::INFINITY, None, 0);
        for b in view.eligible_ids() {
            let relative = self.relative(b, view);
            ties = if relative < least { 1 } else { ties + u64::from(relative <= least) };
            if relative < least || (relative <= least && self.rng.below(ties) == 0) {
                (least, chosen) = (relative, Some(b));
            }
        }
        assign_or_reject(chosen)
    }

    fn on_assign(&mut self, request: &Request, backend: BackendId, view: &ClusterView, _: Time) {
        let mean = self.known.bytes.checked_div(self.known.requests).unwrap_or(0);
        // An empty response is something to do, too.
        let bytes = request.size_bytes.unwrap_or(mean).max(1);
        if request.size_bytes.is_some() {
            self.known.requests += 1;
            self.known.bytes = self.known.bytes.saturating_add(bytes);
        }
        self.queued.resize(view.len(), 0);
        let entry = self.in_progress.entry((request.target, backend)).or_default();
        // More than fits is not counted: a sum of sizes that nobody has.
        let bytes = bytes.min(u64::MAX - self.queued[backend.index()]);
        self.queued[backend.index()] += bytes;
        entry.requests += 1;
        entry.bytes += bytes;
    }

    fn on_complete(&mut self, completion: &Completion, _: &ClusterView, _: Time) {
        let key = (completion.target, completion.backend);
        let Some(entry) = self.in_progress.get_mut(&key) else { return };
        let bytes = entry.bytes / entry.requests;
        entry.requests -= 1;
        entry.bytes -= bytes;
        let over = entry.requests == 0;
        self.queued[completion.backend.index()] -= bytes;
        if over {
            self.in_progress.remove(&key);
        }
    }

    fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![("queued_bytes", self.queued.iter().map(|&bytes| bytes as f64).sum())]
    }
}

fn build(context: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(JoinShortestWeightedQueue::new(context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "join_shortest_weighted_queue",
    aliases: &["jswq"],
    summary: "the fewest bytes in progress per unit of weight",
    source: "AdaptLoad (ICDCS 2002)",
    weighted: true,
    params: &[],
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::front_end::{AdmissionLimit, FrontEnd};
    use crate::request::Outcome;
    use crate::time::Nanos;

    fn offer(fe: &mut FrontEnd, target: u64, size_bytes: Option<u64>) -> usize {
        match fe.offer(&Request { size_bytes, ..Request::of(target, TargetId(target)) }, Time::ZERO) {
            Decision::Assign(b) => b.index(),
            other => panic!("{other:?}"),
        }
    }

    fn complete(fe: &mut FrontEnd, target: u64, backend: usize) {
        let completion = Completion {
            target: TargetId(target),
            backend: BackendId::new(backend),
            outcome: Outcome::Completed,
            size_bytes: Some(1),
            response_time: Nanos::ZERO,
        };
        fe.complete(&completion, Time::ZERO);
    }

    #[test]
    fn bytes_count_and_not_requests() {
        let policy = Box::new(JoinShortestWeightedQueue::new(2));
        let mut fe = FrontEnd::new(policy, Cluster::new(2), AdmissionLimit::Unlimited);
        let large = offer(&mut fe, 0, Some(1_000));
        let other = 1 - large;
        assert!((1..=9).all(|target| offer(&mut fe, target, Some(100)) == other));
        // Of unknown size: 190 bytes.
        assert_eq!((offer(&mut fe, 10, None), offer(&mut fe, 11, Some(1))), (other, large));
        (1..=10).for_each(|target| complete(&mut fe, target, other));
        assert_eq!(fe.policy().stats(), [("queued_bytes", 1_001.0)]);
        complete(&mut fe, 0, large);
        complete(&mut fe, 11, large);
        assert_eq!(fe.policy().stats(), [("queued_bytes", 0.0)]);
    }
}
