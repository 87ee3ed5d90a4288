//! The body of a response: bytes from memory, or a stream that is read as the client takes it.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use plimsoll_wire::load::{ActiveAccess, LoadGauge};
use tokio::sync::mpsc;

use super::object::{ContentError, Object, Reader};
use super::range::Piece;
use super::stats::Counters;
use super::store::Store;

/// Bytes read at a time when no disk is emulated.
const CHUNK_BYTES: u64 = 256 * 1024;

/// The body of a response. Its length is known from the start. A stream that ends too early is an error: the connection
/// is then cut, so that the client notices.
#[derive(Debug)]
pub struct OriginBody {
    parts: Parts,
    remaining_bytes: u64,
    counters: Arc<Counters>,
    /// Counts as load while it is sent.
    access: Option<OriginAccess>,
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct OriginAccess {
    active: Option<ActiveAccess>,
    began_at: Instant,
}

impl OriginAccess {
    /// A request has come.
    pub(crate) fn begin(gauge: &LoadGauge) -> Self {
        Self { active: Some(gauge.begin()), began_at: Instant::now() }
    }
}

impl Drop for OriginAccess {
    fn drop(&mut self) {
        if let Some(active) = self.active.take() {
            active.answered(u32::try_from(self.began_at.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
    }
}

#[derive(Debug)]
enum Parts {
    Memory(VecDeque<Bytes>),
    Stream(mpsc::Receiver<Result<Bytes, ContentError>>),
}

impl OriginBody {
    /// The request is active until the body was sent, or is dropped.
    pub(crate) fn belongs_to(&mut self, access: OriginAccess) {
        self.access = Some(access);
    }

    /// A body of these pieces of a document, all of which is in memory.
    pub(crate) fn memory(whole: &Bytes, pieces: Vec<Piece>, counters: &Arc<Counters>) -> Self {
        let size = whole.len();
        let cut = |piece| match piece {
            Piece::Given(bytes) => bytes,
            // The range was chosen to lie within the document. Clamped all the same, as slicing beyond would panic.
            Piece::Part(range) => {
                let end = usize::try_from(range.end).map_or(size, |end| end.min(size));
                whole.slice(usize::try_from(range.start).map_or(end, |start| start.min(end))..end)
            }
        };
        Self::given(pieces.into_iter().map(cut).collect(), counters)
    }

    /// A body of these bytes.
    pub(crate) fn given(parts: VecDeque<Bytes>, counters: &Arc<Counters>) -> Self {
        let remaining_bytes = parts.iter().map(|bytes| bytes.len() as u64).sum();
        Self { parts: Parts::Memory(parts), remaining_bytes, counters: Arc::clone(counters), access: None }
    }

    /// A body of these pieces of an object, read while they are sent. At most three chunks are in memory at once.
    pub(crate) async fn stream(
        store: &Arc<Store>,
        object: &Arc<Object>,
        pieces: Vec<Piece>,
        counters: &Arc<Counters>,
    ) -> Result<Self, ContentError> {
        let to_open = Arc::clone(object);
        let reader = blocking(move || to_open.open()).await?;
        let remaining_bytes = pieces.iter().map(Piece::length_bytes).sum();
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(produce(Arc::clone(store), Arc::new(reader), pieces, sender));
        Ok(Self {
            parts: Parts::Stream(receiver),
            remaining_bytes,
            counters: Arc::clone(counters),
            access: None,
        })
    }
}

/// Reads the pieces one after another, until the last one or until the body is dropped.
async fn produce(
    store: Arc<Store>,
    reader: Arc<Reader>,
    pieces: Vec<Piece>,
    sender: mpsc::Sender<Result<Bytes, ContentError>>,
) {
    let chunk_bytes = store.disk_block_bytes().unwrap_or(CHUNK_BYTES);
    let mut first = true;
    for piece in pieces {
        let range = match piece {
            Piece::Given(bytes) => {
                if sender.send(Ok(bytes)).await.is_err() {
                    return;
                }
                continue;
            }
            Piece::Part(range) => range,
        };
        let mut offset_bytes = range.start;
        while offset_bytes < range.end {
            let length_bytes = chunk_bytes.min(range.end - offset_bytes);
            // Wait for room first: a client that does not read must not keep the disk busy.
            let Ok(place) = sender.reserve().await else { return };
            store.wait_for_block(first, length_bytes).await;
            first = false;
            let chunk = if reader.blocks() {
                let reader = Arc::clone(&reader);
                blocking(move || reader.read(offset_bytes, length_bytes)).await
            } else {
                reader.read(offset_bytes, length_bytes)
            };
            let failed = chunk.is_err();
            place.send(chunk);
            if failed {
                return;
            }
            offset_bytes += length_bytes;
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, ContentError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error).into()))
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = ContentError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ContentError>>> {
        let next = match &mut self.parts {
            Parts::Memory(parts) => parts.pop_front().map(Ok),
            Parts::Stream(receiver) => ready!(receiver.poll_recv(cx)),
        };
        Poll::Ready(match next {
            Some(Ok(bytes)) => {
                let length = bytes.len() as u64;
                self.remaining_bytes = self.remaining_bytes.saturating_sub(length);
                self.counters.body_bytes.add(length);
                Some(Ok(Frame::data(bytes)))
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "a response was cut off");
                Some(Err(error))
            }
            None if self.remaining_bytes > 0 => Some(Err(ContentError::Changed)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.remaining_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining_bytes)
    }
}
