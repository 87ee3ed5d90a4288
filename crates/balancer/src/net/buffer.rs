//! Buffers whose memory is lent out while there is something in it: who waits holds none, and what is read next comes into memory that is
//! still in the CPU's cache.

use std::cell::RefCell;
use std::future::Future as _;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{BufMut as _, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::held_memory::{HeldMemory, HeldShare};
use super::shared_memory::{MOST_KEPT, shared};

/// Bytes read and not used up yet.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Those that are there, behind those that were used up. Without memory while nothing is in the buffer.
    bytes: Vec<u8>,
    /// Bytes that were used up.
    start: usize,
    /// Its room, where that is not as usual. In a box: an idle connection has a place for it, too.
    wide: Option<Box<HeldShare>>,
    pool: Rc<BufferPool>,
}

impl Buffer {
    /// The bytes that are there.
    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// The same, to decode in place.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes it holds at most.
    pub(crate) fn room(&self) -> usize {
        self.wide.as_ref().map_or(self.pool.size_bytes, |share| share.bytes())
    }

    /// Makes so much room, more than there is, until all that comes is used up: where so much may be held of `most_bytes` for all
    /// requests. Whether it was made.
    pub(crate) fn widen(&mut self, room_bytes: usize, held: &HeldMemory, most_bytes: usize) -> bool {
        let first = self.wide.is_none();
        let share = self.wide.get_or_insert_with(|| Box::new(held.share()));
        let grows = share.grow(room_bytes.saturating_sub(share.bytes()), most_bytes);
        if !grows && first {
            self.wide = None;
        } else if grows && self.bytes.capacity() > 0 {
            let mut bytes = Vec::with_capacity(room_bytes);
            bytes.extend_from_slice(self.data());
            let before = std::mem::replace(&mut self.bytes, bytes);
            self.start = 0;
            if first {
                self.pool.take_back(before);
            }
        }
        grows
    }

    /// Uses up the first `n` bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start += n;
        debug_assert!(self.start <= self.bytes.len(), "only what is there can be used up");
        if self.is_empty() {
            self.give_back();
            self.wide = None;
        }
    }

    /// Uses up those bytes that stand between the first `kept` and what follows `end`.
    pub(crate) fn cut_out(&mut self, kept: usize, end: usize) {
        self.bytes.drain(self.start + kept..self.start + end);
        self.consume(0);
    }

    /// Gives the first `n` bytes away without copying them, if they fill at least half of the memory and the pool is one for that; what is
    /// behind them is used up, too. The memory is used again once all parts of what was given away are dropped.
    pub(crate) fn share(&mut self, n: usize) -> Option<Bytes> {
        if !self.pool.shares || self.wide.is_some() || 2 * n < self.room() {
            return None;
        }
        let start = std::mem::take(&mut self.start);
        Some(shared(std::mem::take(&mut self.bytes), &SHARED_BEFORE).slice(start..start + n))
    }

    /// Puts bytes that were read before behind those that are there; false, and nothing done, when there is no room.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.room() - self.bytes.len();
        if fits {
            self.borrow();
            self.bytes.extend_from_slice(bytes);
        }
        fits
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
        if self.bytes.len() == self.room() && self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let left = self.room() - self.bytes.len();
        if left == 0 {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        // Into memory as it is: to fill it with zeros first costs as much as reading.
        let polled = pin!(from.read_buf(&mut (&mut self.bytes).limit(left))).poll(cx);
        if self.is_empty() {
            self.give_back();
        }
        Poll::Ready(ready!(polled))
    }

    /// Borrows memory, unless it has some.
    fn borrow(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes = match &self.wide {
                Some(room) => Vec::with_capacity(room.bytes()),
                None => self.pool.lend(),
            };
        }
    }

    /// Gives the memory back; what is in it is used up.
    fn give_back(&mut self) {
        self.start = 0;
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() > 0 && self.wide.is_none() {
            self.pool.take_back(bytes);
        }
    }
}

