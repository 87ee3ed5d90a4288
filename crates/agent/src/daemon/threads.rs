//! The threads of an agent.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc as std_mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_datapath::HeldRing;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::interval;

use super::accepting::{AcceptedLink, LinkHost, accept_links, serve_links};
use super::config::AgentError;
use super::reports::take_reports;
use super::shared::AgentShared;
use super::spawn::{spawn_with_runtime, system, told_to_stop};
use super::talk;
use plimsoll_origin::{Origin, OriginService};

/// Most links at once.
const MOST_LINKS: usize = 1024;

/// The origin's own listener.
#[derive(Debug)]
pub(super) struct OriginThread {
    pub(super) runtime: Runtime,
    pub(super) stop: oneshot::Sender<()>,
    pub(super) done: std_mpsc::Receiver<()>,
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
        origin.serve(told_to_stop(stopped)).await;
        let _ = ended.send(());
    });
    Ok((address, OriginThread { runtime, stop, done }))
}

pub(super) type ThreadEnds = (UnboundedSender<AcceptedLink>, JoinHandle<()>);

/// A thread that serves links.
pub(super) fn start_thread(number: usize, shared: &Arc<AgentShared>) -> Result<ThreadEnds, AgentError> {
    let (sender, links) = unbounded_channel();
    let shared = Arc::clone(shared);
    let serve =
        move || serve_links(links, move |stream, source| talk::serve(Arc::clone(&shared), stream, source));
    Ok((sender, spawn_with_runtime(format!("agent-{number}"), serve)?))
}

/// The thread that accepts links and sweeps expired state.
pub(super) fn start_control(
    shared: Arc<AgentShared>,
    listener: std::net::TcpListener,
    senders: Vec<UnboundedSender<AcceptedLink>>,
    stopped: oneshot::Receiver<()>,
) -> Result<JoinHandle<()>, AgentError> {
    let control = move || async move {
        let all =
            async { tokio::join!(accept_links(&*shared, listener, MOST_LINKS, &senders), sweep(&shared)) };
        tokio::select! {
            _ = all => {}
            () = told_to_stop(stopped) => {}
        }
    };
    spawn_with_runtime("agent-control".to_owned(), control)
}

impl LinkHost for AgentShared {
    fn stranger(&self, source: IpAddr) -> Option<&'static str> {
        let known = self.config.front_ends.iter().any(|known| known.address == source);
        (!known).then_some("its address is no front-end's")
    }

    fn refused_link(&self, source: IpAddr, why: &str) {
        Self::refused_link(self, source, why);
    }
}

/// The thread that takes held packets from the guard.
pub(super) fn start_held(shared: Arc<AgentShared>, ring: HeldRing) -> Result<JoinHandle<()>, AgentError> {
    let ended = Arc::clone(&shared);
    take_reports("agent-held", ring, move || ended.has_ended(), move |packet| shared.held(packet))
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
