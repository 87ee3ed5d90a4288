//! Outstanding work by the cost of requests, with costs that are learned from response times.
//!
//! The estimator of [`crate::estimator`] hears nothing of back-ends and has to guess when work is done. Who parses requests and sees
//! responses knows when it is done. So the load of a back-end is the sum of the costs of its requests under way, and the costs are
//! measured.
//!
//! ```text
//! cost(r) <- what r's class took lately; without a class what r's target took; else what requests take on average
//! n <- back-end with the least (work[n] + cost(r)) * slowness[n] / weight[n], ties at random
//! r is assigned to n:  work[n] <- work[n] + cost(r)
//! r ends:              work[n] <- work[n] - the same;  d <- time that n has spent on r
//!                      cost of class or target <- average with d / slowness[n];  slowness[n] <- average with d / cost(r)
//! ```
//!
//! The time that a back-end has spent on a request is its response time when it was alone. With n requests at once it is taken as an
//! nth, as if the back-end worked on all of them at once; that blurs the costs of requests that stood in a queue together. So a
//! request that found its back-end idle counts, and others only where such requests have been rare.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::cluster::{BackendId, ClusterView};
use crate::decision::Completion;
use crate::lru_map::LruMap;
use crate::request::{Outcome, Request, TargetId};
use crate::rng::Rng;
use crate::time::Time;

/// What is measured first counts in full, later ones by this much.
const LATEST: f64 = 1.0 / 32.0;
/// How much the latest request tells of a back-end's slowness.
const LATEST_SLOWNESS: f64 = 1.0 / 128.0;
/// Requests that found their back-end idle, from which on others no longer count.
const ENOUGH: u32 = 4;
/// The cost of a request while nothing is known, in nanoseconds.
const UNKNOWN_NS: f64 = 1e6;

/// An average in which the latest value counts by [`LATEST`].
#[derive(Debug, Clone, Copy, Default)]
struct RecentMean {
    mean: f64,
    count: u32,
}

impl RecentMean {
    fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        self.mean += (value - self.mean) * LATEST.max(1.0 / f64::from(self.count));
    }
}

/// What requests of one kind have taken.
#[derive(Debug, Clone, Copy, Default)]
struct MeasuredCost {
    /// Those that found their back-end idle.
    alone: RecentMean,
    /// The others.
    shared: RecentMean,
}

impl MeasuredCost {
    fn ns(&self) -> Option<f64> {
        match (self.alone.count, self.shared.count) {
            (0, 0) => None,
            (alone, shared) if alone < ENOUGH && shared > 0 => {
                let weight = f64::from(alone) / f64::from(ENOUGH);
                Some(weight * self.alone.mean + (1.0 - weight) * self.shared.mean)
            }
            _ => Some(self.alone.mean),
        }
    }

    fn add(&mut self, ns: f64, alone: bool) {
        if alone { self.alone.add(ns) } else { self.shared.add(ns) }
    }
}

/// One back-end.
#[derive(Debug, Clone, Copy)]
struct OutstandingWork {
    work_ns: f64,
    requests: u32,
    /// Time that each request has got of the back-end since time zero, if it was there: grows by 1 / requests.
    each_got_ns: f64,
    at: Time,
    /// How much longer than elsewhere requests take.
    slowness: f64,
}

impl OutstandingWork {
    const NONE: Self = Self { work_ns: 0.0, requests: 0, each_got_ns: 0.0, at: Time::ZERO, slowness: 1.0 };

    fn advance(&mut self, now: Time) {
        self.each_got_ns += now.since(self.at).as_nanos() as f64 / f64::from(self.requests.max(1));
        self.at = now;
    }
}

/// Requests of one kind that one back-end has.
#[derive(Debug, Clone, Copy, Default)]
struct UnderWay {
    count: u32,
    cost_ns: f64,
    /// Sum over them of [`OutstandingWork::each_got_ns`] when they came.
    got_ns: f64,
    /// The latest one found the back-end idle.
    alone: bool,
}

/// See the module's documentation.
pub(crate) struct WorkByCost {
    backends: Vec<OutstandingWork>,
    /// Looked up by key only.
    under_way: HashMap<(BackendId, TargetId, u16), UnderWay, FixedState>,
    /// By class.
    classes: Vec<MeasuredCost>,
    targets: LruMap<MeasuredCost>,
    all: MeasuredCost,
    rng: Rng,
}

impl WorkByCost {
    /// Of `known` classes the costs are given, in nanoseconds from class 1 on. Remembers the costs of `targets` targets.
    pub(crate) fn new(known: impl Iterator<Item = f64>, targets: usize, table_seed: u64, rng: Rng) -> Self {
        let measured =
            |ns| MeasuredCost { alone: RecentMean { mean: ns, count: ENOUGH }, ..MeasuredCost::default() };
        Self {
            backends: Vec::new(),
            under_way: HashMap::with_hasher(FixedState::with_seed(table_seed)),
            classes: std::iter::once(MeasuredCost::default()).chain(known.map(measured)).collect(),
            targets: LruMap::with_seed(targets, table_seed),
            all: MeasuredCost::default(),
            rng,
        }
    }

    /// What such requests have taken while their back-end was idle, in nanoseconds; `None` while that is not known well.
    fn measured_ns(&mut self, target: TargetId, class: u16) -> Option<f64> {
        let cost = match class {
            0 => self.targets.get_mut(target).map(|cost| &*cost),
            class => self.classes.get(usize::from(class)),
        };
        cost.filter(|cost| cost.alone.count >= ENOUGH).map(|cost| cost.alone.mean)
    }

