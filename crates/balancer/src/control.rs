//! The thread that watches back-ends, ticks the policy, and serves the admin API.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_config::LoadSource;
use plimsoll_directory::{DirectoryError, ServiceDirectory};
use plimsoll_policy::Health;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};

use crate::backend::Backend;
use crate::backend_pool::BackendPool;
use crate::directory_status::DirectoryStatus;
use crate::dispatch::Dispatch;
use crate::health;
use crate::load_information;
use crate::mechanism::carry::Mechanism;
use crate::mechanism::registry::{MechanismSystems, Mechanisms};
use crate::membership::discovered::{self, follow_directory};
use crate::membership::names::follow_names;
use crate::membership::resolve::follow_name;
use crate::pools;
use crate::refusals::RefusalTeller;
use crate::shared::FrontEndShared;

/// How often the decision log is handed over and back-ends that have left are looked at.
const HOUSEKEEPING: Duration = Duration::from_millis(500);

/// How often mechanisms see to what an earlier process left.
const SWEEP: Duration = Duration::from_millis(100);

/// Why the control thread does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// The system has no thread or event queue to give.
    #[error(transparent)]
    Thread(#[from] io::Error),
    /// The directory of services cannot be listened to.
    #[error(transparent)]
    Discovery(#[from] DirectoryError),
}

/// A running control thread.
pub(crate) struct Control {
    /// Where the admin API listens.
    pub(crate) admin: Option<SocketAddr>,
    changed: Arc<Notify>,
    stop: watch::Sender<bool>,
    thread: std::thread::JoinHandle<()>,
}

impl Control {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system provides no thread or event queue, or the directory of services cannot be listened to.
    pub(crate) fn start(
        shared: Arc<FrontEndShared>,
        systems: Arc<MechanismSystems>,
        admin: Option<TcpListener>,
    ) -> Result<Self, ControlError> {
        let address = admin.as_ref().map(TcpListener::local_addr).transpose()?;
        let changed = Arc::new(Notify::new());
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let directory = {
            let _entered = runtime.enter();
            let start = |discovery| discovered::start(discovery, shared.hash.partitioning());
            shared.config.load().discovery.as_ref().map(start).transpose()?
        };
        let notified = Arc::clone(&changed);
        let thread = std::thread::Builder::new().name("control".into()).spawn(move || {
            runtime.block_on(work((shared, systems), admin, directory, notified, stopped));
            // A name that is looked up is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { admin: address, changed, stop, thread })
    }

    /// Watches the current back-ends.
    pub(crate) fn rewatch(&self) {
        self.changed.notify_one();
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(self) {
        // A thread that is gone has panicked, which joining reports.
        let _ = self.stop.send(true);
        if self.thread.join().is_err() {
            tracing::error!("the control thread ended by a panic");
        }
    }
}

async fn work(
    (shared, systems): (Arc<FrontEndShared>, Arc<MechanismSystems>),
    admin: Option<TcpListener>,
    directory: Option<ServiceDirectory>,
    changed: Arc<Notify>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut watching = Watching::default();
    let mut refusals = RefusalTeller::new();
    watching.update(&shared, &changed);
    let exchanging = shared
        .peers
        .clone()
        .map(|peers| tokio::spawn(crate::peers::run(Arc::clone(shared.dispatch.first()), peers)));
    let serving = admin
        .map(|socket| tokio::spawn(crate::admin::serve(Arc::clone(&shared), Arc::clone(&systems), socket)));
    let measuring = tokio::spawn(crate::host_metrics::run(Arc::clone(&shared)));
    let learning = learn(&shared, directory, &changed);
    let hearing = match shared.load_information.config.from {
        LoadSource::Broadcast => Some(tokio::spawn(load_information::listen(Arc::clone(&shared)))),
        LoadSource::Header => Some(tokio::spawn(load_information::watch(Arc::clone(&shared)))),
        LoadSource::Own | LoadSource::Poll => None,
    };
    let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            () = changed.notified() => {
                watching.update(&shared, &changed);
                shared.pools().iter().for_each(|pool| pool.look_after_weights(Instant::now()));
                // Other intervals count from now on.
                shared.pools().iter().for_each(|pool| pool.suspected.notify_waiters());
            }
            _ = housekeeping.tick() => {
                for pool in shared.pools() {
                    pool.dispatch.flush_log();
                    pool.look_after_ejected(Instant::now());
                    pool.note_requests(Instant::now());
                    pool.look_after_weights(Instant::now());
                    pool.look_for_slow(Instant::now());
                    reconcile(&pool);
                }
                pools::forget_left(&shared);
                refusals.tell(&shared.counts, &shared.refusal_examples, false);
            }
            _ = sweep.tick() => Mechanisms::sweep(&systems, &shared.backends.load()),
        }
    }
    refusals.tell(&shared.counts, &shared.refusal_examples, true);
    watching.stop();
    measuring.abort();
    for task in serving.into_iter().chain(exchanging).chain(learning).chain(hearing) {
        task.abort();
    }
}

/// Has what others tell of back-ends carried out.
fn learn(
    shared: &Arc<FrontEndShared>,
    directory: Option<ServiceDirectory>,
    changed: &Arc<Notify>,
) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    if let Some(directory) = directory {
        let (view, counts) = (directory.subscribe(), Arc::clone(directory.counts()));
        // There is one directory for each start.
        let _ = shared.directory.set(DirectoryStatus { view, counts });
        let following = follow_directory(Arc::clone(shared), directory, Arc::clone(changed));
        tasks.push(tokio::spawn(following));
    }
    tasks
}

/// The tasks that look after pools: tick their policies, follow names, and check back-ends or find their addresses.
#[derive(Default)]
struct Watching {
    /// By the number of a pool.
    pools: BTreeMap<u32, [AbortHandle; 2]>,
    /// By the number of a pool and the index of a back-end.
    tasks: BTreeMap<(u32, usize), (Arc<Backend>, AbortHandle)>,
}

impl Watching {
    /// Ends the tasks of pools and back-ends that left or changed, and starts missing ones.
    fn update(&mut self, shared: &Arc<FrontEndShared>, changed: &Arc<Notify>) {
        let pools = shared.pools();
        self.pools.retain(|number, tasks| {
            let stays = pools.iter().any(|pool| pool.number == *number && !pool.is_leaving());
            if !stays {
                tasks.iter().for_each(AbortHandle::abort);
            }
            stays
        });
        self.tasks.retain(|&(number, index), (backend, task)| {
            let is_it = |now: &Arc<Backend>| Arc::ptr_eq(now, backend) && !backend.is_retired();
            let pool = pools.iter().find(|pool| pool.number == number);
            let same = pool.is_some_and(|pool| pool.backends.load().get(index).is_some_and(is_it));
            if !same {
                task.abort();
            }
            same
        });
        for pool in pools.iter().filter(|pool| !pool.is_leaving()) {
            self.pools.entry(pool.number).or_insert_with(|| {
                let names = follow_names(Arc::clone(pool), Arc::clone(changed));
                [tokio::spawn(tick(Arc::clone(pool))).abort_handle(), tokio::spawn(names).abort_handle()]
            });
            let backends = pool.backends.load_full();
            for (index, backend) in backends.iter().enumerate().filter(|(_, b)| !b.is_retired()) {
                self.tasks.entry((pool.number, index)).or_insert_with(|| {
                    let (pool, watched) = (Arc::clone(pool), Arc::clone(backend));
                    let task = match backend.address {
                        Ok(_) => tokio::spawn(health::watch(pool, watched)),
                        Err(_) => tokio::spawn(follow_name(pool, watched, Arc::clone(changed))),
                    };
                    (Arc::clone(backend), task.abort_handle())
                });
            }
        }
    }

    /// Ends those of pools.
    fn stop(&self) {
        self.pools.values().flatten().for_each(AbortHandle::abort);
    }
}

/// Calls the policy's tick at the current policy's interval.
async fn tick(pool: Arc<BackendPool>) {
    loop {
        match pool.dispatch.tick_interval() {
            Some(interval) => {
                tokio::time::sleep(Duration::from_nanos(interval.as_nanos().max(1_000_000))).await;
                pool.dispatch.tick();
            }
            None => tokio::time::sleep(HOUSEKEEPING).await,
        }
    }
}

/// Corrects dispatch's view of back-ends if a change of health and a reload crossed. Also marks idle
/// back-ends that are no longer configured as down, so that policies forget them.
fn reconcile(pool: &BackendPool) {
    let backends = pool.backends.load_full();
    for (partition, part) in (0..).zip(pool.dispatch.parts()) {
        reconcile_part(pool, &backends, (partition, part));
    }
}

fn reconcile_part(pool: &BackendPool, backends: &[Arc<Backend>], (partition, part): (u16, &Arc<Dispatch>)) {
    // To a partition, those that do not hold it are down.
    let holds = |b: &&Arc<Backend>| pool.dispatch.held(b.id).has(partition);
    let holding: Vec<&Arc<Backend>> = backends.iter().filter(holds).collect();
    let wrong: Vec<_> = part.inspect(|i| {
        let known = holding.into_iter().filter(|b| b.id.index() < i.view.len());
        let differs = known.filter_map(|b| {
            let is = i.view.health(b.id);
            let should = match (b.is_retired(), is) {
                (false, _) => b.health(),
                (true, Health::Up) => Health::Draining,
                (true, Health::Draining) if i.view.own_load(b.id) == 0 => Health::Down,
                (true, _) => is,
            };
            (is != should).then_some((b, should))
        });
        differs.collect()
    });
    for (backend, should) in wrong {
        let still = pool.backends.load().get(backend.id.index()).is_some_and(|now| Arc::ptr_eq(now, backend));
        if still && backend.is_retired() {
            part.set_health(backend.id, should);
        } else if still {
            pool.tell_health(backend);
        }
    }
}