thread_local! {
    /// Memory of buffers that was shared: its last owner knows no pool.
    static SHARED_BEFORE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Lends memory for buffers of one size. What buffers gave back last goes out first, while it is still in the CPU's cache; then what was
/// shared.
#[derive(Debug)]
pub(crate) struct BufferPool {
    size_bytes: usize,
    /// Whether its buffers give memory away. No two such pools of a thread are in use at a time.
    shares: bool,
    /// So many pieces of memory are kept.
    most_kept: usize,
    free: RefCell<Vec<Vec<u8>>>,
}

impl BufferPool {
    pub(crate) fn new(size_bytes: usize) -> Rc<Self> {
        Self::keeping(size_bytes, MOST_KEPT)
    }

    /// One that keeps so many pieces of memory.
    pub(crate) fn keeping(size_bytes: usize, most_kept: usize) -> Rc<Self> {
        Rc::new(Self { size_bytes, shares: false, most_kept, free: RefCell::default() })
    }

    /// One whose buffers [share](Buffer::share) their memory.
    pub(crate) fn sharing(size_bytes: usize) -> Rc<Self> {
        Rc::new(Self { size_bytes, shares: true, most_kept: MOST_KEPT, free: RefCell::default() })
    }

    /// Lends buffers of another size from now on, where the configuration asks for it.
    pub(crate) fn fit(pool: &RefCell<Rc<Self>>, size_bytes: usize) {
        pool.replace_with(|pool| pool.resized(size_bytes));
    }

    /// The same, or one of the same kind where its buffers have another size than this.
    fn resized(self: &Rc<Self>, size_bytes: usize) -> Rc<Self> {
        if size_bytes == self.size_bytes {
            return Rc::clone(self);
        }
        Rc::new(Self { size_bytes, shares: self.shares, most_kept: self.most_kept, free: RefCell::default() })
    }

    /// An empty buffer.
    pub(crate) fn take(self: &Rc<Self>) -> Buffer {
        Buffer { bytes: Vec::new(), start: 0, wide: None, pool: Rc::clone(self) }
    }

    /// Memory for a buffer, with nothing in it.
    fn lend(&self) -> Vec<u8> {
        let kept = self.free.borrow_mut().pop().or_else(|| self.shared_before());
        kept.unwrap_or_else(|| Vec::with_capacity(self.size_bytes))
    }

    /// Memory that was shared. What has another size is from before a reload, and dropped.
    fn shared_before(&self) -> Option<Vec<u8>> {
        let fits = |bytes: &Vec<u8>| bytes.capacity() == self.size_bytes;
        let take = |free: &mut Vec<Vec<u8>>| std::iter::from_fn(|| free.pop()).find(fits);
        SHARED_BEFORE.with_borrow_mut(|free| if self.shares { take(free) } else { None })
    }

    fn take_back(&self, mut bytes: Vec<u8>) {
        let mut free = self.free.borrow_mut();
        if free.len() < self.most_kept {
            bytes.clear();
            free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::Waker;

    use tokio::io::ReadBuf;

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

    #[test]
    fn more_room_is_there_until_all_is_used_up() {
        let memory = HeldMemory::default();
        let pool = BufferPool::new(8);
        let mut buffer = pool.take();
        assert!(buffer.put(b"..abc"));
        buffer.consume(2);
        let most_bytes = 12 * 32;
        assert!(!buffer.widen(13, &memory, most_bytes) && buffer.widen(9, &memory, most_bytes));
        assert_eq!((buffer.data(), buffer.room(), pool.free.borrow().len()), (&b"abc"[..], 9, 1));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(buffer.poll_fill(&mut cx, &mut &b"d"[..]), Poll::Ready(Ok(1))));
        assert!(!buffer.widen(13, &memory, most_bytes) && buffer.widen(12, &memory, most_bytes));
        assert!(matches!(buffer.poll_fill(&mut cx, &mut &b"efghijklmnop"[..]), Poll::Ready(Ok(8))));
        buffer.consume(11);
        assert_eq!((buffer.data(), memory.bytes()), (&b"l"[..], 12));
        buffer.consume(1);
        assert_eq!((buffer.room(), memory.bytes(), pool.free.borrow().len()), (8, 0, 1));
        // Who waits for what has not begun holds no memory, but its room.
        assert!(buffer.widen(12, &memory, most_bytes));
        assert!(buffer.poll_fill(&mut cx, &mut Silent).is_pending());
        assert_eq!((buffer.bytes.capacity(), buffer.room(), pool.free.borrow().len()), (0, 12, 1));
        drop(buffer);
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn what_is_given_away_comes_back_when_its_last_part_is_dropped() {
        let (pool, another) = (BufferPool::sharing(8), BufferPool::new(8));
        let (mut buffer, mut other, mut apart) = (pool.take(), pool.take(), another.take());
        assert!(buffer.put(b"abcde") && buffer.share(3).is_none());
        assert!(apart.put(b"abcdefg") && apart.share(7).is_none());
        assert!(buffer.put(b"fg!"));
        buffer.consume(1);
        let shared = buffer.share(6).unwrap();
        assert!(buffer.is_empty() && shared[..] == b"bcdefg"[..]);
        let part = shared.slice(2..4);
        drop(shared);
        assert!(buffer.put(b"xyz"));
        assert_eq!((&part[..], buffer.data()), (&b"de"[..], &b"xyz"[..]));
        let kept = || SHARED_BEFORE.with_borrow(Vec::len);
        assert_eq!(kept(), 0);
        drop(part);
        assert_eq!(kept(), 1);
        assert!(another.take().put(b"1"));
        assert_eq!(kept(), 1);
        assert!(other.put(b"1") && other.data() == b"1");
        assert_eq!(kept(), 0);
    }

    #[test]
    fn memory_of_another_size_that_was_shared_goes() {
        let before = BufferPool::sharing(16);
        let (mut buffer, mut other) = (before.take(), before.take());
        assert!(buffer.put(&[b'a'; 16]) && other.put(&[b'a'; 16]));
        drop((buffer.share(16), other.share(16)));
        let kept = || SHARED_BEFORE.with_borrow(Vec::len);
        assert_eq!(kept(), 2);
        let mut small = before.resized(8).take();
        assert!(small.put(b"12345678") && small.share(8).is_some());
        assert_eq!(kept(), 1, "that of the new size");
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
