//! A client's connection of HTTP/2: each of its streams is served like a connection with one request.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use plimsoll_config::Config;

use super::client_stream::{ClientStreamText, client_stream};
use super::held_output::HeldOutput;
use super::meter::{FrameAccount, MOST_RESETS, Metered};
use crate::accepted::Accepted;
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::ClientIo;
use crate::refusal_reason::RefusalReason;
use crate::worker::Worker;

/// The first line of a connection of HTTP/2, which looks like the head of a request (RFC 9113, section 3.4).
pub(crate) const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// What a client may send on a stream before it is read. Its connection has room for that of all streams, so that none that is not read
/// stops the others.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// How far small frames that have not been read may exceed their content, as the `h2` crate counts them: some 16,000 frames.
const SMALL_FRAMES_BYTES: usize = 4 << 20;
/// What of an answer may wait for the client besides what the socket takes.
const SEND_BUFFER_BYTES: usize = 32 << 10;
/// Streams that a client may have reset by us in the life of a connection, with frames that are wrong for their streams alone.
const MOST_WRONG_STREAMS: usize = 256;
/// How long a client that was told to go may keep the connection without a request.
const LINGER: Duration = Duration::from_secs(1);
/// While requests are under way, which have deadlines of their own, it is looked this often whether the connection is to end.
const LOOK: Duration = Duration::from_secs(1);

/// The streams of a connection that are served.
struct OpenStreams {
    open: Cell<usize>,
    begun: Cell<u64>,
    deadline: Deadline,
    idle: Duration,
    /// When the client was told to go, as the worker counts milliseconds.
    told_ms: Cell<Option<u64>>,
}

impl OpenStreams {
    fn begin(self: &Rc<Self>) -> OpenStream {
        if self.open.replace(self.open.get() + 1) == 0 {
            self.wait(LOOK);
        }
        self.begun.set(self.begun.get() + 1);
        OpenStream(Rc::clone(self))
    }

    /// Whether the client was told to go this long ago.
    fn is_told_for(&self, time: Duration) -> bool {
        let since = self.told_ms.get().map(|ms| self.deadline.now_ms().saturating_sub(ms));
        since.is_some_and(|ms| u128::from(ms) > time.as_millis())
    }

    /// Waits for the client this long, and no longer whatever happens.
    fn wait(&self, time: Duration) {
        self.deadline.set_idle(false);
        self.deadline.set_incomplete(false);
        self.deadline.set(time);
    }

    /// Waits for a request.
    fn rest(&self) {
        self.deadline.set(if self.told_ms.get().is_some() { LINGER } else { self.idle });
        self.deadline.set_idle(true);
        self.deadline.set_incomplete(true);
    }
}

/// One of them.
pub(crate) struct OpenStream(Rc<OpenStreams>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        let left = self.0.open.get() - 1;
        self.0.open.set(left);
        if left == 0 {
            self.0.rest();
        }
    }
}

/// What happens on a connection.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once, and most of them are streams")]
enum Happened {
    /// A stream was opened.
    Opened(Request<RecvStream>, SendResponse<Bytes>),
    /// The connection is over.
    Over,
    /// The client has broken a rule of HTTP/2, so that the connection ends.
    Broken(h2::Error),
    /// The client sends frames that ask for nothing, and too many.
    Flooded,
}

/// What the library has come to, after what it has written has gone out, if it waits; `None` where that failed.
fn driven<T, C: ClientIo>(polled: Poll<T>, output: &HeldOutput<C>, cx: &mut Context<'_>) -> Poll<Option<T>> {
    match polled {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => match output.poll_release(cx) {
            Poll::Ready(Err(_)) => Poll::Ready(None),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        },
    }
}

