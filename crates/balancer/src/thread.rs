//! The thread of a worker, and what it is told.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_config::LoadSource;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle as TaskHandle, LocalSet};
use tokio::time::Instant;

use crate::connection::ConnectionService;
use crate::dispatch::AsksBackends;
use crate::load_information::LoadPoller;
use crate::mechanism::carry::Mechanism;
use crate::mechanism::registry::{MechanismSystems, Mechanisms};
use crate::net::listener::Listener;
use crate::shared::FrontEndShared;
use crate::worker::Worker;

/// A connection that stays idle this long while the front-end stops is closed; before, its next request would still be
/// answered.
const IDLE_GRACE: Duration = Duration::from_secs(2);

/// How long requests that are under way when `timeouts.drain` has passed are given to end with an answer that says so.
const CUT_GRACE: Duration = Duration::from_millis(500);

enum WorkerCommand {
    Listen(SocketAddr, TcpListener),
    Unlisten(SocketAddr),
    Stop(Duration),
}

/// A running worker.
pub(crate) struct WorkerThread {
    commands: mpsc::UnboundedSender<WorkerCommand>,
    thread: JoinHandle<()>,
}

impl WorkerThread {
    /// Starts worker `index`.
    ///
    /// # Errors
    /// When the system has no thread or no event queue to give.
    pub(crate) fn start(
        shared: Arc<FrontEndShared>,
        systems: Arc<MechanismSystems>,
        index: usize,
    ) -> io::Result<Self> {
        let (commands, inbox) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
            let service = ConnectionService::<Mechanisms>::new(shared, index, &systems);
            LocalSet::new().block_on(&runtime, work(service, inbox));
        })?;
        Ok(Self { commands, thread })
    }

    /// Accepts connections from this socket, which is known by its address.
    pub(crate) fn listen(&self, address: SocketAddr, socket: TcpListener) {
        self.tell(WorkerCommand::Listen(address, socket));
    }

    /// Accepts no more connections there; those that are open end with their next response.
    pub(crate) fn unlisten(&self, address: SocketAddr) {
        self.tell(WorkerCommand::Unlisten(address));
    }

    /// Accepts nothing more, finishes what is under way, and ends after `drain` at the latest.
    pub(crate) fn stop(&self, drain: Duration) {
        self.tell(WorkerCommand::Stop(drain));
    }

    /// Waits for the end of a worker that was stopped.
    pub(crate) fn join(self) {
        drop(self.commands);
        if self.thread.join().is_err() {
            tracing::error!("a worker ended by a panic");
        }
    }

    fn tell(&self, command: WorkerCommand) {
        // A worker that is gone has panicked; joining it tells.
        drop(self.commands.send(command));
    }
}

struct Listening {
    closing: Arc<AtomicBool>,
    stop: Rc<Notify>,
}

impl Listening {
    fn end(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.stop.notify_one();
    }
}

fn listener(mechanism: &Mechanisms, socket: TcpListener) -> io::Result<Listener> {
    if !mechanism.moves_connections() {
        return Listener::new(socket);
    }
    plimsoll_datapath::tcp::acknowledge_late(socket.as_fd())?;
    Listener::with_rush(socket)
}

async fn work(service: Rc<ConnectionService<Mechanisms>>, mut inbox: mpsc::UnboundedReceiver<WorkerCommand>) {
    let (worker, mechanism) = (&service.worker, &service.mechanism);
    let housekeeping = {
        let (worker, mechanism) = (Rc::clone(worker), Rc::clone(mechanism));
        let also = {
            let worker = Rc::clone(&worker);
            move || mechanism.housekeeping(&worker)
        };
        tokio::task::spawn_local(worker.housekeeping(also))
    };
    let polling = start_polling(worker);
    let mut listening: BTreeMap<SocketAddr, Listening> = BTreeMap::new();
    let mut drain = Duration::ZERO;
    while let Some(command) = inbox.recv().await {
        match command {
            WorkerCommand::Listen(address, socket) => match listener(mechanism, socket) {
                Ok(socket) => {
                    let (closing, stop) = (Arc::new(AtomicBool::new(false)), Rc::new(Notify::new()));
                    let accept =
                        Rc::clone(&service).accept((address, socket), Arc::clone(&closing), Rc::clone(&stop));
                    tokio::task::spawn_local(accept);
                    listening.insert(address, Listening { closing, stop });
                }
                Err(error) => tracing::error!(%address, %error, "cannot listen"),
            },
            WorkerCommand::Unlisten(address) => {
                if let Some(listening) = listening.remove(&address) {
                    listening.end();
                }
            }
            WorkerCommand::Stop(wait) => {
                drain = wait;
                break;
            }
        }
    }
    listening.values().for_each(Listening::end);
    worker.stopping.store(true, Ordering::Relaxed);
    let end = Instant::now() + drain;
    let idle_end = Instant::now() + drain.min(IDLE_GRACE);
    // Lets the tasks that accept see the end of it before connections are counted.
    tokio::task::yield_now().await;
    loop {
        let now = Instant::now();
        if (worker.open() == 0 && !mechanism.is_busy()) || now >= end {
            break;
        }
        if now >= idle_end {
            worker.deadlines.stop_idle();
        }
        mechanism.close_idle();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cut(worker).await;
    worker.flush();
    housekeeping.abort();
    if let Some(polling) = polling {
        polling.abort();
    }
}

/// Ends the requests that are under way, each with a record, and with an answer where none had begun.
async fn cut(worker: &Worker) {
    let end = Instant::now() + CUT_GRACE;
    loop {
        // Also those whose head has come since.
        worker.deadlines.stop_serving();
        if !worker.deadlines.is_serving() || Instant::now() >= end {
            break;
        }
        // Connections by HTTP/2 get the time to send what their streams have written.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Has the worker ask agents for loads, where that is configured.
fn start_polling(worker: &Rc<Worker>) -> Option<TaskHandle<()>> {
    if worker.shared.config.load().load_information.from != LoadSource::Poll {
        return None;
    }
    let poller = LoadPoller::new(&worker.shared)?;
    worker.ask_by(Arc::clone(&poller) as Arc<dyn AsksBackends>);
    Some(tokio::task::spawn_local(poller.run()))
}
