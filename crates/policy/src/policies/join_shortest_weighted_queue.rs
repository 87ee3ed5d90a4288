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

use crate::capability::ShowsState;
use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Completion, Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::ParamSet;
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
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
    /// Requests in progress: the end of a request subtracts what its beginning added.
    in_progress: HashMap<(TargetId, BackendId), InProgress, FixedState>,
    known: InProgress,
}

impl JoinShortestWeightedQueue {
    /// Draws random numbers from the stream of `seed`.
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
        // An empty response is work, too.
        let bytes = request.size_bytes.unwrap_or(mean).max(1);
        if request.size_bytes.is_some() {
            self.known.requests += 1;
            self.known.bytes = self.known.bytes.saturating_add(bytes);
        }
        self.queued.resize(view.len(), 0);
        let entry = self.in_progress.entry((request.target, backend)).or_default();
        // Saturates, so that the sum cannot overflow.
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

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for JoinShortestWeightedQueue {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![("queued_bytes", self.queued.iter().map(|&bytes| bytes as f64).sum())]
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE
    .shows_state::<JoinShortestWeightedQueue>()
    .needs_content("the size of what a request asks for");

fn build(context: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(JoinShortestWeightedQueue::new(context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "join_shortest_weighted_queue",
    aliases: &["jswq"],
    summary: "the fewest bytes in progress per unit of weight",
    source: "AdaptLoad (ICDCS 2002)",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::None,
    weighted: true,
    params: &[],
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::core::{AdmissionControl, Assigned, Core, Ending, Offered};

    fn offer(core: &mut Core, target: u64, size_bytes: Option<u64>) -> Assigned {
        match core.offer(&Request { size_bytes, ..Request::of(target, TargetId(target)) }, Time::ZERO) {
            Offered::Assigned(assigned) => assigned,
            other => panic!("{other:?}"),
        }
    }

    fn complete(core: &mut Core, assigned: &Assigned) {
        core.complete(assigned, Ending::answered(Some(1)), Time::ZERO);
    }

    #[test]
    fn bytes_count_and_not_requests() {
        let policy = Box::new(JoinShortestWeightedQueue::new(2));
        let mut core = Core::new(policy, Cluster::new(2), AdmissionControl::UNLIMITED);
        let first = offer(&mut core, 0, Some(1_000));
        let other = BackendId(1 - first.backend.0);
        let mut small: Vec<Assigned> = (1..=9).map(|target| offer(&mut core, target, Some(100))).collect();
        assert!(small.iter().all(|assigned| assigned.backend == other));
        // Of unknown size: 190 bytes.
        small.push(offer(&mut core, 10, None));
        let last = offer(&mut core, 11, Some(1));
        assert_eq!((small[9].backend, last.backend), (other, first.backend));
        small.iter().for_each(|assigned| complete(&mut core, assigned));
        assert_eq!(core.policy().stats(), [("queued_bytes", 1_001.0)]);
        complete(&mut core, &first);
        complete(&mut core, &last);
        assert_eq!(core.policy().stats(), [("queued_bytes", 0.0)]);
    }
}
