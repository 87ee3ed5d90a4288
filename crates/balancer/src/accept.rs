//! A worker's connections: accepted, served, counted.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plimsoll_policy::TargetId;

use crate::http::request::peer_text;
use crate::net::places::Place;
use crate::net::stream::{ClientStream, Listener};
use crate::proxy::client::{self, Start};
use crate::worker::{Accepted, Worker};

/// How long the system is left alone when it has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long the first data of a completed connection may be under way when the listener closes.
const FIRST_DATA: Duration = Duration::from_millis(200);
/// How long the log is spared a complaint that it has already.
const COMPLAIN_AGAIN: Duration = Duration::from_secs(10);

impl Worker {
    /// Accepts connections until `stop` is told. Connections that the system has completed by then are served, too.
    pub(crate) async fn accept(
        self: Rc<Self>,
        listener: Listener,
        closing: Arc<AtomicBool>,
        stop: Rc<tokio::sync::Notify>,
    ) {
        let local = listener.only_address();
        let mut complained = None;
        loop {
            let next = async {
                let place = self.shared.places.take().await;
                (listener.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                biased;
                () = stop.notified() => break,
                next = next => next,
            };
            match (accepted, place) {
                (Ok((stream, peer)), Some(place)) => self.spawn(stream, (peer, local), place, &closing),
                (Err(error), _) => {
                    // Mostly that the process has too many files open: waiting lets others finish.
                    if complained.is_none_or(|at: Instant| at.elapsed() > COMPLAIN_AGAIN) {
                        complained = Some(Instant::now());
                        tracing::warn!(%error, "cannot accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                (_, None) => return,
            }
        }
        let last = || {
            while let Some((stream, peer)) = listener.accept_now()
                && let Some(place) = self.shared.places.try_take()
            {
                self.spawn(stream, (peer, local), place, &closing);
            }
        };
        if listener.calm_down() {
            // Completed connections that wait for their first data would be reset with the listener.
            self.open.set(self.open.get() + 1);
            tokio::time::sleep(FIRST_DATA).await;
            last();
            self.open.set(self.open.get() - 1);
        }
        last();
    }

    fn spawn(
        self: &Rc<Self>,
        stream: ClientStream,
        (peer, local): (SocketAddr, Option<SocketAddr>),
        place: Place,
        closing: &Arc<AtomicBool>,
    ) {
        let worker = Rc::clone(self);
        let accepted = Rc::new(self.accepted(peer, local, closing));
        self.count_accepted();
        tokio::task::spawn_local(async move {
            let _place = place;
            worker.serve(stream, accepted, Start::default()).await;
        });
    }

    /// Serves a connection that comes back from being handed off, or could not be.
    pub(crate) fn resume(self: &Rc<Self>, stream: ClientStream, accepted: Rc<Accepted>, start: Start) {
        let worker = Rc::clone(self);
        // It had a place before: where none is left, it is served all the same.
        let place = self.shared.places.try_take();
        tokio::task::spawn_local(async move {
            let _place = place;
            worker.serve(stream, accepted, start).await;
        });
    }

    /// A connection of a client is there.
    pub(crate) fn count_accepted(&self) {
        self.shared.counts[self.index].accepted.add(1);
    }

    /// A connection of a client has ended.
    pub(crate) fn count_closed(&self) {
        self.shared.counts[self.index].closed.add(1);
    }

    pub(crate) fn accepted(
        &self,
        peer: SocketAddr,
        local: Option<SocketAddr>,
        closing: &Arc<AtomicBool>,
    ) -> Accepted {
        let text = peer_text(peer.ip());
        Accepted {
            peer,
            local,
            trusted: self.shared.config.load().forwarded.trusted.iter().any(|net| net.contains(peer.ip())),
            client: TargetId::from_key(text.as_bytes()).0,
            peer_text: text.into_boxed_str(),
            closing: Arc::clone(closing),
        }
    }

    async fn serve(self: Rc<Self>, mut stream: ClientStream, accepted: Rc<Accepted>, start: Start) {
        struct Open<'a>(&'a Worker, bool);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                self.0.open.set(self.0.open.get() - 1);
                if self.1 {
                    self.0.count_closed();
                }
            }
        }
        self.open.set(self.open.get() + 1);
        let mut open = Open(&self, true);
        let handing = client::serve(&self, &mut stream, &accepted, start).await;
        if let (Some(handing), Some(handoffs)) = (handing, &self.handoffs) {
            // Its end is counted when it comes.
            open.1 = false;
            handoffs.hand_off(&self, stream, &accepted, *handing);
        }
    }
}