/// Serves a connection until it ends. `read` is what has been read of it; `serve_stream` has one stream served, beside all others, and drops
/// the [`OpenStream`] afterwards.
pub(crate) async fn serve<C: ClientIo>(
    worker: &Rc<Worker>,
    stream: C,
    accepted: &Rc<Accepted>,
    read: Vec<u8>,
    serve_stream: impl Fn(ClientStreamText, OpenStream),
) {
    // In a box of its own, as a connection that is open needs none of it.
    let Some(mut served) = Box::pin(shake_hands(worker, stream, accepted, read)).await else { return };
    loop {
        match served.happens().await {
            Ok(Happened::Opened(request, respond)) => {
                if let Some((stream, open)) = served.open(request, respond) {
                    serve_stream(stream, open);
                }
            }
            Ok(Happened::Over) => return,
            Ok(Happened::Broken(error)) => return served.refuse(&error),
            Ok(Happened::Flooded) => return served.calm_down().await,
            Err(fired) if served.goes_on(fired) => {}
            Err(_) => return,
        }
    }
}

/// Begins a connection of which `read` has been read; `None` where it does not begin as it must.
async fn shake_hands<'a, C: ClientIo>(
    worker: &'a Rc<Worker>,
    mut stream: C,
    accepted: &'a Accepted,
    read: Vec<u8>,
) -> Option<ServedConnection<'a, C>> {
    let identity = stream.identity();
    stream.hold_output();
    let account = FrameAccount::default();
    let deadline = worker.deadlines.add();
    let config = worker.config();
    // After a reload back-ends may be told it, and then it is out of reach.
    if accepted.local.get().is_none() {
        accepted.local.set(stream.local_address());
    }
    deadline.set(config.timeouts.head);
    deadline.set_incomplete(true);
    let output = HeldOutput::new(stream);
    let io = Metered::new(output.clone(), read, Rc::clone(&worker.deadlines), account.clone());
    let shaken = {
        let mut handshake = builder(&config).handshake(io);
        deadline
            .guard(|cx| driven(Pin::new(&mut handshake).poll(cx), &output, cx).map(Option::transpose))
            .await
    };
    let Ok(Ok(Some(connection))) = shaken else { return None };
    let streams = Rc::new(OpenStreams {
        open: Cell::new(0),
        begun: Cell::new(0),
        deadline,
        idle: config.timeouts.idle,
        told_ms: Cell::new(None),
    });
    drop(config);
    streams.rest();
    Some(ServedConnection {
        worker,
        accepted,
        identity,
        connection,
        output,
        account,
        streams,
        sent_before: 0,
    })
}

/// A connection that is served.
struct ServedConnection<'a, C> {
    worker: &'a Rc<Worker>,
    accepted: &'a Accepted,
    /// Who its client is.
    identity: Option<Rc<[u8]>>,
    connection: Connection<Metered<HeldOutput<C>>, Bytes>,
    output: HeldOutput<C>,
    account: FrameAccount,
    streams: Rc<OpenStreams>,
    /// Bytes sent when it was last waited for the client to take the ends of answers.
    sent_before: u64,
}

