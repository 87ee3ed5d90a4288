//! The one entry through which the cluster changes: what a source says becomes a new table of back-ends, and joins, weights
//! and departures in dispatch.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use plimsoll_policy::{BackendId, Health};

use super::source::{MemberSpec, MembershipChange, MembershipSource};
use crate::backend::Backend;
use crate::dispatch::PartitionedDispatch;
use crate::weight_course::{ShapedWeights, locked};

/// The most back-ends that are there at a time, departed ones with requests included.
pub(crate) const MOST_MEMBERS: usize = 65_534;

/// Back-ends that are remembered at least, departed ones included, before others get their indices.
const KEPT_INDICES: usize = 1024;

/// A back-end of this identity, taken to be up until a check says otherwise; without an address it is down.
pub(crate) fn backend(pool: u32, id: BackendId, spec: &MemberSpec, workers: usize) -> Backend {
    let (name, authority) = (Arc::clone(&spec.name), spec.authority.clone());
    let address = spec.address.clone();
    Backend::new(id, name, address, authority, spec.max_connections, workers)
        .of_pool(pool)
        .limited(spec.max_waiting, spec.max_requests)
        .with_agent(spec.agent, spec.agent_at.clone())
        .telling_load_at(spec.load_at)
        .spoken_to(spec.tls.clone(), spec.http2, spec.proxy_protocol)
}

/// Whether a back-end is as a source says; its weight is dispatch's.
fn is_as(backend: &Backend, spec: &MemberSpec) -> bool {
    backend.address == spec.address
        && backend.agent == spec.agent
        && backend.agent_at == spec.agent_at
        && backend.tls == spec.tls
        && backend.http2 == spec.http2
        && backend.proxy_protocol == spec.proxy_protocol
        && backend.load_at == spec.load_at
        && backend.authority == spec.authority
        && backend.max_connections == spec.max_connections
        && (backend.max_waiting, backend.max_requests) == (spec.max_waiting, spec.max_requests)
}

/// What dispatch is told once the table is right.
#[derive(Default)]
struct Entering<'a> {
    /// Back-ends that join.
    joined: Vec<&'a MemberSpec>,
    /// Back-ends that are there and have got an address.
    found: Vec<BackendId>,
}

/// The members of the cluster, where they are kept.
pub(crate) struct Members<'a> {
    pub(crate) dispatch: &'a PartitionedDispatch,
    /// By the index of their ids.
    pub(crate) backends: &'a ArcSwap<Vec<Arc<Backend>>>,
    /// Weights that differ for a while.
    pub(crate) weights: &'a Mutex<ShapedWeights>,
    /// Threads that count what back-ends do.
    pub(crate) workers: usize,
    /// The number of their pool.
    pub(crate) pool: u32,
}

