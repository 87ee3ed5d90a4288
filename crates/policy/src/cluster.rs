//! The cluster as a policy sees it: load, weight and health of every back-end.
//!
//! The runtime owns a [`Cluster`] and changes it; a policy gets the [`ClusterView`] inside and only reads.
//!
//! Tie rule, unless a policy says otherwise: "least loaded" goes to the lowest index, "most loaded" to the highest.

use std::ops::Deref;

use crate::min_blocks::MinBlocks;
use crate::rng::mix;
use crate::weight::{RelativeLoad, Weight};

/// Index of a back-end in its cluster; stable for as long as the back-end is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendId(pub u16);

impl BackendId {
    /// The back-end at `index`.
    ///
    /// # Panics
    /// When `index` is above 65,535: [`Cluster::new`] refuses such clusters.
    #[must_use]
    pub fn new(index: usize) -> Self {
        Self(u16::try_from(index).expect("a cluster holds at most 65,535 back-ends"))
    }

    /// The index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a back-end takes new requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Takes requests.
    Up,
    /// Finishes what it has, takes nothing new.
    Draining,
    /// Failed: what it had is lost.
    Down,
}

/// What changed in the membership of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A back-end joined, at the next free index.
    Joined,
    /// Health is now this.
    Health(Health),
    /// The weight is now this.
    Weight(Weight),
}

/// Load, weight and health of every back-end.
#[derive(Debug, Clone)]
pub struct ClusterView {
    load: Vec<u32>,
    /// Relative load, or `RelativeLoad::INELIGIBLE`.
    relative: MinBlocks,
    weight: Vec<Weight>,
    health: Vec<Health>,
    key: Vec<u64>,
    eligible: usize,
    eligible_weight: u64,
    uniform: bool,
    total_load: u64,
    generation: u64,
}

impl ClusterView {
    /// Number of back-ends, failed ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.load.len()
    }

    /// Whether there is no back-end at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.load.is_empty()
    }

    /// Every back-end in index order.
    pub fn ids(&self) -> impl Iterator<Item = BackendId> + use<> {
        (0..self.load.len()).map(BackendId::new)
    }

    /// The back-ends that take new requests, in index order.
    pub fn eligible_ids(&self) -> impl Iterator<Item = BackendId> + '_ {
        self.ids().filter(|&b| self.is_eligible(b))
    }

    /// Number of back-ends that take new requests.
    #[must_use]
    pub fn eligible(&self) -> usize {
        self.eligible
    }

    /// Sum of the weights of the back-ends that take new requests, in steps of 1/256.
    #[must_use]
    pub fn eligible_weight_steps(&self) -> u64 {
        self.eligible_weight
    }

    /// Whether all back-ends that take new requests have the same weight.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.uniform
    }

    /// Whether `b` takes new requests: it is up and its weight is not zero.
    #[must_use]
    pub fn is_eligible(&self, b: BackendId) -> bool {
        self.relative.get(b.index()).is_some_and(|r| r != RelativeLoad::INELIGIBLE)
    }

    /// Requests assigned to `b` and not completed (LARD's active connections).
    #[must_use]
    pub fn load(&self, b: BackendId) -> u32 {
        self.load[b.index()]
    }

    /// Requests assigned and not completed, over all back-ends.
    #[must_use]
    pub fn total_load(&self) -> u64 {
        self.total_load
    }

    /// Load per unit of weight; above every real load when `b` takes no new requests.
    #[must_use]
    pub fn relative_load(&self, b: BackendId) -> RelativeLoad {
        RelativeLoad(self.relative.get(b.index()).unwrap_or(RelativeLoad::INELIGIBLE))
    }

    /// Weight of `b`.
    #[must_use]
    pub fn weight(&self, b: BackendId) -> Weight {
        self.weight[b.index()]
    }

    /// Health of `b`.
    #[must_use]
    pub fn health(&self, b: BackendId) -> Health {
        self.health[b.index()]
    }

    /// Stable identity of `b` for hashing: does not depend on its index.
    #[must_use]
    pub fn key(&self, b: BackendId) -> u64 {
        self.key[b.index()]
    }

    /// Grows with every change of membership, health or weight: lets a policy know that its tables are stale.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The back-end with the least relative load, lowest index on ties; `None` when none takes new requests.
    #[must_use]
    #[inline]
    pub fn least_loaded(&self) -> Option<BackendId> {
        self.least_loaded_from(0)
    }

    /// The same, but ties go to the first one at or after index `from`, then from index 0 on.
    #[must_use]
    #[inline]
    pub fn least_loaded_from(&self, from: usize) -> Option<BackendId> {
        let least = self.relative.least();
        let any = least != RelativeLoad::INELIGIBLE;
        any.then(|| self.relative.first_from(from, least)).flatten().map(BackendId::new)
    }

    /// Whether some back-end that takes new requests has less than this relative load.
    #[must_use]
    #[inline]
    pub fn any_below(&self, threshold: RelativeLoad) -> bool {
        self.relative.least() < threshold.0
    }
}

/// The cluster as its runtime keeps it. Reads like a [`ClusterView`].
#[derive(Debug, Clone)]
pub struct Cluster(ClusterView);

impl Deref for Cluster {
    type Target = ClusterView;
    fn deref(&self) -> &ClusterView {
        &self.0
    }
}

