//! The pools of a front-end: how they start, and what a reload changes of them.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use plimsoll_config::{BackendName, Config, DEFAULT_POOL, PoolConfig};

use crate::backend_pool::{BackendPool, FIRST_POOL};
use crate::dispatch::{BuildFailed, BuiltAnew};
use crate::http::target_hash::TargetHash;
use crate::membership::configured::{Reload, warn_of_strange_addresses};
use crate::membership::members::MOST_MEMBERS;
use crate::membership::resolve::{keep_found, members_of};
use crate::membership::source::{MemberSpec, MembershipChange, MembershipSource};
use crate::routing::Routing;
use crate::shared::FrontEndShared;

/// Why a pool cannot be as another configuration has it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    #[error(transparent)]
    Build(#[from] BuildFailed),
    #[error("too many back-ends")]
    TooMany,
}

/// The pool of the back-ends that name none.
///
/// # Errors
/// When the policy cannot be built or a decision log cannot be opened.
pub(crate) fn start_first(config: &Config, hash: TargetHash) -> Result<Arc<BackendPool>, BuildFailed> {
    start((FIRST_POOL, DEFAULT_POOL), config.clone(), hash)
}

fn start(named: (u32, &str), config: Config, hash: TargetHash) -> Result<Arc<BackendPool>, BuildFailed> {
    let members = members_of(&config, &[]);
    warn_of_strange_addresses(&config, &members);
    BackendPool::new(named, config, hash, &members)
}

/// The pools beside the first one.
///
/// # Errors
/// As [`start_first`].
pub(crate) fn start_others(config: &Config, hash: TargetHash) -> Result<Vec<Arc<BackendPool>>, BuildFailed> {
    let of_pool = |(number, pool): (u32, &PoolConfig)| {
        start((number, &pool.name), config.of_pool(pool), hash.of_whole())
    };
    (1..).zip(&config.pools).map(of_pool).collect()
}

/// A change of one pool, with all done that can fail.
struct PoolChange<'a> {
    pool: &'a BackendPool,
    old: Arc<Config>,
    new: Config,
    members: Vec<MemberSpec>,
    built: Vec<BuiltAnew>,
    /// Nothing else changes the pool's back-ends meanwhile.
    one_at_a_time: MutexGuard<'a, ()>,
}

impl<'a> PoolChange<'a> {
    fn prepare(pool: &'a BackendPool, new: Config) -> Result<Self, PoolError> {
        let old = pool.config.load_full();
        let mut members = members_of(&new, &pool.backends.load());
        let one_at_a_time = pool.membership.lock().unwrap_or_else(PoisonError::into_inner);
        keep_found(&mut members, &pool.backends.load());
        warn_of_strange_addresses(&new, &members);
        if pool.dispatch.members_with(new.backends.iter().map(|b| &b.name)) > MOST_MEMBERS {
            return Err(PoolError::TooMany);
        }
        let built = pool.dispatch.build_anew(&old, &new)?;
        Ok(Self { pool, old, new, members, built, one_at_a_time })
    }

    fn apply(self) {
        let Self { pool, old, new, members, built, one_at_a_time } = self;
        pool.dispatch.apply(built, &old, &new);
        pool.members().follow(&mut Reload::new(&old, members));
        pool.config.store(Arc::new(new));
        drop(one_at_a_time);
        pool.look_after_ejected(Instant::now());
    }
}

/// All that a reload changes of pools.
pub(crate) struct PoolsReload<'a> {
    changes: Vec<PoolChange<'a>>,
    /// Those that are there now, the first one left out.
    others: Vec<Arc<BackendPool>>,
    leaving: Vec<Arc<BackendPool>>,
    /// The configuration of the whole front-end.
    whole: Config,
}

impl<'a> PoolsReload<'a> {
    /// Prepares everything that can fail. `pools` are those that are there.
    ///
    /// # Errors
    /// When a policy cannot be built, a decision log cannot be opened, or back-ends are too many; nothing has changed then.
    pub(crate) fn prepare(
        shared: &'a FrontEndShared,
        pools: &'a [Arc<BackendPool>],
        new: Config,
    ) -> Result<Self, PoolError> {
        let mut changes = vec![PoolChange::prepare(&shared.first, new.clone())?];
        let mut others = Vec::new();
        let mut next = pools.iter().map(|pool| pool.number).max().unwrap_or(0) + 1;
        let there = |name: &str| pools.iter().find(|pool| pool.name() == name && !pool.is_leaving());
        for wanted in &new.pools {
            match there(&wanted.name) {
                Some(pool) => {
                    changes.push(PoolChange::prepare(pool, new.of_pool(wanted))?);
                    others.push(Arc::clone(pool));
                }
                None => {
                    others.push(start(
                        (next, &wanted.name),
                        new.of_pool(wanted),
                        shared.first.hash.of_whole(),
                    )?);
                    next += 1;
                }
            }
        }
        let stays = |pool: &&Arc<BackendPool>| others.iter().any(|other| other.number == pool.number);
        let leaving = pools[1..].iter().filter(|pool| !stays(pool)).cloned().collect();
        Ok(Self { changes, others, leaving, whole: new })
    }

    /// The configuration that comes into force.
    pub(crate) fn config(&self) -> &Config {
        &self.whole
    }

    /// Carries it out.
    pub(crate) fn apply(self, shared: &FrontEndShared) {
        self.changes.into_iter().for_each(PoolChange::apply);
        for pool in &self.leaving {
            pool.leave();
            tracing::info!(pool = pool.name(), "a pool leaves");
        }
        shared.others.store(Arc::new(self.others.into_iter().chain(self.leaving).collect()));
        let earlier = shared.routing.load_full();
        let routing = Routing::of(&self.whole, &shared.pools(), earlier.as_deref());
        shared.routing.store(routing.map(Arc::new));
    }
}

/// The back-ends of a pool that leaves take no more requests; those that they have are finished.
fn retire(pool: &BackendPool) {
    let old = pool.config.load_full();
    let one_at_a_time = pool.membership.lock().unwrap_or_else(PoisonError::into_inner);
    let names = pool.backends.load().iter().map(|b| Arc::clone(&b.name)).collect();
    pool.members().follow(&mut AllLeave(names));
    pool.config.store(Arc::new(Config { backends: Vec::new(), ..Config::clone(&old) }));
    drop(one_at_a_time);
    pool.dispatch.close_log();
}

struct AllLeave(Vec<BackendName>);

impl MembershipSource for AllLeave {
    fn changes(&mut self) -> Vec<MembershipChange> {
        self.0.drain(..).map(MembershipChange::Leave).collect()
    }
}

/// Forgets the pools that have left and have no requests any more. Called from time to time.
pub(crate) fn forget_left(shared: &FrontEndShared) {
    let has_backends = |pool: &BackendPool| pool.backends.load().iter().any(|b| !b.is_retired());
    let is_over =
        |pool: &Arc<BackendPool>| pool.is_leaving() && !has_backends(pool) && pool.dispatch.load() == 0;
    if shared.others.load().iter().any(is_over) {
        shared.others.rcu(|pools| pools.iter().filter(|pool| !is_over(pool)).cloned().collect::<Vec<_>>());
    }
    shared
        .others
        .load()
        .iter()
        // Requests that were routed to it before it left still come to it.
        .filter(|pool| pool.is_leaving() && has_backends(pool) && !pool.is_led_to())
        .for_each(|pool| retire(pool));
}