    /// The expected cost in nanoseconds.
    fn cost_ns(&mut self, target: TargetId, class: u16) -> f64 {
        let own = match class {
            0 => self.targets.get_mut(target).and_then(|cost| cost.ns()),
            class => self.classes.get(usize::from(class)).and_then(MeasuredCost::ns),
        };
        own.or_else(|| self.all.ns()).unwrap_or(UNKNOWN_NS).max(1.0)
    }

    /// The back-end that would have done with it first.
    pub(crate) fn choose(&mut self, request: &Request, view: &ClusterView) -> Option<BackendId> {
        let cost_ns = self.cost_ns(request.target, request.class);
        let mean_ns = self.all.ns().unwrap_or(UNKNOWN_NS);
        let (mut best, mut least, mut ties) = (None, f64::INFINITY, 0);
        for b in view.eligible_ids() {
            let (work_ns, slowness) =
                self.backends.get(b.index()).map_or((0.0, 1.0), |b| (b.work_ns, b.slowness));
            let others = f64::from(view.load(b) - view.own_load(b).min(view.load(b)));
            let weight = view.weight(b).as_f64().max(1e-9);
            let done_ns = (work_ns + others * mean_ns + cost_ns) * slowness / weight;
            if done_ns < least {
                (best, least, ties) = (Some(b), done_ns, 1);
            } else if done_ns == least {
                ties += 1;
                if self.rng.below(ties) == 0 {
                    best = Some(b);
                }
            }
        }
        best.or_else(|| view.least_loaded())
    }

    /// A request was assigned.
    pub(crate) fn assigned(&mut self, request: &Request, b: BackendId, view: &ClusterView, now: Time) {
        if self.backends.len() < view.len() {
            self.backends.resize(view.len(), OutstandingWork::NONE);
        }
        let cost_ns = self.cost_ns(request.target, request.class);
        let backend = &mut self.backends[b.index()];
        backend.advance(now);
        let alone = backend.requests == 0 && view.load(b) <= 1;
        backend.requests += 1;
        backend.work_ns += cost_ns;
        let of = self.under_way.entry((b, request.target, request.class)).or_default();
        of.count += 1;
        of.cost_ns += cost_ns;
        of.got_ns += backend.each_got_ns;
        of.alone = alone;
    }

    /// A request ended.
    pub(crate) fn completed(&mut self, completion: &Completion, now: Time) {
        let Completion { target, backend: b, outcome, class, .. } = *completion;
        let key = (b, target, class);
        let Some(of) = self.under_way.get_mut(&key) else { return };
        let Some(backend) = self.backends.get_mut(b.index()) else { return };
        backend.advance(now);
        let count = f64::from(of.count);
        let (cost_ns, got_ns, alone) = (of.cost_ns / count, of.got_ns / count, of.alone && of.count == 1);
        of.count -= 1;
        of.cost_ns -= cost_ns;
        of.got_ns -= got_ns;
        if of.count == 0 {
            self.under_way.remove(&key);
        }
        backend.requests = backend.requests.saturating_sub(1);
        backend.work_ns = if backend.requests == 0 { 0.0 } else { (backend.work_ns - cost_ns).max(0.0) };
        if outcome == Outcome::Completed {
            let spent_ns = backend.each_got_ns - got_ns;
            self.learn((b, target, class), spent_ns, alone);
        }
    }

    fn learn(&mut self, (b, target, class): (BackendId, TargetId, u16), spent_ns: f64, alone: bool) {
        let expected_ns = self.measured_ns(target, class);
        let mean_slowness = self.mean_slowness();
        let backend = &mut self.backends[b.index()];
        let slowness = backend.slowness / mean_slowness;
        if let Some(expected_ns) = expected_ns.filter(|_| alone) {
            // Rare requests of extreme cost must not make a back-end look slow.
            let ratio = (spent_ns / expected_ns).clamp(0.1, 10.0);
            backend.slowness = (slowness + LATEST_SLOWNESS * (ratio - slowness)).clamp(0.01, 100.0);
        }
        let ns = spent_ns / slowness;
        match class {
            0 => self.targets.get_or_insert_with(target, MeasuredCost::default).0.add(ns, alone),
            class => {
                let index = usize::from(class);
                if self.classes.len() <= index {
                    self.classes.resize(index + 1, MeasuredCost::default());
                }
                self.classes[index].add(ns, alone);
            }
        }
        self.all.add(ns, alone);
    }

    fn mean_slowness(&self) -> f64 {
        let sum: f64 = self.backends.iter().map(|b| b.slowness).sum();
        if sum > 0.0 { sum / self.backends.len() as f64 } else { 1.0 }
    }

    /// Another back-end has the index of `b`, or it comes back from a failure.
    pub(crate) fn restart(&mut self, b: BackendId) {
        if let Some(backend) = self.backends.get_mut(b.index()) {
            backend.slowness = 1.0;
        }
    }

    /// Cost by class in seconds, and how many requests have told it; of those that have been seen.
    pub(crate) fn class_rows(&self) -> Vec<Vec<f64>> {
        let row = |(class, cost): (usize, &MeasuredCost)| {
            let count = f64::from(cost.alone.count) + f64::from(cost.shared.count);
            Some(vec![class as f64, cost.ns()? / 1e9, count])
        };
        self.classes.iter().enumerate().filter_map(row).collect()
    }

    /// Outstanding work in seconds and slowness, by back-end.
    pub(crate) fn backend_rows(&self) -> Vec<Vec<f64>> {
        let mean = self.mean_slowness();
        let row =
            |(index, b): (usize, &OutstandingWork)| vec![index as f64, b.work_ns / 1e9, b.slowness / mean];
        self.backends.iter().enumerate().map(row).collect()
    }

    /// Targets whose costs are remembered.
    pub(crate) fn targets(&self) -> usize {
        self.targets.len()
    }
}
