//! Shared by the size-based policies: the histogram, the intervals, and their assignment to back-ends.
//!
//! Source: AdaptLoad, section 4 and figure 4.

use std::collections::VecDeque;

use crate::cluster::{BackendId, ClusterView};
use crate::data_histogram::DataHistogram;
use crate::decision::PolicyTable;
use crate::request::{Kind, Request};
use crate::rng::Rng;
use crate::shortest_queue::shortest_queue;
use crate::size_bins::SizeBins;
use crate::size_intervals::{BoundaryChange, Intervals};
use crate::time::Time;

/// Until the first batch is whole, boundaries are set after this many requests and whenever there are twice as many: the
/// paper's "reasonable guesses".
const FIRST_REQUESTS: u64 = 64;
/// Adjustments that are kept to be looked at.
const MOST_MOVES: usize = 64;

/// Parameters of a size-based policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizing {
    /// K: requests of known size in a batch.
    pub batch: u64,
    /// How much earlier batches weigh, 0 to 1.
    pub alpha: f64,
    /// F: bins.
    pub bins: u32,
    /// C: each bin is this many times as wide as the one before.
    pub base: f64,
    /// Added to each size: what a connection costs (section 5, footnote 4).
    pub connection_bytes: u64,
}

/// An adjustment of the boundaries.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Move {
    requests: u64,
    time: Time,
    /// Share of the load that has another back-end than before; 1 where there were no boundaries.
    moved: f64,
}

/// Sizes seen, and the intervals that follow.
#[derive(Debug)]
pub struct SizeBased {
    bins: SizeBins,
    histogram: DataHistogram,
    intervals: Intervals,
    connection_bytes: u64,
    batch: u64,
    in_batch: u64,
    next_guess: u64,
    /// Requests of known size so far.
    requests: u64,
    unknown: u64,
    adjustments: u64,
    moves: VecDeque<Move>,
    rng: Rng,
    /// The back-ends that take requests, in the order of their intervals, and their parts of the load.
    eligible: Vec<BackendId>,
    parts: Vec<f64>,
    /// The back-ends among which the load was last cut.
    cut_for: Vec<BackendId>,
    generation: Option<u64>,
    weights: Vec<f64>,
    /// The load by bins that several front-ends have seen together; boundaries follow it and not what was seen here.
    shared: Option<Vec<f64>>,
}

impl SizeBased {
    /// Empty; draws random numbers from stream `stream` of `seed`.
    #[must_use]
    pub fn new(sizing: &Sizing, seed: u64, stream: u64) -> Self {
        let bins = SizeBins::new(sizing.bins as usize, sizing.base);
        Self {
            histogram: DataHistogram::new(bins.len(), sizing.alpha),
            bins,
            intervals: Intervals::default(),
            connection_bytes: sizing.connection_bytes,
            batch: sizing.batch,
            in_batch: 0,
            next_guess: FIRST_REQUESTS,
            requests: 0,
            unknown: 0,
            adjustments: 0,
            moves: VecDeque::new(),
            rng: Rng::new(seed, stream),
            eligible: Vec::new(),
            parts: Vec::new(),
            cut_for: Vec::new(),
            generation: None,
            weights: Vec::new(),
            shared: None,
        }
    }

    /// The size by which a request is distributed; none if it is dynamic or its size is not known.
    #[inline]
    #[must_use]
    pub fn size_of(&self, request: &Request) -> Option<u64> {
        let size_bytes = request.size_bytes.filter(|_| request.kind == Kind::Static)?;
        Some(size_bytes.saturating_add(self.connection_bytes))
    }

    /// The back-end whose interval a request lies in, or, without size or intervals, the one with the shortest queue.
    #[inline]
    pub fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Option<BackendId> {
        self.follow_membership(view, now);
        match self.size_of(request) {
            Some(size_bytes) if self.intervals.is_set() => {
                let position = self.intervals.position(self.bins.bin(size_bytes), &mut self.rng);
                self.eligible.get(position).copied()
            }
            _ => shortest_queue(view, &mut self.rng),
        }
    }