impl<C: ClientIo> ServedConnection<'_, C> {
    async fn happens(&mut self) -> Result<Happened, Fired> {
        let (connection, output, account) = (&mut self.connection, &self.output, &self.account);
        let (worker, client) = (self.worker, &self.accepted.peer_text);
        let wait = self.streams.deadline.guard(|cx| {
            let polled = connection.poll_accept(cx);
            for _ in 0..account.take_broken() {
                worker.count_refusal(Some(RefusalReason::Http2), client, None);
                tracing::debug!(%client, "a rule of HTTP/2 was broken, and its stream reset");
            }
            match driven(polled, output, cx) {
                _ if account.is_flooded() => Poll::Ready(Happened::Flooded),
                Poll::Ready(Some(Some(Ok((request, respond))))) => {
                    Poll::Ready(Happened::Opened(request, respond))
                }
                Poll::Ready(Some(Some(Err(error)))) if error.is_library() => {
                    Poll::Ready(Happened::Broken(error))
                }
                Poll::Ready(_) => Poll::Ready(Happened::Over),
                Poll::Pending => Poll::Pending,
            }
        });
        wait.await
    }

    /// A stream that was opened, unless it is reset: it came too late, or cannot be passed on.
    fn open(
        &mut self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Option<(ClientStreamText, OpenStream)> {
        if self.streams.is_told_for(LINGER) {
            respond.send_reset(Reason::REFUSED_STREAM);
            return None;
        }
        let open = self.streams.begin();
        let last = self.worker.shared.config.load().limits.requests_per_connection;
        if self.is_to_end() || self.streams.begun.get() >= last {
            self.say_goodbye();
        }
        let stream = client_stream(request, respond, self.identity.clone(), self.account.clone());
        let refuse = |why: &&str| {
            self.account.breaks();
            self.refuse(why);
        };
        stream.inspect_err(refuse).ok().map(|stream| (stream, open))
    }

    /// Counts a stream or a connection that ends because the client has broken a rule.
    fn refuse(&self, why: &dyn std::fmt::Display) {
        self.worker.count_refusal(Some(RefusalReason::Http2), &self.accepted.peer_text, None);
        tracing::debug!(client = &*self.accepted.peer_text, %why, "a rule of HTTP/2 was broken");
    }

    /// Whether the client is to be told to go.
    fn is_to_end(&self) -> bool {
        self.accepted.closing.load(Ordering::Relaxed) || self.worker.stopping.load(Ordering::Relaxed)
    }

    /// Tells the client to go: the connection ends with the streams that are open.
    fn say_goodbye(&mut self) {
        if self.streams.told_ms.get().is_none() {
            self.connection.graceful_shutdown();
            self.streams.told_ms.set(Some(self.streams.deadline.now_ms()));
        }
    }

    /// Ends the connection of a client that floods it.
    async fn calm_down(&mut self) {
        self.worker.count_refusal(Some(RefusalReason::Flood), &self.accepted.peer_text, None);
        self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        self.streams.deadline.set(LINGER);
        let (connection, output) = (&mut self.connection, &self.output);
        // Whatever it ends with, it has ended.
        let _ = self.streams.deadline.guard(|cx| driven(connection.poll_closed(cx), output, cx)).await;
    }

    /// Whether the connection goes on after its deadline has fired.
    fn goes_on(&mut self, fired: Fired) -> bool {
        if self.streams.open.get() > 0 && fired == Fired::TimedOut {
            if self.is_to_end() {
                self.say_goodbye();
            }
            self.streams.deadline.set(LOOK);
            return true;
        }
        if self.connection.has_streams() || self.output.is_held() {
            // The ends of answers still wait for the client.
            if fired == Fired::TimedOut && self.output.sent_bytes() == self.sent_before {
                return false;
            }
            self.sent_before = self.output.sent_bytes();
            if fired != Fired::TimedOut {
                self.say_goodbye();
            }
            self.streams.wait(self.worker.shared.config.load().timeouts.body);
            return true;
        }
        if self.streams.told_ms.get().is_some() {
            return false;
        }
        if fired == Fired::MadeRoom {
            self.worker.count_made_room(&self.accepted.peer_text, None);
        }
        self.say_goodbye();
        self.streams.wait(LINGER);
        true
    }
}

fn builder(config: &Config) -> server::Builder {
    let mut builder = server::Builder::new();
    if !config.limits.upgrades.is_empty() {
        builder.enable_connect_protocol();
    }
    builder
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(STREAM_WINDOW_BYTES * config.http2.streams)
        .data_frame_budget(SMALL_FRAMES_BYTES)
        .max_send_buffer_size(SEND_BUFFER_BYTES)
        .max_concurrent_streams(config.http2.streams)
        .max_local_error_reset_streams(Some(MOST_WRONG_STREAMS))
        // The meter says how many a client may reset, and this is beyond it: the library's own bound, of 20, knows no difference between
        // an attack and somebody who leaves a page.
        .max_pending_accept_reset_streams(2 * MOST_RESETS as usize)
        // What is too long for the front-end is to be refused, and counted, by itself. Each field counts 32 bytes more here.
        .max_header_list_size(u32::try_from(2 * config.limits.head_bytes).unwrap_or(u32::MAX));
    builder
}