impl Members<'_> {
    /// Carries out what the source says. One at a time: the caller sees to that.
    pub(crate) fn follow(&self, source: &mut impl MembershipSource) {
        let changes = source.changes();
        let mut backends: Vec<Arc<Backend>> = self.backends.load().to_vec();
        let mut free = self.free_indices(&backends, &changes);
        let mut entering = Entering::default();
        let mut left = Vec::new();
        for change in &changes {
            match change {
                MembershipChange::Leave(name) => left.push(name),
                MembershipChange::Join(spec) => {
                    self.set(&mut backends, &mut free, spec, true, &mut entering);
                }
                MembershipChange::Change { spec, reweighted } => {
                    self.set(&mut backends, &mut free, spec, *reweighted, &mut entering);
                }
            }
        }
        // The table of back-ends comes first: dispatch must not choose what is not in it.
        self.backends.store(Arc::new(backends.clone()));
        for spec in entering.joined {
            let health = if spec.address.is_ok() { Health::Up } else { Health::Down };
            // The number of back-ends was checked before.
            match self.dispatch.join(&spec.name, spec.weight, health, spec.partitions) {
                Ok(id) => self.dispatch.set_most_requests(id, spec.max_requests),
                Err(full) => tracing::error!(backend = &*spec.name, %full, "a back-end cannot join"),
            }
        }
        for id in entering.found {
            // Up until a check says otherwise, unless an operator has drained it.
            let backend = &backends[id.index()];
            let health = backend.good_sign(1).unwrap_or_else(|| backend.health());
            self.dispatch.set_health(id, health);
        }
        for gone in backends.iter().filter(|b| left.contains(&&b.name) && !b.is_retired()) {
            gone.retire();
            self.dispatch.set_health(gone.id, Health::Draining);
        }
    }

    /// Indices of departed back-ends, one for each that joins beyond [`KEPT_INDICES`]. The others keep theirs, and with it
    /// their counters, for the case that they come back.
    fn free_indices(&self, backends: &[Arc<Backend>], changes: &[MembershipChange]) -> VecDeque<BackendId> {
        let mut there: BTreeSet<&str> =
            backends.iter().filter(|b| !b.is_retired()).map(|b| &*b.name).collect();
        for change in changes {
            match change {
                MembershipChange::Join(spec) | MembershipChange::Change { spec, .. } => {
                    there.insert(&spec.name)
                }
                MembershipChange::Leave(name) => there.remove(&**name),
            };
        }
        let known = backends.iter().filter(|b| there.contains(&*b.name)).count();
        let new = there.len() - known;
        let beyond = (backends.len() + new).saturating_sub(KEPT_INDICES.max(2 * there.len()));
        let departed = backends.iter().filter(|b| b.is_retired() && !there.contains(&*b.name));
        // No more than join now: a name whose index is free must not stay in the table.
        self.dispatch.release(departed.map(|b| b.id), beyond.min(new)).into()
    }

    /// Makes the table right about one back-end, and tells dispatch of a weight; the rest that dispatch is to be told goes to
    /// `entering`.
    fn set<'c>(
        &self,
        backends: &mut Vec<Arc<Backend>>,
        free: &mut VecDeque<BackendId>,
        spec: &'c MemberSpec,
        reweighted: bool,
        entering: &mut Entering<'c>,
    ) {
        let Some(index) = backends.iter().position(|b| b.name == spec.name) else {
            let id = free.front().copied().unwrap_or(BackendId::new(backends.len()));
            let next = Arc::new(backend(self.pool, id, spec, self.workers));
            match free.pop_front() {
                Some(free) => backends[free.index()] = next,
                None => backends.push(next),
            }
            entering.joined.push(spec);
            return;
        };
        let known = &mut backends[index];
        // One that had no address is the same one when it gets one: what an operator has set stays.
        let moved = known.is_retired() || known.address.is_ok() && known.address != spec.address;
        let found = !moved && known.address.is_err() && spec.address.is_ok();
        if moved || !is_as(known, spec) {
            let next = Arc::new(backend(self.pool, known.id, spec, self.workers).succeeding(known));
            known.retire();
            *known = next;
        }
        // Otherwise it is as healthy as it was, and as drained.
        if moved {
            entering.joined.push(spec);
            return;
        }
        if found {
            entering.found.push(known.id);
        }
        self.dispatch.set_held(known.id, spec.partitions, known.health());
        self.dispatch.set_most_requests(known.id, spec.max_requests);
        if reweighted {
            let mut weights = locked(self.weights);
            // What differs is looked after soon.
            if !weights.set(known, spec.weight) {
                self.dispatch.set_weight(known.id, spec.weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_config::Config;
    use plimsoll_policy::{Kind, TargetId, Weight};

    use super::*;
    use crate::dispatch::Offer;
    use crate::host_names::UnresolvedHost;

    /// Says what it was given, once.
    struct Told(Vec<MembershipChange>);

    impl MembershipSource for Told {
        fn changes(&mut self) -> Vec<MembershipChange> {
            std::mem::take(&mut self.0)
        }
    }

    fn spec(name: &str) -> MemberSpec {
        MemberSpec {
            name: name.into(),
            weight: Weight::ONE,
            address: Ok(([127, 0, 0, 1], 1).into()),
            tls: None,
            http2: false,
            proxy_protocol: plimsoll_config::ProxyProtocol::None,
            agent: None,
            agent_at: None,
            load_at: crate::backend::LoadAt::Port(7401),
            authority: "a".to_owned(),
            partitions: crate::partitioning::PartitionSet::ALL,
            max_connections: 4,
            max_waiting: 4,
            max_requests: None,
        }
    }

    /// A cluster of one back-end, `stays`.
    fn cluster() -> (PartitionedDispatch, ArcSwap<Vec<Arc<Backend>>>) {
        let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\nname = \"stays\"\n\
                    address = \"127.0.0.1:1\"\n[policy]\nname = \"lard\"\n";
        let config = Config::parse(text, "test.toml").unwrap();
        let dispatch = PartitionedDispatch::new(&config, &[spec("stays")], 1).unwrap();
        let first = Arc::new(backend(0, BackendId(0), &spec("stays"), 1));
        (dispatch, ArcSwap::from_pointee(vec![first]))
    }

    /// What keeps it up to date.
    fn members<'a>(
        dispatch: &'a PartitionedDispatch,
        backends: &'a ArcSwap<Vec<Arc<Backend>>>,
        weights: &'a Mutex<ShapedWeights>,
    ) -> Members<'a> {
        Members { dispatch, backends, weights, workers: 1, pool: 0 }
    }

    #[test]
    fn more_back_ends_come_and_go_than_there_are_identities() {
        let (dispatch, backends) = cluster();
        let weights = Mutex::default();
        let members = members(&dispatch, &backends, &weights);
        for round in 0..70_000 {
            let name = format!("b{round}");
            members.follow(&mut Told(vec![MembershipChange::Join(spec(&name))]));
            let id = backends.load().iter().find(|b| *b.name == *name).map(|b| b.id).unwrap();
            let known = dispatch.first().inspect(|i| {
                let member = i.members.iter().find(|m| *m.name == *name).map(|m| m.id);
                (member, i.view.health(id), i.view.eligible())
            });
            assert_eq!(known, (Some(id), Health::Up, 2), "{name}");
            members.follow(&mut Told(vec![MembershipChange::Leave(name.as_str().into())]));
        }
        assert!(backends.load().len() <= KEPT_INDICES + 1);
        assert_eq!(dispatch.first().inspect(|i| (i.view.eligible(), i.view.total_load())), (1, 0));
        let Offer::Assigned(assignment) = dispatch.first().offer(TargetId(7), Kind::Static, 0) else {
            panic!("the back-end that stays takes requests");
        };
        assert_eq!(assignment.backend(), BackendId(0));
    }

    #[test]
    fn a_name_that_returns_has_the_same_index_in_the_table_and_in_dispatch() {
        let (dispatch, backends) = cluster();
        let weights = Mutex::default();
        let members = members(&dispatch, &backends, &weights);
        let names = |letter: char| (0..700).map(move |n| format!("{letter}{n}"));
        let join = |names: &mut dyn Iterator<Item = String>| {
            members.follow(&mut Told(names.map(|name| MembershipChange::Join(spec(&name))).collect()));
        };
        let leave = |letter| {
            let gone = names(letter).map(|name| MembershipChange::Leave(name.as_str().into()));
            members.follow(&mut Told(gone.collect()));
        };
        let agree = || {
            let table = backends.load();
            dispatch.first().inspect(|i| {
                for member in i.members.iter().filter(|m| i.view.is_eligible(m.id)) {
                    assert_eq!(table[member.id.index()].name, member.name);
                }
                i.view.eligible()
            })
        };
        for letter in ['x', 'y'] {
            join(&mut names(letter));
            assert_eq!(agree(), 701);
            leave(letter);
            assert_eq!(agree(), 1);
        }
        // One that was there before, beside one that is new.
        join(&mut ["x5", "y600", "z"].map(str::to_owned).into_iter());
        assert_eq!(agree(), 4);
    }

    #[test]
    fn only_a_source_that_changes_a_weight_overrules_an_operator() {
        let (dispatch, backends) = cluster();
        let weights = Mutex::default();
        let members = members(&dispatch, &backends, &weights);
        let set = |spec: MemberSpec, reweighted| {
            members.follow(&mut Told(vec![MembershipChange::Change { spec, reweighted }]));
            dispatch.first().inspect(|i| i.view.weight(BackendId(0)))
        };
        let (half, double) = (Weight::new(0.5).unwrap(), Weight::new(2.0).unwrap());
        dispatch.set_weight(BackendId(0), half);
        assert_eq!(set(spec("stays"), false), half);
        assert_eq!(set(MemberSpec { max_connections: 9, ..spec("stays") }, false), half);
        assert_eq!(backends.load()[0].max_connections, 9);
        assert_eq!(set(MemberSpec { weight: double, ..spec("stays") }, true), double);
        assert!(!backends.load()[0].is_retired());
    }

    #[test]
    fn a_name_that_changes_is_the_one_that_is_followed_and_checked() {
        let (dispatch, backends) = cluster();
        let weights = Mutex::default();
        let members = members(&dispatch, &backends, &weights);
        let set = |spec: MemberSpec| {
            members.follow(&mut Told(vec![MembershipChange::Change { spec, reweighted: false }]));
            Arc::clone(&backends.load()[0])
        };
        let to = |authority: &str| MemberSpec { authority: authority.to_owned(), ..spec("stays") };
        let before = Arc::clone(&backends.load()[0]);
        before.set_drained(true);
        let after = set(to("b:80"));
        assert_eq!(
            (&*after.authority, after.is_drained()),
            ("b:80", true),
            "at the same address it is as it was"
        );
        let lost = || Err(UnresolvedHost { host: "b".to_owned(), error: "none".to_owned() });
        let lost = |authority| MemberSpec { address: lost(), ..to(authority) };
        let (first, second) = (set(lost("b:80")), set(lost("b:81")));
        assert!(first.is_retired() && !Arc::ptr_eq(&first, &second), "what follows the old name ends");
        assert_eq!((&*second.authority, second.health()), ("b:81", Health::Down));
    }

    #[test]
    fn what_waits_does_not_go_to_a_back_end_that_joins_without_an_address() {
        let (dispatch, backends) = cluster();
        let weights = Mutex::default();
        let members = members(&dispatch, &backends, &weights);
        dispatch.set_health(BackendId(0), Health::Down);
        let address = Err(UnresolvedHost { host: "b".to_owned(), error: "none".to_owned() });
        let joins = MemberSpec { address, ..spec("b") };
        let Offer::Waits(_ticket) = dispatch.first().offer(TargetId(7), Kind::Static, 0) else {
            panic!("no back-end takes requests");
        };
        members.follow(&mut Told(vec![MembershipChange::Join(joins)]));
        let seen =
            dispatch.first().inspect(|i| (i.waiting, i.view.total_load(), i.view.health(BackendId(1))));
        assert_eq!(seen, (1, 0, Health::Down));
    }
}
