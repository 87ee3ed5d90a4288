//! A worker's connections: accepted, served, counted.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_config::IpNet;

use super::client;
use super::service::{ConnectionService, GivenStream};
use super::then::GoesOn;
use crate::accepted::{Accepted, ClientWay, Start, peer_text};
use crate::http2::{self, StreamTasks};
use crate::mechanism::carry::Mechanism;
use crate::net::halves::ClientIo;
use crate::net::listener::Listener;
use crate::net::places::TakenPlace;
use crate::net::proxy_header::{NoProxyHeader, read_proxy_header};
use crate::net::stream::ClientStream;
use crate::net::tls::{Secured, TlsHandshakes};
use crate::refusal_reason::RefusalReason;
use crate::shared::FrontEndShared;
use crate::worker::Worker;

/// Pause after the system had no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long the first data of a completed connection may be under way when the listener closes.
const FIRST_DATA: Duration = Duration::from_millis(200);
/// Interval between equal complaints in the log.
const COMPLAIN_AGAIN: Duration = Duration::from_secs(10);

impl<M: Mechanism> ConnectionService<M> {
    /// The service of worker `index`.
    pub(crate) fn new(shared: Arc<FrontEndShared>, index: usize, system: &Arc<M::System>) -> Rc<Self> {
        let worker = Worker::new(shared, index);
        let service =
            Rc::new(Self { mechanism: M::new(system, &worker), worker, streams: StreamTasks::new() });
        let weak = Rc::downgrade(&service);
        service.worker.resume_by(Box::new(move |stream, accepted, start| {
            if let Some(service) = weak.upgrade() {
                service.resume(stream, accepted, start);
            }
        }));
        service
    }

