//! Puts segments of paths together that tell nothing of the demand, such as ids.

use crate::learn::path_tree::PathTree;
use crate::learn::statistic::{DemandSums, explained};

/// Up to so many different segments at one place are names, whatever they explain.
const NAMES_FEW: usize = 30;

/// Among more, one with fewer requests than this is no name.
const REQUESTS_LEAST: f64 = 20.0;

/// Segments explain something from this share of the variance on.
const SHARE_LEAST: f64 = 0.05;

/// The tree after segments were put together.
pub(crate) struct CollapsedPaths {
    pub(crate) tree: PathTree,
    /// What became of each node.
    redirect: Vec<u32>,
    /// Demands of the requests of exactly each node.
    own: Vec<DemandSums>,
    /// Those of it and all below.
    below: Vec<DemandSums>,
    /// Segments that became `*`.
    pub(crate) segments: u64,
    /// Places where that happened.
    pub(crate) places: u64,
}

impl CollapsedPaths {
    /// Of a tree and the demands of the requests of each node.
    pub(crate) fn new(tree: PathTree, own: Vec<DemandSums>) -> Self {
        let mut below = own.clone();
        // Children have higher numbers than their parents.
        for node in (0..tree.nodes.len()).rev() {
            let seen = &tree.nodes[node];
            let children = seen.named.values().chain(&seen.any).chain(&seen.rest);
            let sums: Vec<DemandSums> = children.map(|child| below[*child as usize]).collect();
            sums.into_iter().for_each(|sum| below[node].merge(sum));
        }
        let redirect = (0..).take(tree.nodes.len()).collect();
        let mut out = Self { tree, redirect, own, below, segments: 0, places: 0 };
        out.collapse(0);
        out
    }

    fn collapse(&mut self, node: u32) {
        let named = &self.tree.nodes[node as usize].named;
        if named.len() > NAMES_FEW {
            let of = |child: &u32| self.below[*child as usize];
            let found = explained(named.values().map(of));
            let names_matter = found.significant && found.share >= SHARE_LEAST;
            let is_name = |child: &u32| names_matter && of(child).count >= REQUESTS_LEAST;
            let merged: Vec<Box<[u8]>> =
                named.iter().filter(|(_, child)| !is_name(child)).map(|(name, _)| name.clone()).collect();
            self.places += u64::from(!merged.is_empty());
            self.segments += merged.len() as u64;
            for name in merged {
                self.put_into_any(node, &name);
            }
        }
        let seen = &self.tree.nodes[node as usize];
        let children: Vec<u32> = seen.named.values().chain(&seen.any).copied().collect();
        for child in children {
            self.collapse(child);
        }
    }

    fn put_into_any(&mut self, node: u32, name: &[u8]) {
        let seen = &mut self.tree.nodes[node as usize];
        let Some(child) = seen.named.remove(name) else { return };
        match seen.any {
            Some(any) => self.merge(child, any),
            None => seen.any = Some(child),
        }
    }

    /// Puts a node and all that is below into another one.
    fn merge(&mut self, from: u32, to: u32) {
        self.redirect[from as usize] = to;
        let (own, below) = (self.own[from as usize], self.below[from as usize]);
        self.own[to as usize].merge(own);
        self.below[to as usize].merge(below);
        let taken = std::mem::take(&mut self.tree.nodes[from as usize]);
        for (name, child) in taken.named {
            match self.tree.nodes[to as usize].named.get(&name) {
                Some(&other) => self.merge(child, other),
                None => drop(self.tree.nodes[to as usize].named.insert(name, child)),
            }
        }
        if let Some(child) = taken.any {
            match self.tree.nodes[to as usize].any {
                Some(other) => self.merge(child, other),
                None => self.tree.nodes[to as usize].any = Some(child),
            }
        }
        if let Some(child) = taken.rest {
            match self.tree.nodes[to as usize].rest {
                Some(other) => self.merge(child, other),
                None => self.tree.nodes[to as usize].rest = Some(child),
            }
        }
    }

    /// The node to which a node's requests belong now.
    pub(crate) fn node(&self, mut node: u32) -> u32 {
        while self.redirect[node as usize] != node {
            node = self.redirect[node as usize];
        }
        node
    }
}
