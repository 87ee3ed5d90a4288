//! The threads of an agent.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc as std_mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_datapath::HeldRing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{interval, sleep};

use super::config::AgentError;
use super::shared::AgentShared;
use super::talk;
use plimsoll_origin::{Origin, OriginService};

/// Most links at once.
const MOST_LINKS: usize = 1024;
/// Pause after a failure to accept a link, such as for lack of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// The origin's own listener.
#[derive(Debug)]
pub(super) struct OriginThread {
    pub(super) runtime: Runtime,
    pub(super) stop: oneshot::Sender<()>,
    pub(super) done: std_mpsc::Receiver<()>,
}

/// An accepted link on its way to its thread.
pub(super) struct NewLink {
    stream: std::net::TcpStream,
    source: IpAddr,
    permit: OwnedSemaphorePermit,
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> AgentError {
    move |error| AgentError::System { what, error }
}

pub(super) fn serve_origin(
    listener: std::net::TcpListener,
    service: OriginService,
    threads: usize,
) -> Result<(SocketAddr, OriginThread), AgentError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("origin")
        .enable_all()
        .build()
        .map_err(system("cannot start the origin's threads"))?;
    let origin = runtime
        .block_on(async { Origin::listen(service, TcpListener::from_std(listener)?) })
        .map_err(system("cannot watch the origin's listener"))?;
    let address = origin.local_addr();
    let (stop, stopped) = oneshot::channel::<()>();
    let (ended, done) = std_mpsc::channel();
    runtime.spawn(async move {
        origin
            .serve(async {
                // Fails when the sender was dropped without sending: the agent was dropped and keeps running.
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
            .await;
        let _ = ended.send(());
    });
    Ok((address, OriginThread { runtime, stop, done }))
}

pub(super) type ThreadEnds = (mpsc::UnboundedSender<NewLink>, JoinHandle<()>);

/// A thread that serves links.
pub(super) fn start_thread(number: usize, shared: &Arc<AgentShared>) -> Result<ThreadEnds, AgentError> {
    let (sender, mut links) = mpsc::unbounded_channel::<NewLink>();
    let shared = Arc::clone(shared);
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(system("cannot start a thread"))?;
    let serve = move || {
        let local = LocalSet::new();
        local.block_on(&runtime, async {
            while let Some(NewLink { stream, source, permit }) = links.recv().await {
                let shared = Arc::clone(&shared);
                spawn_local(async move {
                    let _permit = permit;
                    match TcpStream::from_std(stream) {
                        Ok(stream) => talk::serve(shared, stream, source).await,
                        Err(error) => tracing::warn!(%error, "a link could not be watched"),
                    }
                });
            }
        });
        // Before the runtime, which its sockets and timers need.
        drop(local);
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name(format!("agent-{number}")).spawn(serve);
    Ok((sender, thread.map_err(system("cannot start a thread"))?))
}

/// The thread that accepts links and sweeps expired state.
pub(super) fn start_control(
    shared: Arc<AgentShared>,
    listener: std::net::TcpListener,
    senders: Vec<mpsc::UnboundedSender<NewLink>>,
    stopped: oneshot::Receiver<()>,
) -> Result<JoinHandle<()>, AgentError> {
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(system("cannot start a thread"))?;
    let run = move || {
        runtime.block_on(async {
            let all = async { tokio::join!(accept(&shared, listener, &senders), sweep(&shared)) };
            tokio::select! {
                _ = all => {}
                // Fails when the agent was dropped: it keeps running.
                () = async { if stopped.await.is_err() { std::future::pending().await } } => {}
            }
        });
    };
    let thread = std::thread::Builder::new().name("agent-control".to_owned()).spawn(run);
    thread.map_err(system("cannot start a thread"))
}

/// Accepts links and distributes them to the threads in turn.
async fn accept(
    shared: &AgentShared,
    listener: std::net::TcpListener,
    senders: &[mpsc::UnboundedSender<NewLink>],
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "links cannot be accepted"),
    };
    let permits = Arc::new(Semaphore::new(MOST_LINKS));
    let mut turn = 0;
    loop {
        let accepted = match listener.accept().await {
            Ok((stream, source)) => stream.into_std().map(|stream| (stream, source.ip().to_canonical())),
            Err(error) => Err(error),
        };
        let (stream, source) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a link could not be accepted");
                sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        if !shared.config.front_ends.iter().any(|known| known.address == source) {
            shared.refused_link(source, "its address is no front-end's");
            continue;
        }
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            shared.refused_link(source, &format!("there are {MOST_LINKS}"));
            continue;
        };
        // There is at least one thread, and threads end after this one.
        if let Some(sender) = senders.get(turn % senders.len().max(1)) {
            let _ = sender.send(NewLink { stream, source, permit });
        }
        turn = turn.wrapping_add(1);
    }
}

/// The thread that takes held packets from the guard.
pub(super) fn start_held(shared: Arc<AgentShared>, mut ring: HeldRing) -> Result<JoinHandle<()>, AgentError> {
    /// Interval of checks whether the agent has ended.
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let run = move || {
        while !shared.has_ended() {
            let mut fds = [PollFd::new(&ring, PollFlags::IN)];
            match poll(&mut fds, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return tracing::error!(%error, "held packets cannot be read"),
            }
            loop {
                match ring.poll_held(|packet| shared.held(packet)) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::error!(%error, "held packets could not be read");
                        std::thread::sleep(AFTER_FAILURE);
                        break;
                    }
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name("agent-held".to_owned()).spawn(run);
    thread.map_err(system("cannot start a thread"))
}

/// Sweeps expired state.
async fn sweep(shared: &AgentShared) {
    const STEP: Duration = Duration::from_millis(250);
    const STEPS_TO_LEASES: u32 = 20;
    let mut tick = interval(STEP);
    let mut step: u32 = 0;
    loop {
        tick.tick().await;
        shared.sweep_held();
        shared.sweep_closed();
        step = step.wrapping_add(1);
        if step.is_multiple_of(STEPS_TO_LEASES) {
            shared.sweep_leases();
        }
    }
}
