//! The threads of a node.

use std::net::{IpAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use super::super::config::AgentError;
use super::peer_link::PeerLink;
use super::shared::{CloneShared, NodePhase};
use super::{original, server_link};

/// Pause after a failure to accept, such as for lack of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// A link on its way to its thread.
pub(super) type AcceptedLink = (StdStream, IpAddr);

pub(super) struct ServingThread {
    pub(super) links: UnboundedSender<AcceptedLink>,
    pub(super) thread: JoinHandle<()>,
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> AgentError {
    move |error| AgentError::System { what, error }
}

/// A thread that accepts clients at these listeners, and has links. It ends when the sender of links is dropped.
pub(super) fn start_serving(
    number: usize,
    shared: &Arc<CloneShared>,
    listeners: Vec<StdListener>,
) -> Result<ServingThread, AgentError> {
    let (links, accepted) = unbounded_channel();
    let shared = Arc::clone(shared);
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(system("cannot start a thread"))?;
    let serve = move || {
        let local = LocalSet::new();
        local.block_on(&runtime, serve(shared, listeners, accepted));
        // Before the runtime, which its sockets and timers need.
        drop(local);
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name(format!("clone-{number}")).spawn(serve);
    Ok(ServingThread { links, thread: thread.map_err(system("cannot start a thread"))? })
}

async fn serve(
    shared: Arc<CloneShared>,
    listeners: Vec<StdListener>,
    mut accepted: UnboundedReceiver<AcceptedLink>,
) {
    let links: Vec<_> = (0..shared.config.peers.len()).map(|peer| Rc::new(PeerLink::new(peer))).collect();
    for link in &links {
        spawn_local(Rc::clone(link).keep(Arc::clone(&shared)));
    }
    let links = Rc::new(links);
    for listener in listeners {
        spawn_local(accept_clients(Arc::clone(&shared), Rc::clone(&links), listener));
    }
    while let Some((stream, source)) = accepted.recv().await {
        let shared = Arc::clone(&shared);
        spawn_local(async move {
            match TcpStream::from_std(stream) {
                Ok(stream) => server_link::serve(shared, stream, source).await,
                Err(error) => tracing::warn!(%error, "a link could not be watched"),
            }
        });
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
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(system("cannot start a thread"))?;
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                () = accept_links(&shared, listener, &threads) => {}
                // Fails when the node was dropped: it keeps running.
                () = async { if stopped.await.is_err() { std::future::pending().await } } => {}
            }
        });
    };
    let thread = std::thread::Builder::new().name("clone-links".to_owned()).spawn(run);
    thread.map_err(system("cannot start a thread"))
}

async fn accept_links(
    shared: &CloneShared,
    listener: StdListener,
    threads: &[UnboundedSender<AcceptedLink>],
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "links cannot be accepted"),
    };
    let mut turn: usize = 0;
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
        if !shared.config.peers.iter().any(|peer| peer.address.ip() == source) {
            shared.refused_link(source, "its address is no node's");
            continue;
        }
        // There is at least one thread, and threads end after this one.
        if let Some(sender) = threads.get(turn % threads.len().max(1)) {
            let _ = sender.send((stream, source));
        }
        turn = turn.wrapping_add(1);
    }
}
