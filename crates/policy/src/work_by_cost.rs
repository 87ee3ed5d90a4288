//! Outstanding work by the cost of requests, with costs that are learned from response times.
//!
//! The estimator of [`crate::estimator`] hears nothing of back-ends and has to guess when work is done. Who parses requests and sees
//! responses knows when it is done. So the load of a back-end is the sum of the costs of its requests under way, and the costs are
//! measured.
//!
//! ```text
//! cost(r) <- what r's class took lately; without a class what r's target took; rare ones more like requests on average
//! found[n] <- the number and the costs of the requests that n has
//! n <- back-end with the least charge(cost(r), found[n]) * slowness[n] / weight[n]; of several the one with the fewest requests,
//!      then at random                                             charge: by work or by number, see `waiting_model`
//! r ends at n:  d <- time that n has spent on r;  cost of class or target <- average with d
//!               slowness[n] <- average of what expectation does not explain, see `slowness`
//! ```
//!
//! The time that a back-end has spent on a request, if requests stand in line, is the time since the one before ended. If they share,
//! it is the response time when the request was alone. With n requests at once it is taken as an
//! nth, as if the back-end worked on all of them at once; that blurs the costs of requests that stood in a queue together. So a
//! request that found its back-end idle counts, and others only where such requests have been rare.

use std::cmp::Ordering;
use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::cluster::{BackendId, ClusterView};
use crate::decision::Completion;
use crate::lru_map::LruMap;
use crate::request::{Outcome, Request, TargetId};
use crate::rng::Rng;
use crate::slowness::Slowness;
use crate::time::Time;
use crate::waiting_model::{Backlog, Cost, WaitingModel};

/// What is measured first counts in full, later ones by this much.
const LATEST: f64 = 1.0 / 32.0;
/// Requests that found their back-end idle, from which on others no longer count.
const ENOUGH: u32 = 4;
/// As many requests of mean cost are averaged with those of a class or target.
const PRIOR: f64 = 2.0;
/// The cost of a request while nothing is known.
const UNKNOWN: Cost = Cost { in_line_ns: 1e6, shared_ns: 1e6 };

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
    /// If they stand in line.
    in_line: RecentMean,
    /// Those that found their back-end idle.
    alone: RecentMean,
    /// The others.
    shared: RecentMean,
    /// A class file has told it beforehand.
    given: bool,
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

    fn cost(&self) -> Option<Cost> {
        self.ns().map(|shared_ns| Cost { in_line_ns: self.in_line.mean, shared_ns })
    }

    /// As [`Self::cost`], nearer to `mean` the fewer requests have told it, if no class file has.
    fn cost_among(&self, mean: Cost) -> Cost {
        let among = |own: f64, mean: f64| (self.seen() * own + PRIOR * mean) / (self.seen() + PRIOR);
        match self.cost() {
            Some(own) if self.given => own,
            Some(own) => Cost {
                in_line_ns: among(own.in_line_ns, mean.in_line_ns),
                shared_ns: among(own.shared_ns, mean.shared_ns),
            },
            None => mean,
        }
    }

    /// Requests that have told it.
    fn seen(&self) -> f64 {
        let given = if self.given { ENOUGH } else { 0 };
        f64::from(self.alone.count.saturating_sub(given)) + f64::from(self.shared.count)
    }

    fn add(&mut self, spent: Cost, alone: bool) {
        self.in_line.add(spent.in_line_ns);
        if alone { self.alone.add(spent.shared_ns) } else { self.shared.add(spent.shared_ns) }
    }
}

/// One back-end.
#[derive(Debug, Clone, Default)]
struct OutstandingWork {
    /// The sum of [`Cost::in_line_ns`].
    work_ns: f64,
    requests: u32,
    /// Time that each request has got of the back-end since time zero, if it was there: grows by 1 / requests.
    each_got_ns: f64,
    at: Time,
    /// Since when it works on the first request, if they stand in line: since the one before ended, or since it came.
    since: Time,
    /// Costs of its requests in the order in which they came.
    line_ns: VecDeque<f64>,
}

