//! The threads of a node.

use std::net::{IpAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use plimsoll_datapath::{HeldRing, RouterEvent};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::{spawn_local, yield_now};
use tokio::time::sleep;

use super::super::accepting::{AFTER_FAILURE, AcceptedLink, LinkHost, accept_links, serve_links};
use super::super::config::{AgentError, MOST_THREADS};
use super::super::spawn::{spawn_with_runtime, told_to_stop};
use super::doubts::Doubts;
use super::peer_link::PeerLink;
use super::shared::{CloneShared, NodePhase};
use super::{original, server_link, sharing};

pub(super) struct ServingThread {
    pub(super) links: UnboundedSender<AcceptedLink>,
    pub(super) thread: JoinHandle<()>,
}

/// A thread that accepts clients at these listeners, and has links; one of them also takes what the packet router reports, and does what is to
/// be done once for all. It ends when the sender of links is dropped.
pub(super) fn start_serving(
    number: usize,
    shared: &Arc<CloneShared>,
    listeners: Vec<StdListener>,
    events: Option<HeldRing<RouterEvent>>,
) -> Result<ServingThread, AgentError> {
    let (links, accepted) = unbounded_channel();
    let shared = Arc::clone(shared);
    let serve = move || serve(shared, listeners, events, accepted);
    Ok(ServingThread { links, thread: spawn_with_runtime(format!("clone-{number}"), serve)? })
}

async fn serve(
    shared: Arc<CloneShared>,
    listeners: Vec<StdListener>,
    events: Option<HeldRing<RouterEvent>>,
    accepted: UnboundedReceiver<AcceptedLink>,
) {
    let links: Vec<_> = (0..shared.config.peers.len()).map(|peer| Rc::new(PeerLink::new(peer))).collect();
    for link in &links {
        spawn_local(Rc::clone(link).keep(Arc::clone(&shared)));
    }
    let links = Rc::new(links);
    // One thread for all: each has links to all.
    if let Some(ring) = events {
        spawn_local(take_events(Arc::clone(&shared), ring));
        spawn_local(sharing::share(Arc::clone(&shared), Rc::clone(&links)));
        spawn_local(tell_doubtful(Arc::clone(&shared)));
    }
    for listener in listeners {
        spawn_local(accept_clients(Arc::clone(&shared), Rc::clone(&links), listener));
    }
    serve_links(accepted, |stream, source| server_link::serve(Arc::clone(&shared), stream, source)).await;
}

async fn tell_doubtful(shared: Arc<CloneShared>) {
    loop {
        while shared.doubts.tell_some(&shared.router) {
            yield_now().await;
        }
        sleep(Doubts::PERIOD).await;
    }
}

async fn accept_clients(shared: Arc<CloneShared>, links: Rc<Vec<Rc<PeerLink>>>, listener: StdListener) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "clients cannot be accepted"),
    };
    let mut phase = shared.phase.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = phase.wait_for(|phase| *phase != NodePhase::Running) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                spawn_local(original::serve(Arc::clone(&shared), Rc::clone(&links), stream));
            }
            Err(error) => {
                tracing::debug!(%error, "a client could not be accepted");
                sleep(AFTER_FAILURE).await;
            }
        }
    }
}

/// The thread that accepts links and gives them to the others in turn.
pub(super) fn start_links(
    shared: Arc<CloneShared>,
    listener: StdListener,
    threads: Vec<UnboundedSender<AcceptedLink>>,
    stopped: oneshot::Receiver<()>,
) -> Result<JoinHandle<()>, AgentError> {
    // Each thread of another node has one.
    let most = shared.config.peers.len() * MOST_THREADS;
    let accept = move || async move {
        tokio::select! {
            () = accept_links(&*shared, listener, most, &threads) => {}
            () = told_to_stop(stopped) => {}
        }
    };
    spawn_with_runtime("clone-links".to_owned(), accept)
}

impl LinkHost for CloneShared {
    fn stranger(&self, source: IpAddr) -> Option<&'static str> {
        let known = self.config.peers.iter().any(|peer| peer.address.ip() == source);
        (!known).then_some("its address is no node's")
    }

    fn refused_link(&self, source: IpAddr, why: &str) {
        Self::refused_link(self, source, why);
    }
}

/// Takes what the packet router reports. Not in a thread of its own: what waits for a report would be woken from there, which costs more
/// than the report.
#[allow(deprecated, reason = "unsound only for types whose descriptor changes; that of a ring never does")]
async fn take_events(shared: Arc<CloneShared>, ring: HeldRing<RouterEvent>) {
    let mut ring = match AsyncFd::with_interest(ring, Interest::READABLE) {
        Ok(ring) => ring,
        Err(error) => return tracing::error!(%error, "held packets cannot be read"),
    };
    let take = |event| match event {
        RouterEvent::Packet(packet) => shared.originals.held(&shared.router, packet),
        RouterEvent::Acknowledged(flow) | RouterEvent::Reset(flow) | RouterEvent::Forged(flow) => {
            shared.originals.told(&flow);
        }
    };
    loop {
        let mut ready = match ring.readable_mut().await {
            Ok(ready) => ready,
            Err(error) => return tracing::error!(%error, "held packets cannot be read"),
        };
        match ready.get_inner_mut().poll_held(take) {
            // Only what comes to an empty ring makes the descriptor readable again.
            Ok(0) => ready.clear_ready(),
            // Others have their turn, however many come.
            Ok(_) => yield_now().await,
            Err(error) => {
                tracing::error!(%error, "held packets could not be read");
                sleep(AFTER_FAILURE).await;
            }
        }
    }
}
