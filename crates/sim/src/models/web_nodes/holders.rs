//! Which nodes have a document in memory.

use plimsoll_cache::Cache;
use smallvec::SmallVec;

/// See the module's documentation. By target.
pub(super) struct Holders(Vec<SmallVec<[u16; 4]>>);

impl Holders {
    pub(super) fn new(targets: usize) -> Self {
        Self(vec![SmallVec::new(); targets])
    }

    pub(super) fn of(&self, target: u32) -> impl Iterator<Item = u16> + '_ {
        self.0[target as usize].iter().copied()
    }

    pub(super) fn add(&mut self, target: u32, node: u16) {
        let holders = &mut self.0[target as usize];
        if !holders.contains(&node) {
            holders.push(node);
        }
    }

    pub(super) fn remove(&mut self, target: u32, node: u16) {
        self.0[target as usize].retain(|&mut holder| holder != node);
    }

    /// The memory of `node` is empty from now on.
    pub(super) fn fail(&mut self, cache: &mut dyn Cache, node: u16) {
        for holders in &mut self.0 {
            holders.retain(|&mut holder| holder != node);
        }
        cache.clear();
    }
}