impl OutstandingWork {
    /// What is done of the first request, if they stand in line: not more than it costs, as a back-end that hangs does nothing.
    fn done_ns(&self, slowness: f64, now: Time) -> f64 {
        let first_ns = self.line_ns.front().copied().unwrap_or(0.0);
        (now.since(self.since).as_nanos() as f64 / slowness).min(first_ns)
    }

    fn advance(&mut self, now: Time) {
        self.each_got_ns += now.since(self.at).as_nanos() as f64 / f64::from(self.requests.max(1));
        self.at = now;
    }
}

/// Requests of one kind that one back-end has.
#[derive(Debug, Clone, Copy, Default)]
struct UnderWay {
    count: u32,
    /// Sum over them.
    cost: Cost,
    /// Sum over them of [`OutstandingWork::each_got_ns`] when they came.
    got_ns: f64,
    /// Sums over them of what they found when they came.
    found: Backlog,
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
    waiting: WaitingModel,
    slowness: Slowness,
    rng: Rng,
}

impl WorkByCost {
    /// Of `known` classes the costs are given, in nanoseconds from class 1 on. Remembers the costs of `targets` targets.
    pub(crate) fn new(known: impl Iterator<Item = f64>, targets: usize, table_seed: u64, rng: Rng) -> Self {
        let measured = |ns| {
            let mean = RecentMean { mean: ns, count: ENOUGH };
            MeasuredCost { in_line: mean, alone: mean, given: true, ..MeasuredCost::default() }
        };
        Self {
            backends: Vec::new(),
            under_way: HashMap::with_hasher(FixedState::with_seed(table_seed)),
            classes: std::iter::once(MeasuredCost::default()).chain(known.map(measured)).collect(),
            targets: LruMap::with_seed(targets, table_seed),
            all: MeasuredCost::default(),
            waiting: WaitingModel::new(),
            slowness: Slowness::default(),
            rng,
        }
    }

    fn mean_cost(&self) -> Cost {
        self.all.cost().unwrap_or(UNKNOWN)
    }

    /// The expected cost.
    fn cost(&mut self, target: TargetId, class: u16) -> Cost {
        let mean = self.mean_cost();
        let own = match class {
            0 => self.targets.get_mut(target).map(|cost| &*cost),
            class => self.classes.get(usize::from(class)),
        };
        own.map_or(mean, |cost| cost.cost_among(mean)).at_least_1_ns()
    }

    /// The back-end that would have done with it first; among several, one with the fewest requests.
    pub(crate) fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Option<BackendId> {
        let cost = self.cost(request.target, request.class);
        let (mut best, mut least, mut ties) = (None, (f64::INFINITY, f64::INFINITY), 0);
        for b in view.eligible_ids() {
            let slowness = self.slowness.of(b);
            let found = self.found(b, (view.load(b), view.own_load(b)), slowness, now);
            let slowness = slowness / view.weight(b).as_f64().max(1e-9);
            let score = (self.waiting.charge_ns(cost, found) * slowness, (found.requests + 1.0) * slowness);
            match score.partial_cmp(&least) {
                Some(Ordering::Less) => (best, least, ties) = (Some(b), score, 1),
                Some(Ordering::Equal) => {
                    ties += 1;
                    if self.rng.below(ties) == 0 {
                        best = Some(b);
                    }
                }
                _ => {}
            }
        }
        best.or_else(|| view.least_loaded())
    }

    /// What a request meets at `b`. What others have sent there costs what requests cost on average; own requests that wait for
    /// nobody but their clients are no load.
    fn found(&self, b: BackendId, (load, own_load): (u32, u32), slowness: f64, now: Time) -> Backlog {
        let others_ns = f64::from(load.saturating_sub(own_load)) * self.mean_cost().in_line_ns;
        let own_ns = self.backends.get(b.index()).map_or(0.0, |own| {
            let at_work = f64::from(own_load) / f64::from(own.requests.max(1));
            own.work_ns * at_work.min(1.0) - own.done_ns(slowness, now)
        });
        Backlog { requests: f64::from(load), work_ns: own_ns.max(0.0) + others_ns }
    }