    /// Accepts connections until `stop` is notified. Also serves connections that the system has completed by
    /// then.
    pub(crate) async fn accept(
        self: Rc<Self>,
        (configured, listener): (SocketAddr, Listener),
        closing: Arc<AtomicBool>,
        stop: Rc<tokio::sync::Notify>,
    ) {
        let local = listener.only_address();
        // What was last configured there: connections may be taken after a reload has removed it.
        let ways = RefCell::new(self.ways(configured).unwrap_or_default());
        let mut complained = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.notified() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let place = tokio::select! {
                        biased;
                        place = self.place(peer) => place,
                        () = stop.notified() => {
                            stop.notify_one();
                            None
                        }
                    };
                    if let Some(place) = place {
                        if let Some(now) = self.ways(configured) {
                            ways.replace(now);
                        }
                        let way = ways.borrow().of(peer);
                        self.spawn(stream, (way, peer, local), place, &closing);
                    }
                }
                Err(error) => {
                    // Mostly too many open files: waiting lets others finish.
                    if complained.is_none_or(|at: Instant| at.elapsed() > COMPLAIN_AGAIN) {
                        complained = Some(Instant::now());
                        tracing::warn!(%error, "cannot accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let last = || {
            while let Some((stream, peer)) = listener.accept_now()
                && let Some(place) = self.worker.shared.places.try_take()
            {
                let way = ways.borrow().of(peer);
                self.spawn(stream, (way, peer, local), place, &closing);
            }
        };
        if listener.calm_down() {
            // Completed connections that wait for their first data would be reset with the listener.
            self.worker.open.set(self.worker.open.get() + 1);
            tokio::time::sleep(FIRST_DATA).await;
            last();
            self.worker.open.set(self.worker.open.get() - 1);
        }
        last();
    }

    /// A place for a connection that was accepted. Where none is free, those make room that have waited longest for a
    /// request: here, or with another worker.
    async fn place(&self, peer: SocketAddr) -> Option<TakenPlace> {
        let shared = &self.worker.shared;
        if let Some(place) = shared.places.try_take() {
            return Some(place);
        }
        self.worker.count_refusal(Some(RefusalReason::ConnectionsFull), &peer.ip().to_string(), None);
        let _wanted = WantedRoom::new(&shared.room_wanted);
        self.worker.make_room();
        shared.places.take().await
    }

    fn spawn(
        self: &Rc<Self>,
        stream: ClientStream,
        (way, peer, local): (ClientWay, SocketAddr, Option<SocketAddr>),
        place: TakenPlace,
        closing: &Arc<AtomicBool>,
    ) {
        self.worker.count_accepted();
        if way.is_proxied {
            let open = OpenConnection::new(self, Some(place));
            tokio::task::spawn_local(introduce(open, stream, (way, peer, local), Arc::clone(closing)));
            return;
        }
        let accepted = Rc::new(Accepted { way, ..self.worker.accepted(peer, local, closing) });
        self.begin(stream, accepted, Some(place));
    }

    /// Serves a connection from its first byte on.
    fn begin(self: &Rc<Self>, stream: ClientStream, accepted: Rc<Accepted>, place: Option<TakenPlace>) {
        let start = Start::default();
        if !accepted.way.secure {
            return self.serve(stream, accepted, start, place);
        }
        match self.worker.shared.tls.now() {
            Some(tls) => {
                let counts = Rc::clone(&self.worker) as Rc<dyn TlsHandshakes>;
                self.serve(Secured::client(stream, tls, counts), accepted, start, place);
            }
            // A reload has just removed the listener.
            None => self.worker.count_closed(),
        }
    }

    /// What the listener at this address says of its connections, if it is still configured.
    fn ways(&self, configured: SocketAddr) -> Option<ListenerWays> {
        let config = self.worker.shared.config.load();
        let listener = config.listeners.iter().find(|listener| listener.address == configured)?;
        let way = ClientWay {
            secure: listener.tls,
            redirect_port: listener.redirect.map(|redirect| redirect.port),
            is_proxied: false,
        };
        Some(ListenerWays { way, proxies: listener.proxy_protocol.clone() })
    }

    /// Serves a connection that came back, or could not leave.
    fn resume(self: &Rc<Self>, stream: ClientStream, accepted: Rc<Accepted>, start: Start) {
        // It had a place before, so serve it even if none is left.
        self.serve(stream, accepted, start, self.worker.shared.places.try_take());
    }

    pub(super) fn serve(
        self: &Rc<Self>,
        mut stream: impl ClientIo + 'static,
        accepted: Rc<Accepted>,
        mut start: Start,
        place: Option<TakenPlace>,
    ) {
        let mut open = OpenConnection::new(self, place);
        // This future is most of the memory of an idle connection. It passes references: an asynchronous function keeps
        // what it takes by value twice.
        tokio::task::spawn_local(async move {
            match client::serve(&open.service, &mut stream, &accepted, &mut start).await {
                Some(GoesOn::Http2(read)) => {
                    drop(start);
                    Box::pin(serve_http2(&open.service, stream, &accepted, read)).await;
                }
                Some(GoesOn::Leaves(parcel)) => {
                    open.has_left = true;
                    // What was kept for it is of no use elsewhere.
                    open.service.mechanism.client_ended(&accepted);
                    open.service.mechanism.take(&open.service.worker, stream, &accepted, parcel);
                }
                None => drop(stream),
            }
            if !open.has_left {
                accepted.over.set(true);
                open.service.mechanism.client_ended(&accepted);
            }
            // Its place is free when its descriptor is.
            drop(open);
        });
    }
}

/// What a listener says of its connections.
#[derive(Default)]
struct ListenerWays {
    way: ClientWay,
    /// Those that begin with whose connection it is.
    proxies: Vec<IpNet>,
}

impl ListenerWays {
    /// What it says of those from this address.
    fn of(&self, peer: SocketAddr) -> ClientWay {
        let is_proxied = self.proxies.iter().any(|net| net.contains(peer.ip()));
        ClientWay { is_proxied, ..self.way }
    }
}

/// Has a proxy say whose connection it passes on, and serves it.
async fn introduce<M: Mechanism>(
    mut open: OpenConnection<M>,
    mut stream: ClientStream,
    (way, peer, local): (ClientWay, SocketAddr, Option<SocketAddr>),
    closing: Arc<AtomicBool>,
) {
    let service = Rc::clone(&open.service);
    let worker = &service.worker;
    let deadline = worker.deadlines.add();
    deadline.set(worker.config().timeouts.head);
    deadline.set_idle(true);
    deadline.set_incomplete(true);
    // In a box, since the task holds it only until then.
    let told = match Box::pin(read_proxy_header(&mut stream, &deadline)).await {
        Ok(told) => told,
        Err(NoProxyHeader::Gone) => return,
        Err(NoProxyHeader::Late) => {
            let refused = Some(RefusalReason::ProxyHeader);
            return worker.count_refusal(refused, &peer_text(peer.ip()), None);
        }
        Err(NoProxyHeader::MadeRoom) => return worker.count_made_room(&peer_text(peer.ip()), None),
        Err(NoProxyHeader::Bad(why)) => {
            tracing::debug!(%peer, why, "a connection did not begin with whose it is");
            worker.count_refusal(Some(RefusalReason::ProxyHeader), &peer_text(peer.ip()), None);
            return;
        }
    };
    drop(deadline);
    stream.stay();
    let (peer, local) = match told {
        Some(ends) => (ends.source, Some(ends.destination)),
        None => (peer, local),
    };
    let accepted = Rc::new(Accepted { way, ..worker.accepted(peer, local, &closing) });
    // It counts on under another task.
    open.has_left = true;
    service.begin(stream, accepted, open.place.take());
}

/// Serves a connection of HTTP/2, of which this has been read, until it ends.
async fn serve_http2<M: Mechanism>(
    service: &Rc<ConnectionService<M>>,
    stream: impl ClientIo,
    accepted: &Rc<Accepted>,
    read: Vec<u8>,
) {
    let serve_stream = |stream, open| {
        let given = GivenStream { stream, accepted: Rc::clone(accepted), open };
        service.streams.give(given, {
            let service = Rc::clone(service);
            async move |given: GivenStream| {
                let GivenStream { mut stream, accepted, open } = given;
                client::serve_stream(&service, &mut stream, &accepted).await;
                if stream.awaits_rest() {
                    // On the heap, as it is rare, and each task has room for all that it does.
                    Box::pin(stream.linger()).await;
                }
                drop(open);
            }
        });
    };
    http2::serve(&service.worker, stream, accepted, read, serve_stream).await;
}

/// One connection waits for a place.
struct WantedRoom<'a>(&'a AtomicUsize);

impl<'a> WantedRoom<'a> {
    fn new(wanted: &'a AtomicUsize) -> Self {
        wanted.fetch_add(1, Ordering::Relaxed);
        Self(wanted)
    }
}

impl Drop for WantedRoom<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open connection of a worker. Counts from its making on, so that a worker that stops does not miss one whose task has not
/// begun.
struct OpenConnection<M> {
    service: Rc<ConnectionService<M>>,
    place: Option<TakenPlace>,
    /// The mechanism has it and counts its end when it comes.
    has_left: bool,
}

impl<M> OpenConnection<M> {
    fn new(service: &Rc<ConnectionService<M>>, place: Option<TakenPlace>) -> Self {
        service.worker.open.set(service.worker.open.get() + 1);
        Self { service: Rc::clone(service), place, has_left: false }
    }
}

impl<M> Drop for OpenConnection<M> {
    fn drop(&mut self) {
        let worker = &self.service.worker;
        worker.open.set(worker.open.get() - 1);
        if !self.has_left {
            worker.count_closed();
        }
    }
}
