//! Scores assignments by requests, predicted misses, and balance.

use plimsoll_cache::CacheSpec;
use plimsoll_policy::{BackendId, Completion, Kind, Outcome, Request, Time};

use crate::cache_model::CacheModel;

/// The score of assignments.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Requests assigned.
    pub requests: u64,
    /// The same by back-end, in index order.
    pub per_backend: Vec<u64>,
    /// Requests that would have found their target in the cache.
    pub hits: u64,
    /// Requests that would have had to fetch it.
    pub misses: u64,
    /// Requests that would have joined a fetch under way.
    pub joined: u64,
    /// Misses per request for a stored document; `None` without any.
    pub miss_ratio: Option<f64>,
    /// Requests of the busiest back-end over the mean of all, from 1 (even) to their number; `None` without requests.
    pub imbalance: Option<f64>,
    /// Requests under way on average over time, by back-end.
    pub mean_load: Vec<f64>,
    /// The largest of these over their mean; `None` without load.
    pub load_imbalance: Option<f64>,
}

impl Score {
    /// Requests that would have joined a fetch under way, per request for a stored document; `None` without any.
    #[must_use]
    pub fn joined_ratio(&self) -> Option<f64> {
        let all = self.hits + self.misses + self.joined;
        (all > 0).then(|| self.joined as f64 / all as f64)
    }
}

/// Scores assignments as they begin and end.
pub struct Scorer {
    cache: CacheModel,
    backends: Vec<Counted>,
    requests: u64,
    started: Option<Time>,
    now: Time,
}

#[derive(Clone, Copy, Default)]
struct Counted {
    requests: u64,
    load: u32,
    /// Load over time in request-nanoseconds, up to `since`.
    load_ns: u128,
    since: Time,
}

impl Counted {
    fn change(&mut self, load: u32, now: Time) {
        self.load_ns += u128::from(self.load) * u128::from(now.since(self.since).as_nanos());
        (self.load, self.since) = (load, now);
    }
}

impl Scorer {
    /// For `backends` back-ends with such caches, empty and without load.
    #[must_use]
    pub fn new(backends: usize, cache: &'static CacheSpec, cache_bytes: u64) -> Self {
        Self {
            cache: CacheModel::new(cache, cache_bytes),
            backends: vec![Counted::default(); backends],
            requests: 0,
            started: None,
            now: Time::ZERO,
        }
    }

    /// A request went to `b`.
    pub fn assigned(&mut self, b: BackendId, request: &Request, now: Time) {
        self.passed(now);
        if self.backends.len() <= b.index() {
            self.backends.resize(b.index() + 1, Counted { since: now, ..Counted::default() });
        }
        self.requests += 1;
        let backend = &mut self.backends[b.index()];
        backend.requests += 1;
        backend.change(backend.load.saturating_add(1), now);
        // Computed responses are never cached.
        if request.kind == Kind::Static {
            self.cache.assigned(b, request.target, request.size_bytes);
        }
    }

    /// A request that went to [`Completion::backend`] ended.
    pub fn completed(&mut self, completion: &Completion, now: Time) {
        self.passed(now);
        let b = completion.backend;
        if let Some(backend) = self.backends.get_mut(b.index()) {
            backend.change(backend.load.saturating_sub(1), now);
        }
        match completion.outcome {
            Outcome::Completed => self.cache.completed(b, completion.target, completion.size_bytes),
            Outcome::Failed => self.cache.failed(b, completion.target),
        }
    }

    /// `b` failed.
    pub fn down(&mut self, b: BackendId) {
        self.cache.down(b);
    }

    /// A back-end joined, as the last one of now `backends`.
    pub fn joined(&mut self, backends: usize, now: Time) {
        let more = self.backends.len().max(backends);
        self.backends.resize(more, Counted { since: now, ..Counted::default() });
    }

    /// The score so far, loads up to the last assignment or completion.
    #[must_use]
    pub fn score(&self) -> Score {
        let per_backend: Vec<u64> = self.backends.iter().map(|c| c.requests).collect();
        let span_ns = self.started.map_or(0, |started| self.now.since(started).as_nanos());
        let mean = |c: &Counted| {
            let mut c = *c;
            c.change(0, self.now);
            if span_ns == 0 { 0.0 } else { c.load_ns as f64 / span_ns as f64 }
        };
        let mean_load: Vec<f64> = self.backends.iter().map(mean).collect();
        Score {
            requests: self.requests,
            hits: self.cache.hits(),
            misses: self.cache.misses(),
            joined: self.cache.joined(),
            miss_ratio: self.cache.miss_ratio(),
            imbalance: peak_over_mean(per_backend.iter().map(|&n| n as f64)),
            load_imbalance: peak_over_mean(mean_load.iter().copied()),
            per_backend,
            mean_load,
        }
    }

    fn passed(&mut self, now: Time) {
        self.started.get_or_insert(now);
        self.now = self.now.max(now);
    }
}

fn peak_over_mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let sum: f64 = values.clone().sum();
    let count = values.clone().count() as f64;
    (sum > 0.0).then(|| values.fold(0.0, f64::max) * count / sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_policy::{Nanos, TargetId};

    #[test]
    fn by_hand() {
        let mut s = Scorer::new(2, &plimsoll_cache::caches::lru::SPEC, 100);
        assert_eq!((s.score().imbalance, s.score().load_imbalance, s.score().miss_ratio), (None, None, None));
        let at = |s: u64| Time::ZERO + Nanos::from_secs(s);
        let done = |b| Completion {
            size_bytes: Some(10),
            ..Completion::of(TargetId(1), BackendId(b), Outcome::Completed, Nanos::ZERO)
        };
        s.assigned(BackendId(0), &Request::of(0, TargetId(1)), at(10));
        s.completed(&done(0), at(13)); // 3 s of load 1 at back-end 0
        s.assigned(BackendId(0), &Request::of(1, TargetId(1)), at(14)); // 6 s more, a hit
        s.assigned(BackendId(1), &Request::of(2, TargetId(1)), at(17)); // 3 s at back-end 1
        let dynamic = Request { kind: Kind::Dynamic, ..Request::of(3, TargetId(9)) };
        s.assigned(BackendId(0), &dynamic, at(20));
        let score = s.score();
        assert_eq!((score.requests, score.per_backend), (4, vec![3, 1]));
        assert_eq!((score.hits, score.misses, score.joined), (1, 2, 0));
        assert_eq!(score.imbalance, Some(1.5));
        assert_eq!(score.mean_load, [0.9, 0.3]);
        assert!((score.load_imbalance.unwrap() - 1.5).abs() < 1e-12);
    }
}
