//! The cluster as a policy sees it: load, weight and health of every back-end.
//!
//! The runtime owns a [`Cluster`] and changes it; a policy gets the [`ClusterView`] inside and only reads.
//!
//! Tie rule, unless a policy says otherwise: "least loaded" goes to the lowest index, "most loaded" to the highest.

use std::collections::VecDeque;
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
    /// Failed: its requests are lost.
    Down,
}

/// What changed in the membership of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A back-end joined: at the next index, or at that of one which has left.
    Joined,
    /// A back-end left. It had no load and was down; its index may be given to another one.
    Left,
    /// Health is now this.
    Health(Health),
    /// The weight is now this.
    Weight(Weight),
}

/// What each assignment reads and writes of a back-end, in one place.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// What policies see.
    load: u32,
    /// Of it, what this front-end has assigned.
    own: u32,
    weight: Weight,
    /// How many back-ends have had this index before.
    generation: u32,
}

/// Load, weight and health of every back-end.
#[derive(Debug, Clone)]
pub struct ClusterView {
    counted: Vec<Counted>,
    /// Relative load, or `RelativeLoad::INELIGIBLE`.
    relative: MinBlocks,
    health: Vec<Health>,
    key: Vec<u64>,
    /// Whether a back-end has the index.
    present: Vec<bool>,
    /// Indices that no back-end has, in the order in which theirs left.
    left: VecDeque<BackendId>,
    /// The most requests of this front-end that a back-end may have; empty while no one is limited.
    most: Vec<u32>,
    /// How many of those that take requests have as many as they may.
    full: usize,
    eligible: usize,
    eligible_weight: u64,
    uniform: bool,
    total_load: u64,
    total_own_load: u64,
    generation: u64,
}

impl ClusterView {
    /// Number of indices: back-ends, failed ones included, and those that have left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counted.len()
    }

    /// Whether there is no back-end at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Every back-end in index order.
    pub fn ids(&self) -> impl Iterator<Item = BackendId> + use<> {
        (0..self.counted.len()).map(BackendId::new)
    }

    /// Like [`Self::eligible_ids`], with those that only the choice under way leaves out because they failed the
    /// request: what a policy's tables are made of.
    pub fn ids_for_tables(&self) -> impl Iterator<Item = BackendId> + '_ {
        self.ids().filter(|&b| self.takes_requests(b))
    }

    /// The back-ends that take new requests, in index order.
    pub fn eligible_ids(&self) -> impl Iterator<Item = BackendId> + '_ {
        self.ids().filter(|&b| self.is_eligible(b))
    }

    /// Number of back-ends that take new requests.
    #[must_use]
    #[inline]
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

    /// Whether `b` takes new requests: it is up, its weight is not zero, and it is not full.
    #[must_use]
    #[inline]
    pub fn is_eligible(&self, b: BackendId) -> bool {
        self.relative.get(b.index()).is_some_and(|r| r != RelativeLoad::INELIGIBLE)
    }

    fn takes_requests(&self, b: BackendId) -> bool {
        self.health(b) == Health::Up && self.weight(b) != Weight::ZERO
    }

    /// Requests assigned to `b` and not completed (LARD's active connections), as far as this front-end knows: its own, and
    /// what load information adds for others ([`Cluster::report`]).
    #[must_use]
    #[inline]
    pub fn load(&self, b: BackendId) -> u32 {
        self.counted[b.index()].load
    }

    /// The sum of [`Self::load`] over all back-ends.
    #[must_use]
    #[inline]
    pub fn total_load(&self) -> u64 {
        self.total_load
    }

    /// Requests that this front-end assigned to `b` and that are not completed.
    #[must_use]
    #[inline]
    pub fn own_load(&self, b: BackendId) -> u32 {
        self.counted[b.index()].own
    }

    /// The sum of [`Self::own_load`] over all back-ends.
    #[must_use]
    #[inline]
    pub fn total_own_load(&self) -> u64 {
        self.total_own_load
    }

    /// Load per unit of weight; above every real load when `b` takes no new requests.
    #[must_use]
    #[inline]
    pub fn relative_load(&self, b: BackendId) -> RelativeLoad {
        RelativeLoad(self.relative.get(b.index()).unwrap_or(RelativeLoad::INELIGIBLE))
    }

    /// Weight of `b`.
    #[must_use]
    #[inline]
    pub fn weight(&self, b: BackendId) -> Weight {
        self.counted[b.index()].weight
    }

    /// Health of `b`.
    #[must_use]
    #[inline]
    pub fn health(&self, b: BackendId) -> Health {
        self.health[b.index()]
    }

    /// Stable identity of `b` for hashing: does not depend on its index.
    #[must_use]
    #[inline]
    pub fn key(&self, b: BackendId) -> u64 {
        self.key[b.index()]
    }

    /// Whether the back-end that had the index of `b` has left, and no other one has it.
    #[must_use]
    #[inline]
    pub fn has_left(&self, b: BackendId) -> bool {
        !self.present[b.index()]
    }

    /// The back-ends that have left, in the order in which they did.
    pub fn left_ids(&self) -> impl Iterator<Item = BackendId> + '_ {
        self.left.iter().copied()
    }

    /// How many back-ends have had the index of `b` before it.
    #[must_use]
    #[inline]
    pub fn backend_generation(&self, b: BackendId) -> u32 {
        self.counted[b.index()].generation
    }

    /// Grows with every change of membership, health or weight, so that a policy can tell that its tables are
    /// stale.
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

    /// Like [`Self::least_loaded`], but ties go to the first index at or after `from`, wrapping around.
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

