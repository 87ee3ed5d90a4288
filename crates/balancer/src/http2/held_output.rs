//! A connection that is flushed when what drives it has nothing more to write.
//!
//! The `h2` crate flushes behind each frame of content. Under TLS that is a system call, and a segment, for each; held back until all streams
//! have had their turn, what they have written goes out together. How much is held is for the connection below to bound.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::halves::ClientIo;

/// See the module's documentation. Copies are of the same connection: one to give away, and one to flush it by.
pub(super) struct HeldOutput<C>(Rc<Held<C>>);

struct Held<C> {
    stream: RefCell<C>,
    is_to_flush: Cell<bool>,
}

impl<C> Clone for HeldOutput<C> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<C> HeldOutput<C> {
    pub(super) fn new(stream: C) -> Self {
        Self(Rc::new(Held { stream: RefCell::new(stream), is_to_flush: Cell::new(false) }))
    }
}

impl<C: AsyncWrite + Unpin> HeldOutput<C> {
    /// Flushes it, if that was asked for.
    ///
    /// # Errors
    /// The connection's.
    pub(super) fn poll_release(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.0.is_to_flush.get() {
            ready!(Pin::new(&mut *self.0.stream.borrow_mut()).poll_flush(cx))?;
            self.0.is_to_flush.set(false);
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: ClientIo> HeldOutput<C> {
    /// Whether something was written that has not gone out.
    pub(super) fn is_held(&self) -> bool {
        self.0.is_to_flush.get()
    }

    /// Bytes that the socket has taken.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.0.stream.borrow().sent_bytes()
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for HeldOutput<C> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_read(cx, room)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for HeldOutput<C> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.stream.borrow().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.is_to_flush.set(true);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::BufWriter;

    use super::*;

    #[test]
    fn what_is_flushed_goes_out_when_it_is_released() {
        let cx = &mut Context::from_waker(Waker::noop());
        let kept = HeldOutput::new(BufWriter::new(Vec::new()));
        let mut given = kept.clone();
        let sent = |kept: &HeldOutput<BufWriter<Vec<u8>>>| kept.0.stream.borrow().get_ref().clone();
        for piece in [b"one ", b"two "] {
            assert!(Pin::new(&mut given).poll_write(cx, piece).is_ready());
            assert!(Pin::new(&mut given).poll_flush(cx).is_ready());
            assert_eq!(sent(&kept), b"");
        }
        assert!(kept.poll_release(cx).is_ready());
        assert_eq!(sent(&kept), b"one two ");
        // Nobody has asked for it again.
        assert!(Pin::new(&mut given).poll_write(cx, b"three").is_ready());
        assert!(kept.poll_release(cx).is_ready());
        assert_eq!(sent(&kept), b"one two ");
        assert!(Pin::new(&mut given).poll_shutdown(cx).is_ready());
        assert_eq!(sent(&kept), b"one two three");
    }
}