    #[inline]
    fn follow_membership(&mut self, view: &ClusterView, now: Time) {
        if self.generation != Some(view.generation()) {
            self.generation = Some(view.generation());
            self.eligible.clear();
            self.eligible.extend(view.ids_for_tables());
            if self.shared.is_some() {
                // The same order at every front-end, however each numbers its back-ends.
                self.eligible.sort_by_key(|&b| view.key(b));
            }
            let all = view.eligible_weight_steps() as f64;
            self.parts.clear();
            self.parts.extend(self.eligible.iter().map(|&b| f64::from(view.weight(b).steps()) / all));
            self.cut(now);
        }
    }

    /// Counts an assigned request. Returns true when it ended a batch, which set new boundaries.
    #[inline]
    pub fn count(&mut self, request: &Request, now: Time) -> bool {
        let Some(size_bytes) = self.size_of(request) else {
            self.unknown += 1;
            return false;
        };
        self.requests += 1;
        self.in_batch += 1;
        self.histogram.add(self.bins.bin(size_bytes), size_bytes);
        if self.in_batch == self.batch {
            self.in_batch = 0;
            self.histogram.end_batch();
            if self.shared.is_none() {
                self.cut(now);
            }
            return true;
        }
        if self.histogram.batches() == 0 && self.in_batch == self.next_guess {
            self.next_guess *= 2;
            if self.shared.is_none() {
                self.cut(now);
            }
        }
        false
    }

    /// The load to share with other front-ends: for each non-empty bin its largest size and its load, in
    /// bytes.
    #[must_use]
    pub fn seen(&self) -> Vec<(u64, u64)> {
        let mut weights = Vec::new();
        self.histogram.weights(&mut weights);
        let loaded = weights.iter().enumerate().filter(|(_, weight)| **weight >= 1.0);
        // Saturates, and drops fractions of a byte.
        loaded.map(|(bin, &weight)| (self.bins.last_bytes(bin), weight as u64)).collect()
    }

    /// Sets boundaries by the load that all front-ends have seen: pairs of largest size and bytes, in a fixed
    /// order. Front-ends with equal loads and the same eligible back-ends get equal boundaries.
    pub fn follow(&mut self, load: &[(u64, u64)], now: Time) {
        if self.shared.is_none() {
            // The order of back-ends changes.
            self.generation = None;
        }
        let shared = self.shared.get_or_insert_default();
        shared.clear();
        shared.resize(self.bins.len(), 0.0);
        for &(size_bytes, bytes) in load {
            shared[self.bins.bin(size_bytes)] += bytes as f64;
        }
        if self.generation.is_some() && self.weights != *shared {
            self.cut(now);
        }
    }

    /// Takes a workload known beforehand, as pairs of size in bytes and number of requests, for one batch.
    pub fn learn(&mut self, sizes: impl IntoIterator<Item = (u64, u64)>, now: Time) {
        for (size_bytes, requests) in sizes {
            let size_bytes = size_bytes.saturating_add(self.connection_bytes);
            self.histogram.add(self.bins.bin(size_bytes), size_bytes.saturating_mul(requests));
        }
        self.histogram.end_batch();
        self.cut(now);
    }

    /// Assigns each back-end its part of the load.
    fn cut(&mut self, now: Time) {
        match &self.shared {
            Some(shared) => self.weights.clone_from(shared),
            None => self.histogram.weights(&mut self.weights),
        }
        let parts = std::mem::take(&mut self.parts);
        self.cut_as(&parts, None, now);
        self.parts = parts;
    }

    /// Gives the back-ends these parts of `weights`, one for each bin (of the load, without).
    pub fn cut_as(&mut self, parts: &[f64], weights: Option<&[f64]>, now: Time) {
        let weights = weights.unwrap_or(&self.weights);
        let Some(BoundaryChange { before, after }) = self.intervals.cut(weights, parts) else {
            // No load is known. Intervals for another number of back-ends would be wrong.
            if self.intervals.boundaries().len() + 1 != parts.len() {
                self.intervals = Intervals::default();
            }
            return;
        };
        self.adjustments += 1;
        let moved = before.map_or(1.0, |before| moved((&self.cut_for, &before), (&self.eligible, &after)));
        self.cut_for.clone_from(&self.eligible);
        if self.moves.len() == MOST_MOVES {
            self.moves.pop_front();
        }
        self.moves.push_back(Move { requests: self.requests, time: now, moved });
    }

    /// The back-ends in the order of their intervals.
    #[must_use]
    pub fn eligible(&self) -> &[BackendId] {
        &self.eligible
    }

