//! Back-ends that come and go without a reload, as others tell: a directory of services, or a name server.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, TryLockError};

use plimsoll_config::{BackendName, Config};

use super::configured::warn_of_strange_address;
use super::members::MOST_MEMBERS;
use super::source::{MemberSpec, MembershipChange, MembershipSource};
use crate::backend::Backend;
use crate::backend_address::BackendAddress;
use crate::backend_pool::BackendPool;

/// What one source has told.
#[derive(Debug, Default)]
pub(crate) struct LearnedMembers {
    /// What has been carried out.
    there: BTreeMap<BackendName, MemberSpec>,
    wanted: BTreeMap<BackendName, MemberSpec>,
    /// Names that were left out, so that each is told once.
    told: Vec<BackendName>,
}

impl LearnedMembers {
    /// These are the members now. Back-ends of the configuration keep their names, and this front-end is none of its own.
    fn want(&mut self, specs: Vec<MemberSpec>, config: &Config) {
        let configured = |name: &str| config.backends.iter().any(|b| b.resolve.is_none() && *b.name == *name);
        let is_own =
            |address: &BackendAddress| config.listeners.iter().any(|l| address.tcp() == Some(l.address));
        // A reload has them now; they are not to leave when the source tells of them no more.
        self.there.retain(|name, _| !configured(name));
        self.wanted.clear();
        let mut left_out = Vec::new();
        for spec in specs {
            let why = match &spec.address {
                _ if configured(&spec.name) => "a back-end of the configuration has its name",
                Ok(address) if is_own(address) => "it is this front-end itself",
                _ => {
                    self.wanted.insert(Arc::clone(&spec.name), spec);
                    continue;
                }
            };
            if !self.told.contains(&spec.name) {
                tracing::warn!(backend = &*spec.name, "a back-end is left out: {why}");
            }
            left_out.push(spec.name);
        }
        self.told = left_out;
    }
}

impl MembershipSource for LearnedMembers {
    fn changes(&mut self) -> Vec<MembershipChange> {
        let before = std::mem::replace(&mut self.there, self.wanted.clone());
        let gone = before.keys().filter(|name| !self.there.contains_key(*name)).cloned();
        let gone: Vec<_> = gone.map(MembershipChange::Leave).collect();
        let there = self.there.values().filter_map(|spec| match before.get(&spec.name) {
            Some(old) if old == spec => None,
            Some(old) => {
                let reweighted = old.weight != spec.weight;
                Some(MembershipChange::Change { spec: spec.clone(), reweighted })
            }
            None => Some(MembershipChange::Join(spec.clone())),
        });
        there.chain(gone).collect()
    }
}

/// What became of members that a source has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenIn {
    /// They are as they were.
    Same,
    /// Some have come, gone or changed.
    Changed,
    /// A reload is under way, or has come since `config`: to be tried again.
    Later,
}

/// The members that a source tells are these now, under this configuration.
pub(crate) fn take_in(
    pool: &BackendPool,
    learned: &mut LearnedMembers,
    config: &Arc<Config>,
    specs: Vec<MemberSpec>,
) -> TakenIn {
    // A reload may hold it for long; the others that this thread looks after do not wait for that.
    let _one_at_a_time = match pool.membership.try_lock() {
        Ok(one_at_a_time) => one_at_a_time,
        Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
        Err(TryLockError::WouldBlock) => return TakenIn::Later,
    };
    if !Arc::ptr_eq(&pool.config.load(), config) {
        return TakenIn::Later;
    }
    learned.want(specs, config);
    let new: Vec<_> =
        learned.wanted.keys().filter(|name| !learned.there.contains_key(*name)).cloned().collect();
    if pool.dispatch.members_with(new.iter()) > MOST_MEMBERS {
        tracing::error!("{} back-ends more are too many, and are left out", new.len());
        new.iter().for_each(|name| drop(learned.wanted.remove(name)));
    }
    if learned.there == learned.wanted {
        return TakenIn::Same;
    }
    tell_of_new(pool, config, learned);
    for name in learned.there.keys().filter(|name| !learned.wanted.contains_key(*name)) {
        tracing::info!(backend = &**name, "a back-end leaves");
    }
    pool.members().follow(learned);
    TakenIn::Changed
}

