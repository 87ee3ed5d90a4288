//! Which node answers a request: any policy, asked through the core, as by a front-end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plimsoll_policy::{
    AdmissionControl, Assigned, BackendId, BuildContext, Cluster, Core, Ending, Health, LruMap, Offered,
    PolicyChoice, Request, TargetId, Time, Weight,
};

use super::super::config::AgentError;
use super::config::CloneConfig;

/// Where a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodePlace {
    Here,
    /// At the peer of this number.
    Peer(usize),
}

/// A request that has its place.
#[derive(Debug)]
pub(super) struct MappedRequest {
    pub(super) place: NodePlace,
    target: TargetId,
    assigned: Option<Assigned>,
}

/// How a mapped request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MappedEnd {
    /// Answered with content of this size, which may not be all that there is.
    Answered { content_bytes: u64, whole: bool },
    /// Not by that node, or not at all.
    Failed,
}

/// Documents whose sizes are remembered.
const SIZES: usize = 1 << 16;

/// The mapping function of a node.
pub(super) struct Mapping {
    began: Instant,
    min_bytes: u64,
    inner: Mutex<MappingState>,
}

struct MappingState {
    core: Core,
    last: Time,
    next_number: u64,
    next_tick: Option<Time>,
    /// By back-end.
    places: Vec<NodePlace>,
    /// Of documents that were answered with.
    sizes_bytes: LruMap<u64>,
}