    /// The intervals.
    #[must_use]
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// The bins.
    #[must_use]
    pub fn bins(&self) -> &SizeBins {
        &self.bins
    }

    /// The load by bins, in bytes, by which the boundaries were set.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Counters, see [`crate::ShowsState::stats`].
    #[must_use]
    pub fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("batches", f64::from(self.histogram.batches())),
            ("adjustments", self.adjustments as f64),
            ("sized_requests", self.requests as f64),
            ("unsized_requests", self.unknown as f64),
            ("moved_ratio", self.moves.back().map_or(0.0, |m| m.moved)),
        ]
    }

    /// Boundaries, histogram and recent adjustments, see [`crate::ShowsState::tables`].
    #[must_use]
    pub fn tables(&self) -> Vec<PolicyTable> {
        let loads = if self.intervals.is_set() { self.intervals.loads(&self.weights) } else { Vec::new() };
        let total: f64 = loads.iter().sum();
        let boundary = |(n, load): (usize, &f64)| {
            let end = self.intervals.boundaries().get(n);
            let (size_bytes, share) =
                end.map_or((u64::MAX, 1.0), |end| (self.bins.last_bytes(end.bin), end.share));
            let backend = f64::from(self.eligible.get(n).map_or(0, |b| b.0));
            vec![backend, size_bytes as f64, share, if total > 0.0 { load / total } else { 0.0 }]
        };
        let bins = self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        let moves = self.moves.iter().map(|m| vec![m.requests as f64, m.time.as_secs_f64(), m.moved]);
        vec![
            PolicyTable {
                name: "boundaries",
                columns: &["backend", "size_bytes", "share_of_bin", "share_of_load"],
                rows: loads.iter().enumerate().map(boundary).collect(),
            },
            PolicyTable {
                name: "histogram",
                columns: &["size_bytes", "load_bytes"],
                rows: bins.map(|(bin, load)| vec![self.bins.last_bytes(bin) as f64, *load]).collect(),
            },
            PolicyTable {
                name: "moves",
                columns: &["requests", "time_s", "moved_ratio"],
                rows: moves.collect(),
            },
        ]
    }
}

/// Share of the load that changes back-ends: everything outside the overlap of each back-end's new interval
/// with its old one. Both arguments list back-ends with their parts of the load, in order of size.
fn moved(before: (&[BackendId], &[f64]), after: (&[BackendId], &[f64])) -> f64 {
    let total: f64 = after.1.iter().sum();
    let mut end = 0.0;
    let mut intervals = |(&b, &load): (&BackendId, &f64)| {
        let start = end;
        end += load;
        (b, start, end)
    };
    let old: Vec<_> = before.0.iter().zip(before.1).map(&mut intervals).collect();
    let (mut start, mut kept) = (0.0f64, 0.0);
    for (at, (&b, load)) in after.0.iter().zip(after.1).enumerate() {
        let end = start + load;
        // Fast path: mostly the same back-ends in the same order.
        let same = old.get(at).filter(|(other, ..)| *other == b);
        if let Some((_, old_start, old_end)) = same.or_else(|| old.iter().find(|(other, ..)| *other == b)) {
            kept += (end.min(*old_end) - start.max(*old_start)).max(0.0);
        }
        start = end;
    }
    if total > 0.0 { (1.0 - kept / total).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_another_back_end_has_moved() {
        let ids: Vec<BackendId> = (0..4).map(BackendId).collect();
        let part = |before: &[f64], after: &[f64]| moved((&ids, before), (&ids, after));
        // All was the first one's and is divided by three: a third stays.
        assert!((part(&[9.0, 0.0, 0.0], &[3.0, 3.0, 3.0]) - 2.0 / 3.0).abs() < 1e-12);
        assert!(part(&[3.0, 3.0, 3.0], &[3.0, 3.0, 3.0]).abs() < 1e-12);
        // The first of three is gone; the other two had 3..6 and 6..9, and have 0..4.5 and 4.5..9.
        let two = moved((&ids[..3], &[3.0; 3]), (&ids[1..3], &[4.5; 2]));
        assert!((two - 0.5).abs() < 1e-12, "{two}");
        assert!((moved((&ids[..1], &[9.0]), (&ids[3..], &[9.0])) - 1.0).abs() < 1e-12);
    }
}