/// Tells of back-ends that are about to join, also where another one is.
fn tell_of_new(pool: &BackendPool, config: &Config, learned: &LearnedMembers) {
    let backends = pool.backends.load();
    for spec in learned.wanted.values().filter(|spec| !learned.there.contains_key(&spec.name)) {
        let Ok(address) = &spec.address else { continue };
        tracing::info!(backend = &*spec.name, %address, "a back-end joins");
        let at_it = |b: &&Arc<Backend>| !b.is_retired() && b.address == spec.address && b.name != spec.name;
        let other = backends.iter().find(at_it).map(|b| &*b.name);
        warn_of_strange_address(config, &spec.name, address, other);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use plimsoll_policy::{Health, Weight};

    use super::*;
    use crate::shared::FrontEndShared;

    pub(crate) fn spec(name: &str, port: u16) -> MemberSpec {
        MemberSpec {
            name: name.into(),
            weight: Weight::ONE,
            address: Ok(([127, 0, 0, 1], port).into()),
            tls: None,
            http2: false,
            proxy_protocol: plimsoll_config::ProxyProtocol::None,
            agent: None,
            agent_at: None,
            authority: format!("127.0.0.1:{port}"),
            load_at: crate::backend::LoadAt::Port(7401),
            partitions: crate::partitioning::PartitionSet::ALL,
            max_connections: 4,
            max_waiting: 4,
            max_requests: None,
        }
    }

    fn names(shared: &FrontEndShared) -> Vec<String> {
        let backends = shared.backends.load();
        backends.iter().filter(|b| !b.is_retired()).map(|b| b.name.to_string()).collect()
    }

    #[test]
    fn members_join_change_and_leave() {
        let shared = FrontEndShared::before_three("");
        let config = shared.config.load_full();
        let mut learned = LearnedMembers::default();
        let mut told = |specs| take_in(&shared, &mut learned, &config, specs);
        assert_eq!(told(vec![spec("d", 9), spec("e", 8)]), TakenIn::Changed);
        assert_eq!(names(&shared), ["a", "b", "c", "d", "e"]);
        assert_eq!(told(vec![spec("d", 9), spec("e", 8)]), TakenIn::Same);
        let heavy = MemberSpec { weight: Weight::new(2.0).unwrap(), ..spec("d", 9) };
        assert_eq!(told(vec![heavy]), TakenIn::Changed);
        assert_eq!(names(&shared), ["a", "b", "c", "d"]);
        let left = shared.dispatch.first().inspect(|i| i.view.health(shared.nth(4).id));
        assert_eq!(left, Health::Draining, "what it has is finished");
        let weight = shared.dispatch.first().inspect(|i| i.view.weight(shared.nth(3).id));
        assert_eq!(weight.as_f64(), 2.0);
        assert_eq!(told(vec![]), TakenIn::Changed);
        assert_eq!(names(&shared), ["a", "b", "c"]);
    }

    #[test]
    fn the_configuration_comes_first() {
        let shared = FrontEndShared::before_three("");
        let config = shared.config.load_full();
        let mut learned = LearnedMembers::default();
        assert_eq!(take_in(&shared, &mut learned, &config, vec![spec("b", 77)]), TakenIn::Same);
        assert_eq!(shared.nth(1).address, Ok(([127, 0, 0, 1], 2).into()));
        // A name that a reload takes over stays when the source tells of it no more.
        take_in(&shared, &mut learned, &config, vec![spec("d", 9)]);
        let mut later = Config::clone(&config);
        later.backends.push(plimsoll_config::BackendConfig { name: "d".into(), ..later.backends[0].clone() });
        let later = Arc::new(later);
        assert_eq!(take_in(&shared, &mut learned, &later, vec![]), TakenIn::Later, "it is not in force");
        shared.config.store(Arc::clone(&later));
        assert_eq!(take_in(&shared, &mut learned, &later, vec![]), TakenIn::Same);
        assert_eq!(names(&shared), ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_reload_is_not_waited_for() {
        let shared = FrontEndShared::before_three("");
        let config = shared.config.load_full();
        let mut learned = LearnedMembers::default();
        let _reload = shared.membership.lock().unwrap();
        assert_eq!(take_in(&shared, &mut learned, &config, vec![spec("d", 9)]), TakenIn::Later);
        assert_eq!(names(&shared), ["a", "b", "c"]);
    }
}
