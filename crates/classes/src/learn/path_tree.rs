//! The paths of the requests, as a tree of bounded size.

use std::collections::BTreeMap;

use crate::bounds::{SEGMENTS_MOST, WILD_SEGMENTS_MOST};
use crate::learn::bounds::{CHILDREN_MOST, NODES_MOST};
use crate::uri::{PathSegments, UriDecoded};

/// A node: a path, or a class of paths where segments are `*`.
#[derive(Debug, Default)]
pub(crate) struct SeenPath {
    /// By the decoded segment.
    pub(crate) named: BTreeMap<Box<[u8]>, u32>,
    /// Any other segment.
    pub(crate) any: Option<u32>,
    /// Everything below that is not told apart.
    pub(crate) rest: Option<u32>,
}

/// The nodes. The first is the root.
#[derive(Debug)]
pub(crate) struct PathTree {
    pub(crate) nodes: Vec<SeenPath>,
    scratch: Vec<u8>,
    /// Requests whose path has a segment for which there was no room.
    pub(crate) without_room: u64,
}

impl Default for PathTree {
    fn default() -> Self {
        Self { nodes: vec![SeenPath::default()], scratch: Vec::new(), without_room: 0 }
    }
}

impl PathTree {
    /// The node of a path; new nodes are made as long as there is room.
    pub(crate) fn node_of(&mut self, path: &[u8]) -> u32 {
        let segments = PathSegments::of(path);
        let (mut node, mut wild, mut roomless) = (0u32, 0, false);
        for depth in 0..segments.count {
            let Some(segment) = segments.get(depth).filter(|_| depth + 1 < SEGMENTS_MOST) else {
                node = self.rest(node);
                break;
            };
            self.scratch.clear();
            self.scratch.extend(UriDecoded::segment(segment));
            let seen = &self.nodes[node as usize];
            if let Some(&child) = seen.named.get(self.scratch.as_slice()) {
                node = child;
                continue;
            }
            if seen.named.len() < CHILDREN_MOST && self.nodes.len() < NODES_MOST {
                let child = self.add();
                let name = self.scratch.as_slice().into();
                self.nodes[node as usize].named.insert(name, child);
                node = child;
                continue;
            }
            roomless = true;
            wild += 1;
            if wild > WILD_SEGMENTS_MOST {
                node = self.rest(node);
                break;
            }
            node = self.any(node);
        }
        self.without_room += u64::from(roomless);
        node
    }

    fn add(&mut self) -> u32 {
        self.nodes.push(SeenPath::default());
        // Names are bounded by `NODES_MOST`, and each node has at most two children more.
        (self.nodes.len() - 1) as u32
    }

    /// The child for any segment.
    pub(crate) fn any(&mut self, node: u32) -> u32 {
        if let Some(child) = self.nodes[node as usize].any {
            return child;
        }
        // Nodes of many unnamed levels are not made for ever.
        if self.nodes.len() >= 2 * NODES_MOST {
            return self.rest(node);
        }
        let child = self.add();
        self.nodes[node as usize].any = Some(child);
        child
    }

    fn rest(&mut self, node: u32) -> u32 {
        if let Some(child) = self.nodes[node as usize].rest {
            return child;
        }
        if self.nodes.len() >= 3 * NODES_MOST {
            return node;
        }
        let child = self.add();
        self.nodes[node as usize].rest = Some(child);
        child
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_have_one_node() {
        let mut tree = PathTree::default();
        let node = tree.node_of(b"/a/b");
        assert_eq!(tree.node_of(b"/a//./%62"), node);
        assert_ne!(tree.node_of(b"/a/b/"), node);
        assert_eq!(tree.nodes.len(), 4);
    }

    #[test]
    fn a_million_paths_take_bounded_room() {
        let mut tree = PathTree::default();
        for n in 0..1_000_000u64 {
            // Also many levels with many names each.
            let path = format!("/item/{n}/{}/x{}/{}", n * 7919 % 1_000_003, n % 999, n * 31 % 65_537);
            tree.node_of(path.as_bytes());
        }
        assert!(tree.nodes.len() <= 3 * NODES_MOST, "{}", tree.nodes.len());
        assert!(tree.without_room > 0);
        assert!(tree.nodes.iter().all(|node| node.named.len() <= CHILDREN_MOST));
        let deep = "/d".repeat(1000);
        assert_eq!(tree.node_of(deep.as_bytes()), tree.node_of(format!("{deep}/e").as_bytes()));
    }
}
