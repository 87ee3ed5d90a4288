//! Buffers that are lent out: an idle connection holds none.

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
        self.bytes.len()
    }

    /// Uses up the first `n` bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start += n;
        debug_assert!(self.start <= self.end, "only what is there can be used up");
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Puts bytes that were read before behind those that are there; false, and nothing done, when there is no room.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
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
        if self.end == self.bytes.len() && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        let mut room = ReadBuf::new(&mut self.bytes[self.end..]);
        ready!(Pin::new(from).poll_read(cx, &mut room))?;
        let n = room.filled().len();
        self.end += n;
        Poll::Ready(Ok(n))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self.pool.free.borrow_mut();
        if free.len() < MOST_KEPT {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// Lends buffers of one size; the one given back last goes out first, while it is still in the CPU's cache.
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
        let kept = self.free.borrow_mut().pop();
        let bytes = kept.unwrap_or_else(|| vec![0; self.size_bytes].into_boxed_slice());
        Buffer { bytes, start: 0, end: 0, pool: Rc::clone(self) }
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
        buffer.consume(5);
        assert!(buffer.is_empty());
        drop(buffer);
        assert_eq!(pool.free.borrow().len(), 1);
    }
}