/// The cluster as its runtime changes it. Dereferences to a [`ClusterView`].
#[derive(Debug, Clone)]
pub struct Cluster {
    view: ClusterView,
    /// What an assignment adds to the load that policies see: 1, or 0 where only reports change it.
    step: u32,
}

impl Deref for Cluster {
    type Target = ClusterView;
    #[inline]
    fn deref(&self) -> &ClusterView {
        &self.view
    }
}

impl Cluster {
    /// The most that is believed of a back-end's load.
    pub const MOST_LOAD: u32 = 1 << 24;
    /// The most back-ends at a time.
    pub const MOST: usize = 65_535;

    /// `backends` back-ends of weight 1, all up and without load, at most 65,535.
    ///
    /// # Panics
    /// When `backends` is above 65,535.
    #[must_use]
    pub fn new(backends: usize) -> Self {
        let mut cluster = Self {
            view: ClusterView {
                counted: Vec::new(),
                relative: MinBlocks::new(&[]),
                health: Vec::new(),
                key: Vec::new(),
                present: Vec::new(),
                left: VecDeque::new(),
                most: Vec::new(),
                full: 0,
                eligible: 0,
                eligible_weight: 0,
                uniform: true,
                total_load: 0,
                total_own_load: 0,
                generation: 0,
            },
            step: 1,
        };
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
        self.try_join(weight, key).expect("a cluster holds at most 65,535 back-ends")
    }

    /// Adds a back-end. It reuses the index that has been free longest, if any. `None` when there are
    /// [`Cluster::MOST`] already.
    pub fn try_join(&mut self, weight: Weight, key: u64) -> Option<BackendId> {
        let b = match self.view.left.pop_front() {
            Some(b) => {
                let i = b.index();
                (self.view.health[i], self.view.key[i]) = (Health::Up, key);
                self.view.counted[i].weight = weight;
                self.view.counted[i].generation += 1;
                self.view.present[i] = true;
                b
            }
            None if self.view.counted.len() < Self::MOST => self.push(weight, key),
            None => return None,
        };
        self.refresh();
        Some(b)
    }

    /// Removes `b` and frees its index for another back-end.
    ///
    /// # Panics
    /// When `b` has load, or has left before.
    pub fn leave(&mut self, b: BackendId) {
        assert!(
            self.view.own_load(b) == 0 && !self.view.has_left(b),
            "only an idle back-end leaves, and once"
        );
        self.report(b, 0);
        self.view.health[b.index()] = Health::Down;
        self.view.present[b.index()] = false;
        self.view.most.get_mut(b.index()).into_iter().for_each(|most| *most = u32::MAX);
        self.view.left.push_back(b);
        self.refresh();
    }

    fn push(&mut self, weight: Weight, key: u64) -> BackendId {
        assert!(self.view.counted.len() < Self::MOST, "a cluster holds at most 65,535 back-ends");
        let b = BackendId::new(self.view.counted.len());
        self.view.counted.push(Counted { load: 0, own: 0, weight, generation: 0 });
        self.view.health.push(Health::Up);
        self.view.key.push(key);
        self.view.present.push(true);
        if !self.view.most.is_empty() {
            self.view.most.push(u32::MAX);
        }
        b
    }

    /// Sets the health of `b`.
    pub fn set_health(&mut self, b: BackendId, health: Health) {
        self.view.health[b.index()] = health;
        self.refresh();
    }

    /// Sets the weight of `b`.
    pub fn set_weight(&mut self, b: BackendId, weight: Weight) {
        self.view.counted[b.index()].weight = weight;
        self.refresh();
    }
}

mod answers;
mod counting;
mod exclude;
mod limits;
mod neutral;
mod refresh;
#[cfg(test)]
mod tests;
