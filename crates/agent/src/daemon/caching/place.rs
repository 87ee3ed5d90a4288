//! Which node is asked for a document. It knows no clock and no links.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_cache::{Cache, Lru};
use plimsoll_wire::caching::name_number;

use super::config::CacheLocation;

/// Most documents of which hints are kept.
const MOST_HINTED: u64 = 1 << 18;

/// See the module's documentation.
pub(super) struct CachePlaces {
    location: CacheLocation,
    own: u64,
    /// Numbers of the other nodes' names.
    peers: Vec<u64>,
    /// Which nodes have a document in memory, one bit for each. Looked up by document only, except when a node is lost.
    hints: HashMap<u64, u64, FixedState>,
    /// Which hints to forget; each counts as a byte.
    order: Lru,
    evicted: Vec<u64>,
}

/// The larger, the rather this node is the home of the document.
fn weight(node: u64, document: u64) -> u64 {
    let mut mixed = node ^ document.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2 {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    mixed ^ (mixed >> 29)
}

impl CachePlaces {
    pub(super) fn new<'a>(location: CacheLocation, own: &str, peers: impl Iterator<Item = &'a str>) -> Self {
        Self {
            location,
            own: name_number(own),
            peers: peers.map(name_number).collect(),
            hints: HashMap::default(),
            order: Lru::new(MOST_HINTED, None),
            evicted: Vec::new(),
        }
    }

    /// The node to ask for a document, among those that are there; `None` for this node's own disk.
    pub(super) fn of(&self, document: u64, is_there: impl Fn(usize) -> bool) -> Option<usize> {
        let hinted = match self.location {
            CacheLocation::Hash => u64::MAX,
            CacheLocation::Hints => self.hints.get(&document).copied().unwrap_or(0),
        };
        let candidates =
            self.peers.iter().enumerate().filter(|(at, _)| hinted >> at & 1 == 1 && is_there(*at));
        let best = candidates.map(|(at, peer)| (weight(*peer, document), at)).max()?;
        let own = weight(self.own, document);
        (self.location == CacheLocation::Hints || best.0 > own).then_some(best.1)
    }

    /// A node has told that it has a document.
    pub(super) fn held(&mut self, peer: usize, document: u64) {
        if self.location == CacheLocation::Hash || peer >= self.peers.len() {
            return;
        }
        self.order.request(document, 1, &mut self.evicted);
        for old in self.evicted.drain(..) {
            self.hints.remove(&old);
        }
        *self.hints.entry(document).or_insert(0) |= 1 << peer;
    }

    /// A node has a document no more.
    pub(super) fn dropped(&mut self, peer: usize, document: u64) {
        if let Some(nodes) = self.hints.get_mut(&document) {
            *nodes &= !(1 << peer);
            if *nodes == 0 {
                self.hints.remove(&document);
                self.order.remove(document);
            }
        }
    }

    /// Nothing is known any more of what a node has.
    pub(super) fn lost(&mut self, peer: usize) {
        let order = &mut self.order;
        self.hints.retain(|document, nodes| {
            *nodes &= !(1 << peer);
            if *nodes == 0 {
                order.remove(*document);
            }
            *nodes != 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["n1", "n2", "n3", "n4"];

    fn of(own: usize, location: CacheLocation) -> (CachePlaces, Vec<usize>) {
        let others: Vec<usize> = (0..NAMES.len()).filter(|other| *other != own).collect();
        (CachePlaces::new(location, NAMES[own], others.iter().map(|other| NAMES[*other])), others)
    }

    #[test]
    fn all_nodes_agree_on_homes_and_share_them_evenly() {
        let nodes: Vec<_> = (0..NAMES.len()).map(|own| of(own, CacheLocation::Hash)).collect();
        let mut counts = [0; NAMES.len()];
        for document in 0..4000u64 {
            let document = name_number(&document.to_string());
            let home = |own: usize| nodes[own].0.of(document, |_| true).map_or(own, |at| nodes[own].1[at]);
            let homes: Vec<_> = (0..NAMES.len()).map(home).collect();
            assert!(homes.iter().all(|home| *home == homes[0]), "{homes:?}");
            counts[homes[0]] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_lost_home_has_a_successor() {
        let (places, _) = of(0, CacheLocation::Hash);
        let document = (0..).find(|document| places.of(*document, |_| true) == Some(1)).unwrap();
        assert_ne!(places.of(document, |peer| peer != 1), Some(1));
        assert_eq!(places.of(document, |_| false), None);
    }

    #[test]
    fn hints_come_and_go() {
        let (mut places, _) = of(0, CacheLocation::Hints);
        let there = |_: usize| true;
        assert_eq!(places.of(7, there), None);
        places.held(2, 7);
        assert_eq!(places.of(7, there), Some(2));
        assert_eq!(places.of(7, |peer| peer != 2), None);
        places.held(0, 7);
        places.dropped(2, 7);
        assert_eq!(places.of(7, there), Some(0));
        places.held(0, 8);
        places.held(1, 8);
        places.lost(0);
        assert_eq!((places.of(7, there), places.of(8, there)), (None, Some(1)));
        assert_eq!((places.hints.len(), places.order.len()), (1, 1));
    }

    #[test]
    fn hints_are_bounded() {
        let (mut places, _) = of(0, CacheLocation::Hints);
        for document in 0..MOST_HINTED + 10 {
            places.held(0, document);
        }
        assert_eq!(places.hints.len() as u64, MOST_HINTED);
        assert_eq!(places.of(3, |_| true), None);
        assert_eq!(places.of(MOST_HINTED, |_| true), Some(0));
    }
}