impl Mapping {
    /// All nodes in the order of their names, so that each has the same ones.
    pub(super) fn new(config: &CloneConfig) -> Result<Self, AgentError> {
        let policy = build(&config.policy)?;
        let mut core = Core::new(policy, Cluster::new(0), AdmissionControl::UNLIMITED);
        let peers = config.peers.iter().enumerate();
        let mut nodes: Vec<_> = peers.map(|(number, peer)| (&*peer.name, NodePlace::Peer(number))).collect();
        nodes.push((&*config.name, NodePlace::Here));
        nodes.sort_unstable_by_key(|(name, _)| *name);
        for (name, place) in &nodes {
            let key = TargetId::from_key(name.as_bytes()).0;
            let joined = core.join(name, key, Weight::ONE, Time::ZERO);
            let b = joined.map_err(|error| AgentError::Config(error.to_string()))?;
            // Until there is a link.
            if matches!(place, NodePlace::Peer(_)) {
                core.set_health(b, Health::Down, Time::ZERO);
            }
        }
        let next_tick = core.tick_interval().map(|interval| Time::ZERO + interval);
        let places = nodes.into_iter().map(|(_, place)| place).collect();
        let sizes_bytes = LruMap::new(SIZES);
        let inner = MappingState { core, last: Time::ZERO, next_number: 0, next_tick, places, sizes_bytes };
        Ok(Self { began: Instant::now(), min_bytes: config.min_bytes, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> (MutexGuard<'_, MappingState>, Time) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        inner.last = inner.last.max(now);
        let now = inner.last;
        if inner.next_tick.is_some_and(|at| at <= now) {
            inner.core.tick(now);
            inner.next_tick = inner.core.tick_interval().map(|interval| now + interval);
        }
        (inner, now)
    }

    /// Says who answers. A document that is known to be small is answered here, and so is all for an address that only this
    /// node has.
    pub(super) fn place(&self, target: &[u8], here_only: bool) -> MappedRequest {
        let target = TargetId::from_key(target);
        let (mut inner, now) = self.inner();
        let size_bytes = inner.sizes_bytes.get_mut(target).copied();
        if here_only || size_bytes.is_some_and(|bytes| bytes < self.min_bytes) {
            return MappedRequest { place: NodePlace::Here, target, assigned: None };
        }
        let number = inner.next_number;
        inner.next_number += 1;
        let request = Request { size_bytes, ..Request::of(number, target) };
        let mut offered = inner.core.offer(&request, now);
        if let Offered::Poll(asked) = offered {
            // Nobody carries polls between nodes: their own counts answer.
            let answers: Vec<_> = inner.core.view().answers(asked).collect();
            offered = inner.core.answer(number, &answers, now).unwrap_or(offered);
        }
        match offered {
            Offered::Assigned(assigned) => {
                let place = inner.places.get(assigned.backend.index()).copied().unwrap_or(NodePlace::Here);
                MappedRequest { place, target, assigned: Some(assigned) }
            }
            _ => MappedRequest { place: NodePlace::Here, target, assigned: None },
        }
    }

    /// A request that has its place has ended.
    pub(super) fn ended(&self, mapped: &MappedRequest, end: MappedEnd) {
        let (mut inner, now) = self.inner();
        let ending = match end {
            MappedEnd::Answered { content_bytes, whole } => {
                if whole {
                    *inner.sizes_bytes.get_or_insert_with(mapped.target, || 0).0 = content_bytes;
                }
                Ending::answered(Some(content_bytes))
            }
            MappedEnd::Failed => Ending::FAILED,
        };
        if let Some(assigned) = &mapped.assigned {
            inner.core.complete(assigned, ending, now);
        }
    }

    /// A peer can be asked for clones now, or no longer.
    pub(super) fn set_up(&self, peer: usize, up: bool) {
        let (mut inner, now) = self.inner();
        if let Some(index) = inner.places.iter().position(|place| *place == NodePlace::Peer(peer)) {
            let health = if up { Health::Up } else { Health::Down };
            inner.core.set_health(BackendId::new(index), health, now);
        }
    }
}

fn build(choice: &PolicyChoice) -> Result<Box<dyn plimsoll_policy::Policy>, AgentError> {
    choice.build(&BuildContext::default()).map_err(|error| AgentError::Config(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::config::ClonePeer;
    use super::*;
    use crate::daemon::ServeConfig;
    use plimsoll_wire::Key;

    fn mapping(own: &str) -> Mapping {
        with_least(own, 0)
    }

    fn with_least(own: &str, min_bytes: u64) -> Mapping {
        let listen = "10.0.0.1:7400".parse().unwrap();
        let serve = ServeConfig::Copy("127.0.0.1:80".parse().unwrap());
        let mut config = CloneConfig::new(own, listen, Key::new([1; 32]), serve);
        config.min_bytes = min_bytes;
        config.peers = ["c", "a", "b"]
            .into_iter()
            .filter(|name| *name != own)
            .map(|name| ClonePeer { name: name.to_owned(), address: "10.0.0.2:7400".parse().unwrap() })
            .collect();
        Mapping::new(&config).unwrap()
    }

    fn name(own: &str, place: NodePlace) -> String {
        let others: Vec<_> = ["c", "a", "b"].into_iter().filter(|name| *name != own).collect();
        match place {
            NodePlace::Here => own.to_owned(),
            NodePlace::Peer(number) => others[number].to_owned(),
        }
    }

    #[test]
    fn all_nodes_agree() {
        let nodes = ["a", "b", "c"].map(|own| (own, mapping(own)));
        for (_, mapping) in &nodes {
            (0..2).for_each(|peer| mapping.set_up(peer, true));
        }
        let mut seen = std::collections::BTreeMap::new();
        for number in 0..300 {
            let target = format!("/{number}");
            let found = nodes.each_ref().map(|(own, mapping)| {
                let placed = mapping.place(target.as_bytes(), false);
                let found = name(own, placed.place);
                mapping.ended(&placed, MappedEnd::Answered { content_bytes: 1, whole: false });
                found
            });
            assert!(found.iter().all(|other| *other == found[0]), "{target}: {found:?}");
            *seen.entry(found[0].clone()).or_insert(0) += 1;
        }
        assert!(seen.len() == 3 && seen.values().all(|&count| count > 50), "{seen:?}");
    }

    #[test]
    fn without_links_all_is_answered_here() {
        let mapping = mapping("a");
        for number in 0..50 {
            let placed = mapping.place(format!("/{number}").as_bytes(), false);
            assert_eq!(placed.place, NodePlace::Here);
            mapping.ended(&placed, MappedEnd::Failed);
        }
        mapping.set_up(0, true);
        assert!((0..50).all(|n| mapping.place(format!("/{n}").as_bytes(), true).place == NodePlace::Here));
        let places: Vec<_> =
            (0..50).map(|n| mapping.place(format!("/{n}").as_bytes(), false).place).collect();
        assert!(places.contains(&NodePlace::Peer(0)) && places.contains(&NodePlace::Here));
    }

    #[test]
    fn what_is_known_to_be_small_is_answered_here() {
        let mapping = with_least("a", 1000);
        (0..2).for_each(|peer| mapping.set_up(peer, true));
        let elsewhere = |target: &str| mapping.place(target.as_bytes(), false).place != NodePlace::Here;
        let targets: Vec<_> = (0..100).map(|n| format!("/{n}")).filter(|target| elsewhere(target)).collect();
        assert!(targets.len() > 30);
        for (number, target) in targets.iter().enumerate() {
            let content_bytes = if number % 2 == 0 { 999 } else { 1000 };
            let mapped = mapping.place(target.as_bytes(), false);
            mapping.ended(&mapped, MappedEnd::Answered { content_bytes, whole: true });
            assert_eq!(elsewhere(target), number % 2 == 1, "{target}");
            // A part says nothing of the whole.
            let mapped = mapping.place(target.as_bytes(), false);
            mapping.ended(&mapped, MappedEnd::Answered { content_bytes: 5, whole: false });
            assert_eq!(elsewhere(target), number % 2 == 1, "{target}");
        }
    }
}
