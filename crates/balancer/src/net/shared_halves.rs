//! Both directions of a connection that has one state for them.

use std::cell::{Ref, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::halves::{Halves, Input, OutputHalf};

/// A connection that has one state for both directions.
pub(crate) struct SharedHalves<S>(RefCell<S>);

impl<S> SharedHalves<S> {
    pub(crate) fn new(state: S) -> Self {
        Self(RefCell::new(state))
    }

    /// The state, to look at.
    pub(crate) fn state(&self) -> Ref<'_, S> {
        self.0.borrow()
    }

    /// The state, while neither direction is used.
    pub(crate) fn state_mut(&mut self) -> &mut S {
        self.0.get_mut()
    }
}

impl<S: Input + OutputHalf + 'static> Halves for SharedHalves<S> {
    type Input<'a> = HalfOf<'a, S>;
    type Output<'a> = HalfOf<'a, S>;

    fn halves(&mut self) -> io::Result<(HalfOf<'_, S>, HalfOf<'_, S>)> {
        Ok((HalfOf(&self.0), HalfOf(&self.0)))
    }
}

/// While the connection is not taken apart it reads and writes as either direction does.
impl<S: AsyncRead + Unpin> AsyncRead for SharedHalves<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut HalfOf(&self.0)).poll_read(cx, room)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SharedHalves<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut HalfOf(&self.0)).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut HalfOf(&self.0)).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        HalfOf(&self.0).is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut HalfOf(&self.0)).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut HalfOf(&self.0)).poll_shutdown(cx)
    }
}

/// One direction.
pub(crate) struct HalfOf<'a, S>(pub(crate) &'a RefCell<S>);

impl<S: Input> Input for HalfOf<'_, S> {
    fn acknowledge_now(&mut self) {
        self.0.borrow_mut().acknowledge_now();
    }

    fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.borrow_mut().poll_cancelled(cx)
    }

    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_broken(cx)
    }
}

impl<S: OutputHalf> OutputHalf for HalfOf<'_, S> {
    fn takes_shared(&self) -> bool {
        self.0.borrow().takes_shared()
    }

    fn poll_write_shared(&mut self, cx: &mut Context<'_>, bytes: &Bytes) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().poll_write_shared(cx, bytes)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HalfOf<'_, S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, room)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HalfOf<'_, S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.borrow().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_shutdown(cx)
    }
}