    /// A request was assigned.
    pub(crate) fn assigned(&mut self, request: &Request, b: BackendId, view: &ClusterView, now: Time) {
        if self.backends.len() < view.len() {
            self.backends.resize_with(view.len(), OutstandingWork::default);
        }
        let cost = self.cost(request.target, request.class);
        // The view counts this request already.
        let loads = (view.load(b).saturating_sub(1), view.own_load(b).saturating_sub(1));
        let found = self.found(b, loads, self.slowness.of(b), now);
        let backend = &mut self.backends[b.index()];
        backend.advance(now);
        let alone = backend.requests == 0 && view.load(b) <= 1;
        if backend.requests == 0 {
            backend.since = now;
        }
        backend.requests += 1;
        backend.work_ns += cost.in_line_ns;
        backend.line_ns.push_back(cost.in_line_ns);
        let of = self.under_way.entry((b, request.target, request.class)).or_default();
        of.count += 1;
        of.cost = of.cost.plus(cost);
        of.got_ns += backend.each_got_ns;
        of.found = of.found.plus(found);
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
        let (cost, found) = (of.cost.times(1.0 / count), of.found.times(1.0 / count));
        let (got_ns, alone) = (of.got_ns / count, of.alone && of.count == 1);
        of.count -= 1;
        of.cost = of.cost.times(1.0 - 1.0 / count);
        of.found = of.found.times(1.0 - 1.0 / count);
        of.got_ns -= got_ns;
        if of.count == 0 {
            self.under_way.remove(&key);
        }
        let in_line_ns = now.since(backend.since).as_nanos() as f64;
        let spent = Cost { in_line_ns, shared_ns: backend.each_got_ns - got_ns };
        backend.requests = backend.requests.saturating_sub(1);
        backend.since = now;
        backend.line_ns.pop_front();
        backend.work_ns =
            if backend.requests == 0 { 0.0 } else { (backend.work_ns - cost.in_line_ns).max(0.0) };
        if outcome == Outcome::Completed {
            let slowness = self.slowness.of(b);
            let response_ns = (completion.response_time.as_nanos() as f64).max(1.0);
            self.slowness.learn(b, response_ns / self.waiting.expected_ns(cost, found));
            self.waiting.learn(cost, found, response_ns / slowness);
            self.learn(target, class, spent, alone);
        }
    }

    fn learn(&mut self, target: TargetId, class: u16, spent: Cost, alone: bool) {
        match class {
            0 => self.targets.get_or_insert_with(target, MeasuredCost::default).0.add(spent, alone),
            class => {
                let index = usize::from(class);
                if self.classes.len() <= index {
                    self.classes.resize(index + 1, MeasuredCost::default());
                }
                self.classes[index].add(spent, alone);
            }
        }
        self.all.add(spent, alone);
    }

    /// Some time has passed.
    pub(crate) fn tick(&mut self) {
        self.slowness.tick();
    }

    /// Another back-end has the index of `b`, or it comes back from a failure.
    pub(crate) fn restart(&mut self, b: BackendId) {
        self.slowness.restart(b);
    }

    /// Cost by class in seconds, and how many requests have told it; of those that have been seen.
    pub(crate) fn class_rows(&self) -> Vec<Vec<f64>> {
        let row = |(class, cost): (usize, &MeasuredCost)| {
            Some(vec![class as f64, self.waiting.cost_ns(cost.cost()?) / 1e9, cost.seen()])
        };
        self.classes.iter().enumerate().filter_map(row).collect()
    }

    /// Outstanding work in seconds and slowness, by back-end.
    pub(crate) fn backend_rows(&self) -> Vec<Vec<f64>> {
        let slowness = |index: usize| self.slowness.of(BackendId(index as u16));
        let row =
            |(index, b): (usize, &OutstandingWork)| vec![index as f64, b.work_ns / 1e9, slowness(index)];
        self.backends.iter().enumerate().map(row).collect()
    }

    /// How requests get in each other's way, as [`WaitingModel::row`] says it.
    pub(crate) fn waiting_row(&self) -> Vec<f64> {
        self.waiting.row()
    }

    /// Targets whose costs are remembered.
    pub(crate) fn targets(&self) -> usize {
        self.targets.len()
    }
}
