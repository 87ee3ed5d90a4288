//! Buffers whose memory is lent out while there is something in it: who waits holds none, and what is read next comes into memory that is
//! still in the CPU's cache.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Buffers that a pool keeps for later; more are given back to the allocator.
const MOST_KEPT: usize = 256;

/// Bytes read and not used up yet.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Empty while nothing is in the buffer.
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    pool: Rc<BufferPool>,
}

impl Buffer {
    /// The bytes that are there.
    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The same, to decode in place.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// How many bytes it holds at most.
    pub(crate) fn room(&self) -> usize {
        self.pool.size_bytes
    }

    /// Uses up the first `n` bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start += n;
        debug_assert!(self.start <= self.end, "only what is there can be used up");
        if self.start == self.end {
            self.give_back();
        }
    }

    /// Puts bytes that were read before behind those that are there; false, and nothing done, when there is no room.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        self.borrow();
        let Some(room) = self.bytes.get_mut(self.end..self.end + bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.end += bytes.len();
        true
    }

    /// Reads what the peer has sent, as far as there is room: `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// Those of the socket; `OutOfMemory` when the buffer is full.
    pub(crate) fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
    ) -> Poll<io::Result<usize>> {
        self.borrow();
        if self.end == self.bytes.len() && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        let mut room = ReadBuf::new(&mut self.bytes[self.end..]);
        let polled = Pin::new(from).poll_read(cx, &mut room);
        self.end += room.filled().len();
        let n = room.filled().len();
        if self.is_empty() {
            self.give_back();
        }
        ready!(polled)?;
        Poll::Ready(Ok(n))
    }

    /// Borrows memory, unless it has some.
    fn borrow(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = self.pool.lend();
        }
    }

    /// Gives the memory back; what is in it is used up.
    fn give_back(&mut self) {
        (self.start, self.end) = (0, 0);
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            self.pool.take_back(bytes);
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Lends memory for buffers of one size; what was given back last goes out first, while it is still in the CPU's cache.
#[derive(Debug)]
pub(crate) struct BufferPool {
    size_bytes: usize,
    free: RefCell<Vec<Box<[u8]>>>,
}

impl BufferPool {
    pub(crate) fn new(size_bytes: usize) -> Rc<Self> {
        Rc::new(Self { size_bytes, free: RefCell::default() })
    }

    /// Bytes of each buffer.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// An empty buffer.
    pub(crate) fn take(self: &Rc<Self>) -> Buffer {
        Buffer { bytes: Box::default(), start: 0, end: 0, pool: Rc::clone(self) }
    }

    fn lend(&self) -> Box<[u8]> {
        let kept = self.free.borrow_mut().pop();
        kept.unwrap_or_else(|| vec![0; self.size_bytes].into_boxed_slice())
    }

    fn take_back(&self, bytes: Box<[u8]>) {
        let mut free = self.free.borrow_mut();
        if free.len() < MOST_KEPT {
            free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn bytes_move_to_the_front_when_the_end_is_reached() {
        let pool = BufferPool::new(8);
        let mut buffer = pool.take();
        let mut cx = Context::from_waker(Waker::noop());
        let mut fill = |buffer: &mut Buffer, mut bytes: &[u8]| match buffer.poll_fill(&mut cx, &mut bytes) {
            Poll::Ready(result) => result.map_err(|e| e.kind()),
            Poll::Pending => panic!("a slice is always ready"),
        };
        assert_eq!(fill(&mut buffer, b"abcdefgh"), Ok(8));
        assert_eq!(fill(&mut buffer, b"i"), Err(io::ErrorKind::OutOfMemory));
        buffer.consume(6);
        assert_eq!(fill(&mut buffer, b"ijk"), Ok(3));
        assert_eq!(buffer.data(), b"ghijk");
        assert_eq!((buffer.room(), pool.free.borrow().len()), (8, 0));
        buffer.consume(5);
        assert!(buffer.is_empty());
        assert_eq!(pool.free.borrow().len(), 1);
        drop(buffer);
        assert_eq!(pool.free.borrow().len(), 1);
    }

    /// Reads nothing, and is not at its end.
    struct Silent;

    impl AsyncRead for Silent {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[test]
    fn who_waits_holds_no_memory() {
        let pool = BufferPool::new(8);
        let (mut first, mut second) = (pool.take(), pool.take());
        let mut cx = Context::from_waker(Waker::noop());
        for buffer in [&mut first, &mut second] {
            assert!(buffer.poll_fill(&mut cx, &mut Silent).is_pending());
        }
        assert_eq!(pool.free.borrow().len(), 1);
        assert!(first.put(b"abc") && !first.put(b"defghi"));
        assert!(first.poll_fill(&mut cx, &mut Silent).is_pending());
        assert_eq!((first.data(), pool.free.borrow().len()), (&b"abc"[..], 0));
        drop(first);
        assert_eq!(pool.free.borrow().len(), 1);
    }
}
