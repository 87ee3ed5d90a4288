//! Connections of HTTP/2 to back-ends, shared by the requests of a worker.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::Ping;
use h2::client::{Builder, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex as AsyncMutex;

use super::backend_stream::{BackendStreamText, backend_stream};
use super::incoming::broken;
use crate::backend::Backend;

/// Streams of one connection at once: then another one is opened.
const MOST_STREAMS: usize = 100;
/// What a back-end may send on a stream before it is read. A connection has room for that of all streams, so that a client that does not read
/// stops nobody else.
const STREAM_WINDOW_BYTES: u32 = 128 << 10;
const CONNECTION_WINDOW_BYTES: u32 = MOST_STREAMS as u32 * STREAM_WINDOW_BYTES;
/// How far small frames that have not been read may exceed their content, as the `h2` crate counts them: some 130,000 frames.
const SMALL_FRAMES_BYTES: usize = 32 << 20;
/// The largest head that is taken; `limits.head` is looked at later.
const MOST_HEAD_BYTES: u32 = 1 << 20;
/// A connection on which nothing is acknowledged for this long is lost.
pub(crate) const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// What of a request may wait for the back-end besides what the socket takes.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// One connection.
struct Shared {
    backend: Arc<Backend>,
    requests: SendRequest<Bytes>,
    /// How often the back-end had turned when it was opened: one that goes down takes its connections along.
    turns: u32,
    /// Held by each of its streams.
    streams: Arc<()>,
    /// When it was last found to have a stream; the maximum where it has had one since it was looked at.
    busy_ms: u64,
}

impl Shared {
    /// Whether it is neither lost nor told to end.
    fn is_open(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        !self.backend.went_down_since(self.turns)
            && !matches!(self.requests.poll_ready(&mut cx), Poll::Ready(Err(_)))
    }

    fn stream(&self, is_first: bool) -> BackendStreamText {
        let scheme = if self.backend.tls.is_some() { "https" } else { "http" };
        backend_stream(self.requests.clone(), scheme, Arc::clone(&self.streams), is_first)
    }

    fn streams(&self) -> usize {
        Arc::strong_count(&self.streams) - 1
    }

    fn has_room(&self) -> bool {
        self.streams() < self.requests.current_max_send_streams().min(MOST_STREAMS)
    }
}

/// Of one thread, or of tasks that follow one another: nobody waits for it.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Held while a connection is opened, by the pool and index of the back-end.
type Opening = BTreeMap<(u32, usize), Arc<AsyncMutex<()>>>;

/// Those of one worker.
#[derive(Default)]
pub(crate) struct Http2Connections {
    shared: Mutex<Vec<Shared>>,
    /// By the pool and index of the back-end: held while a connection to it is opened, so that those who need one do not open one each.
    opening: Mutex<Opening>,
}

impl Http2Connections {
    /// A stream to `backend`: on a connection that is there, or on one that `connect` opens.
    ///
    /// # Errors
    /// Those of `connect`, or of the first words on a new connection.
    pub(crate) async fn stream<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        &self,
        backend: &Arc<Backend>,
        connect: impl AsyncFnOnce() -> io::Result<S>,
    ) -> io::Result<BackendStreamText> {
        if let Some(stream) = self.find(backend) {
            return Ok(stream);
        }
        // In a box, as it takes most memory of all that a request does, and few requests come here.
        Box::pin(self.open(backend, connect)).await
    }

    /// Opens a connection, unless another request has done so meanwhile.
    async fn open<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        &self,
        backend: &Arc<Backend>,
        connect: impl AsyncFnOnce() -> io::Result<S>,
    ) -> io::Result<BackendStreamText> {
        let opening = self.opening(backend);
        let _first = opening.lock().await;
        if let Some(stream) = self.find(backend) {
            return Ok(stream);
        }
        let turns = backend.turns();
        let stream = connect().await?;
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .data_frame_budget(SMALL_FRAMES_BYTES)
            .max_header_list_size(MOST_HEAD_BYTES)
            .enable_push(false);
        let (requests, mut connection) = builder.handshake::<_, Bytes>(stream).await.map_err(broken)?;
        let ping = connection.ping_pong();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a back-end ended");
            }
        });
        // Its answer tells that the back-end speaks HTTP/2, and its settings have come before that.
        if let Some(mut ping) = ping {
            ping.ping(Ping::opaque()).await.map_err(broken)?;
        }
        let (backend, streams) = (Arc::clone(backend), Arc::default());
        let shared = Shared { backend, requests, turns, streams, busy_ms: u64::MAX };
        let stream = shared.stream(true);
        held(&self.shared).push(shared);
        Ok(stream)
    }

    fn find(&self, backend: &Arc<Backend>) -> Option<BackendStreamText> {
        let mut all = held(&self.shared);
        all.retain_mut(|shared| !Arc::ptr_eq(&shared.backend, backend) || shared.is_open());
        let found = all.iter_mut().find(|shared| Arc::ptr_eq(&shared.backend, backend) && shared.has_room());
        found.map(|shared| {
            shared.busy_ms = u64::MAX;
            shared.stream(false)
        })
    }

    fn opening(&self, backend: &Backend) -> Arc<AsyncMutex<()>> {
        Arc::clone(held(&self.opening).entry((backend.pool, backend.id.index())).or_default())
    }

    /// Closes connections that had no stream for too long, or lead to a removed back-end.
    pub(crate) fn sweep(&self, now_ms: u64, idle: Duration) {
        let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        held(&self.shared).retain_mut(|shared| {
            if shared.streams() > 0 || shared.busy_ms == u64::MAX {
                shared.busy_ms = now_ms;
            }
            !shared.backend.is_retired()
                && now_ms.saturating_sub(shared.busy_ms) < idle_ms
                && shared.is_open()
        });
    }
}