impl Cluster {
    /// `backends` back-ends of weight 1, all up and without load, at most 65,535.
    ///
    /// # Panics
    /// When `backends` is above 65,535.
    #[must_use]
    pub fn new(backends: usize) -> Self {
        let mut cluster = Self(ClusterView {
            load: Vec::new(),
            relative: MinBlocks::new(&[]),
            weight: Vec::new(),
            health: Vec::new(),
            key: Vec::new(),
            eligible: 0,
            eligible_weight: 0,
            uniform: true,
            total_load: 0,
            generation: 0,
        });
        for index in 0..backends {
            cluster.push(Weight::ONE, mix(index as u64 + 1));
        }
        cluster.refresh();
        cluster
    }

    /// Adds a back-end with this weight; `key` is a hash of its name.
    ///
    /// # Panics
    /// When there are 65,535 back-ends already.
    pub fn join(&mut self, weight: Weight, key: u64) -> BackendId {
        let b = self.push(weight, key);
        self.refresh();
        b
    }

    fn push(&mut self, weight: Weight, key: u64) -> BackendId {
        assert!(self.0.load.len() < usize::from(u16::MAX), "a cluster holds at most 65,535 back-ends");
        let b = BackendId::new(self.0.load.len());
        self.0.load.push(0);
        self.0.weight.push(weight);
        self.0.health.push(Health::Up);
        self.0.key.push(key);
        b
    }

    /// Sets the health of `b`.
    pub fn set_health(&mut self, b: BackendId, health: Health) {
        self.0.health[b.index()] = health;
        self.refresh();
    }

    /// Sets the weight of `b`.
    pub fn set_weight(&mut self, b: BackendId, weight: Weight) {
        self.0.weight[b.index()] = weight;
        self.refresh();
    }

    /// Counts a request assigned to `b`.
    #[inline]
    pub fn assign(&mut self, b: BackendId) {
        let i = b.index();
        self.0.load[i] += 1;
        self.0.total_load += 1;
        self.update_relative(i);
    }

    /// Counts a request of `b` as ended.
    ///
    /// # Panics
    /// When `b` has no request: every assignment is completed exactly once.
    #[inline]
    pub fn complete(&mut self, b: BackendId) {
        let i = b.index();
        self.0.load[i] = self.0.load[i].checked_sub(1).expect("a request completes exactly once");
        self.0.total_load -= 1;
        self.update_relative(i);
    }

    #[inline]
    fn update_relative(&mut self, i: usize) {
        if self.0.relative.get(i) != Some(RelativeLoad::INELIGIBLE) {
            self.0.relative.set(i, RelativeLoad::of(self.0.load[i], self.0.weight[i]));
        }
    }

    /// Derives everything that follows from health and weight; membership changes are rare.
    fn refresh(&mut self) {
        let v = &mut self.0;
        (v.eligible, v.eligible_weight, v.uniform) = (0, 0, true);
        let mut first = None;
        let mut relative = vec![RelativeLoad::INELIGIBLE; v.load.len()];
        for (i, relative) in relative.iter_mut().enumerate() {
            if v.health[i] == Health::Up && v.weight[i] != Weight::ZERO {
                *relative = RelativeLoad::of(v.load[i], v.weight[i]);
                v.eligible += 1;
                v.eligible_weight += u64::from(v.weight[i].steps());
                v.uniform &= *first.get_or_insert(v.weight[i]) == v.weight[i];
            }
        }
        v.relative = MinBlocks::new(&relative);
        v.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B0: BackendId = BackendId(0);
    const B1: BackendId = BackendId(1);
    const B2: BackendId = BackendId(2);

    #[test]
    fn least_loaded_breaks_ties_by_lowest_index() {
        let mut c = Cluster::new(3);
        assert_eq!(c.least_loaded(), Some(B0));
        c.assign(B0);
        assert_eq!(c.least_loaded(), Some(B1));
        c.assign(B1);
        c.assign(B2);
        assert_eq!(c.least_loaded(), Some(B0));
        c.complete(B2);
        assert_eq!(c.least_loaded(), Some(B2));
        assert_eq!(c.total_load(), 2);
    }

    #[test]
    fn failed_draining_and_weightless_backends_take_nothing() {
        let mut c = Cluster::new(3);
        c.set_health(B0, Health::Down);
        assert_eq!(c.least_loaded(), Some(B1));
        c.set_health(B1, Health::Draining);
        assert_eq!(c.least_loaded(), Some(B2));
        c.set_weight(B2, Weight::ZERO);
        assert_eq!(c.least_loaded(), None);
        assert_eq!(c.eligible(), 0);
        c.set_health(B0, Health::Up);
        assert_eq!(c.least_loaded(), Some(B0));
    }

    #[test]
    fn weight_divides_the_load() {
        let mut c = Cluster::new(2);
        c.set_weight(B1, Weight::new(2.0).unwrap());
        for b in [B0, B1, B1] {
            c.assign(b);
        }
        // 1 request at weight 1 and 2 at weight 2 are the same relative load.
        assert_eq!(c.relative_load(B0), c.relative_load(B1));
        assert_eq!(c.relative_load(B0), RelativeLoad::threshold(1));
        assert!(!c.is_uniform());
        assert_eq!(c.eligible_weight_steps(), 3 * 256);
    }

    #[test]
    fn thresholds_compare_strictly() {
        let mut c = Cluster::new(1);
        c.assign(B0);
        assert!(!c.any_below(RelativeLoad::threshold(1)));
        assert!(c.any_below(RelativeLoad::threshold(2)));
    }

    #[test]
    #[should_panic(expected = "completes exactly once")]
    fn completing_twice_is_a_bug() {
        Cluster::new(1).complete(B0);
    }
}
