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
use crate::directory_status::DirectoryStatus;
use crate::dispatch::Dispatch;
use crate::health;
use crate::load_information;
use crate::mechanism::carry::Mechanism;
use crate::mechanism::registry::{MechanismSystems, Mechanisms};
use crate::membership::discovered::{self, follow_directory};
use crate::membership::names::follow_names;
use crate::membership::resolve::follow_name;
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
    let ticking = tokio::spawn(tick(Arc::clone(&shared)));
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
                // Other intervals count from now on.
                shared.suspected.notify_waiters();
            }
            _ = housekeeping.tick() => {
                shared.dispatch.flush_log();
                shared.look_after_ejected(Instant::now());
                refusals.tell(&shared.counts, &shared.refusal_examples, false);
                reconcile(&shared);
            }
            _ = sweep.tick() => Mechanisms::sweep(&systems, &shared.backends.load()),
        }
    }
    refusals.tell(&shared.counts, &shared.refusal_examples, true);
    ticking.abort();
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
    let mut tasks = vec![tokio::spawn(follow_names(Arc::clone(shared), Arc::clone(changed)))];
    if let Some(directory) = directory {
        let (view, counts) = (directory.subscribe(), Arc::clone(directory.counts()));
        // There is one directory for each start.
        let _ = shared.directory.set(DirectoryStatus { view, counts });
        let following = follow_directory(Arc::clone(shared), directory, Arc::clone(changed));
        tasks.push(tokio::spawn(following));
    }
    tasks
}

/// The tasks that check back-ends, or find their addresses.
#[derive(Default)]
struct Watching {
    tasks: BTreeMap<usize, (Arc<Backend>, AbortHandle)>,
}

impl Watching {
    /// Ends the checks of back-ends that left or changed, and starts missing ones.
    fn update(&mut self, shared: &Arc<FrontEndShared>, changed: &Arc<Notify>) {
        let backends = shared.backends.load_full();
        self.tasks.retain(|&index, (backend, task)| {
            let same =
                backends.get(index).is_some_and(|now| Arc::ptr_eq(now, backend)) && !backend.is_retired();
            if !same {
                task.abort();
            }
            same
        });
        for (index, backend) in backends.iter().enumerate().filter(|(_, b)| !b.is_retired()) {
            self.tasks.entry(index).or_insert_with(|| {
                let (shared, watched) = (Arc::clone(shared), Arc::clone(backend));
                let task = match backend.address {
                    Ok(_) => tokio::spawn(health::watch(shared, watched)),
                    Err(_) => tokio::spawn(follow_name(shared, watched, Arc::clone(changed))),
                };
                (Arc::clone(backend), task.abort_handle())
            });
        }
    }
}

/// Calls the policy's tick at the current policy's interval.
async fn tick(shared: Arc<FrontEndShared>) {
    loop {
        match shared.dispatch.tick_interval() {
            Some(interval) => {
                tokio::time::sleep(Duration::from_nanos(interval.as_nanos().max(1_000_000))).await;
                shared.dispatch.tick();
            }
            None => tokio::time::sleep(HOUSEKEEPING).await,
        }
    }
}

/// Corrects dispatch's view of back-ends if a change of health and a reload crossed. Also marks idle
/// back-ends that are no longer configured as down, so that policies forget them.
fn reconcile(shared: &FrontEndShared) {
    let backends = shared.backends.load_full();
    for (partition, part) in (0..).zip(shared.dispatch.parts()) {
        reconcile_part(shared, &backends, (partition, part));
    }
}

fn reconcile_part(
    shared: &FrontEndShared,
    backends: &[Arc<Backend>],
    (partition, part): (u16, &Arc<Dispatch>),
) {
    // To a partition, those that do not hold it are down.
    let holds = |b: &&Arc<Backend>| shared.dispatch.held(b.id).has(partition);
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
        let still =
            shared.backends.load().get(backend.id.index()).is_some_and(|now| Arc::ptr_eq(now, backend));
        if still && backend.is_retired() {
            part.set_health(backend.id, should);
        } else if still {
            shared.tell_health(backend);
        }
    }
}
