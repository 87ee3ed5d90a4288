//! LB/GC: locality with a global cache. The front-end keeps a model of every back-end's cache.
//!
//! Citation: Pai et al., ASPLOS 1998, section 4 (LB/GC, an idealized strategy for comparison).
//!
//! ```text
//! if some back-end's modelled cache holds r.target
//!     n <- that back-end
//! else if some modelled cache has room for r.target
//!     n <- the one with the most room
//! else
//!     n <- the one whose next victim was requested longest ago
//! put r.target into the model of n's cache, evicting what must go
//! send r to n
//! ```
//!
//! The models change when a request is dispatched, not when the file has been loaded; otherwise requests that arrive
//! during a load would scatter. Models and back-ends use the same replacement policy and capacity. A target too large
//! to be cached, or computed on demand, goes to the least loaded back-end. The state is bounded by what the caches hold.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_cache::Cache;

use crate::capability::ShowsState;
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Kind, Request, TargetId};
use crate::time::Time;

crate::params! {
    /// Parameters of LB/GC.
    pub struct LbGcParams {
        /// Size assumed for a target whose size is not known.
        unknown_size_bytes: u64 = 8192, 0..=1000000000000, "bytes";
        /// Targets that one modelled cache holds at most, so that tiny targets cannot make the state grow without bound.
        max_targets: u64 = 1_000_000, 1..=4000000000, "targets";
    }
}

/// Where a target is cached, and when it was last requested (in requests seen).
#[derive(Clone, Copy)]
struct Cached {
    on: BackendId,
    last_request: u64,
}

/// See the module's documentation.
pub struct LbGc {
    params: LbGcParams,
    context: BuildContext,
    caches: Vec<Box<dyn Cache>>,
    /// Looked up by key only, never iterated.
    cached: HashMap<u64, Cached, FixedState>,
    evicted: Vec<u64>,
    requests: u64,
    hits: u64,
}

impl LbGc {
    /// With these parameters; `context` describes the back-ends' caches.
    #[must_use]
    pub fn new(params: &LbGcParams, context: &BuildContext) -> Self {
        Self {
            params: *params,
            context: context.clone(),
            caches: Vec::new(),
            cached: HashMap::with_hasher(FixedState::with_seed(1)),
            evicted: Vec::new(),
            requests: 0,
            hits: 0,
        }
    }

    fn hit(&mut self, target: u64, view: &ClusterView) -> Option<BackendId> {
        let cached = self.cached.get_mut(&target).filter(|c| view.is_eligible(c.on))?;
        cached.last_request = self.requests;
        let on = cached.on;
        self.hits += 1;
        self.caches[on.index()].access(target);
        Some(on)
    }

    fn place(&mut self, size_bytes: u64, view: &ClusterView) -> Option<BackendId> {
        let room =
            |b: &BackendId| self.caches[b.index()].capacity_bytes() - self.caches[b.index()].used_bytes();
        let roomiest = view.eligible_ids().max_by_key(|b| (room(b), std::cmp::Reverse(*b)))?;
        if room(&roomiest) >= size_bytes {
            return Some(roomiest);
        }
        let mut oldest = None;
        for b in view.eligible_ids() {
            let victim = self.caches[b.index()].victim();
            let last = victim.and_then(|v| self.cached.get(&v)).map_or(0, |c| c.last_request);
            if oldest.is_none_or(|(least, _)| last < least) {
                oldest = Some((last, b));
            }
        }
        oldest.map(|(_, b)| b)
    }

    fn put(&mut self, target: u64, size_bytes: u64, on: BackendId) {
        // Remove the copy on a back-end that takes no requests now, so that none is modelled twice.
        if let Some(old) = self.cached.remove(&target) {
            self.caches[old.on.index()].remove(target);
        }
        let cache = &mut self.caches[on.index()];
        while cache.len() as u64 >= self.params.max_targets {
            let Some(victim) = cache.victim() else { break };
            cache.remove(victim);
            self.cached.remove(&victim);
        }
        if cache.insert(target, size_bytes, &mut self.evicted) {
            self.cached.insert(target, Cached { on, last_request: self.requests });
        }
        for gone in self.evicted.drain(..) {
            self.cached.remove(&gone);
        }
    }
}

