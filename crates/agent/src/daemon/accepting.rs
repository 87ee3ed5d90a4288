//! Links of others, on their way to the threads that serve them.

use std::net::{IpAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_local;
use tokio::time::sleep;

/// Pause after a failure to accept, such as for lack of file descriptors.
pub(super) const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// An accepted link on its way to its thread.
pub(super) struct AcceptedLink {
    stream: StdStream,
    source: IpAddr,
    permit: OwnedSemaphorePermit,
}

/// Who takes links.
pub(super) trait LinkHost {
    /// Why a link from this address is refused, if it is.
    fn stranger(&self, source: IpAddr) -> Option<&'static str>;

    /// A link was refused.
    fn refused_link(&self, source: IpAddr, why: &str);
}

/// Accepts links, `most` at once, and gives them to the threads in turn.
pub(super) async fn accept_links(
    host: &impl LinkHost,
    listener: StdListener,
    most: usize,
    threads: &[UnboundedSender<AcceptedLink>],
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "links cannot be accepted"),
    };
    let permits = Arc::new(Semaphore::new(most));
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
        if let Some(why) = host.stranger(source) {
            host.refused_link(source, why);
            continue;
        }
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            host.refused_link(source, &format!("there are {most}"));
            continue;
        };
        // There is at least one thread, and threads end after this one.
        if let Some(sender) = threads.get(turn % threads.len().max(1)) {
            let _ = sender.send(AcceptedLink { stream, source, permit });
        }
        turn = turn.wrapping_add(1);
    }
}

/// Serves the links that come to a thread, until the sender is dropped.
pub(super) async fn serve_links<F: Future<Output = ()> + 'static>(
    mut links: UnboundedReceiver<AcceptedLink>,
    serve: impl Fn(TcpStream, IpAddr) -> F,
) {
    while let Some(AcceptedLink { stream, source, permit }) = links.recv().await {
        match TcpStream::from_std(stream) {
            Ok(stream) => {
                let served = serve(stream, source);
                spawn_local(async move {
                    let _permit = permit;
                    served.await;
                });
            }
            Err(error) => tracing::warn!(%error, "a link could not be watched"),
        }
    }
}