impl Policy for LbGc {
    fn choose(&mut self, request: &Request, view: &ClusterView, _: Time) -> Decision {
        let (capacity_bytes, object_limit_bytes) =
            (self.context.cache_bytes, self.context.cache_object_limit_bytes);
        let empty = || (self.context.cache.build)(capacity_bytes, object_limit_bytes);
        self.caches.resize_with(view.len(), empty);
        // Computed responses are never cached.
        if request.kind == Kind::Dynamic {
            return assign_or_reject(view.least_loaded());
        }
        self.requests += 1;
        let target = request.target.0;
        if let Some(b) = self.hit(target, view) {
            return Decision::Assign(b);
        }
        let size_bytes = request.size_bytes.unwrap_or(self.params.unknown_size_bytes);
        let too_large = size_bytes > object_limit_bytes.unwrap_or(u64::MAX).min(capacity_bytes);
        if too_large {
            return assign_or_reject(view.least_loaded());
        }
        let Some(b) = self.place(size_bytes, view) else {
            return Decision::Reject;
        };
        self.put(target, size_bytes, b);
        Decision::Assign(b)
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, _: &ClusterView, _: Time) {
        if change != Change::Health(Health::Down) {
            return;
        }
        // A back-end that failed comes back with an empty memory.
        let Some(cache) = self.caches.get_mut(backend.index()) else {
            return;
        };
        while let Some(victim) = cache.victim() {
            cache.remove(victim);
            self.cached.remove(&victim);
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for LbGc {
    fn server_set(&self, target: TargetId) -> Vec<BackendId> {
        self.cached.get(&target.0).map(|c| c.on).into_iter().collect()
    }

    fn tracked_targets(&self) -> usize {
        self.cached.len()
    }

    fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![("targets", self.cached.len() as f64), ("modelled_hits", self.hits as f64)]
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities =
    Capabilities::NONE.shows_state::<LbGc>().needs_content("the target that a request asks for");

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(LbGc::new(&LbGcParams::of(params), context)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "lb_gc",
    aliases: &["lb_global_cache"],
    summary: "to the back-end whose modelled cache holds the target (LARD's idealized LB/GC)",
    source: "Pai et al., ASPLOS 1998, section 4",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::View,
    weighted: false,
    params: LbGcParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;

    fn policy() -> LbGc {
        let cache = plimsoll_cache::find("lru").unwrap();
        let context = BuildContext { cache, cache_bytes: 100, ..BuildContext::default() };
        LbGc::new(&LbGcParams::default(), &context)
    }

    fn choose(policy: &mut LbGc, cluster: &Cluster, target: u64, size_bytes: u64) -> u16 {
        let request = Request { size_bytes: Some(size_bytes), ..Request::of(0, TargetId(target)) };
        match policy.choose(&request, cluster, Time::ZERO) {
            Decision::Assign(b) => b.0,
            other => panic!("{other:?}"),
        }
    }

    /// Two LRU caches of 100 bytes.
    #[test]
    fn by_hand() {
        let cluster = Cluster::new(2);
        let mut p = policy();
        assert_eq!(choose(&mut p, &cluster, 1, 60), 0); // both empty: lowest index
        assert_eq!(choose(&mut p, &cluster, 2, 60), 1); // most room
        assert_eq!(choose(&mut p, &cluster, 1, 60), 0); // cached
        assert_eq!(choose(&mut p, &cluster, 3, 60), 1); // no room: target 2 is older than 1
        assert_eq!(choose(&mut p, &cluster, 2, 60), 0); // 2 is gone; now 1 is the oldest
        assert_eq!(choose(&mut p, &cluster, 9, 101), 0); // never cached: least loaded
        assert_eq!(p.tracked_targets(), 2);
    }

    #[test]
    fn a_failed_backend_comes_back_empty() {
        let mut cluster = Cluster::new(2);
        let mut p = policy();
        assert_eq!(choose(&mut p, &cluster, 1, 60), 0);
        cluster.set_health(BackendId(0), Health::Down);
        p.on_membership(BackendId(0), Change::Health(Health::Down), &cluster, Time::ZERO);
        assert_eq!(p.tracked_targets(), 0);
        assert_eq!(choose(&mut p, &cluster, 1, 60), 1);
    }
}
