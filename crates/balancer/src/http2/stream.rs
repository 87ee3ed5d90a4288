//! A stream of HTTP/2 that appears as a connection with one exchange of HTTP/1.1.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::incoming::IncomingText;
use super::outgoing::{BeginsStream, OutgoingText};
use crate::net::halves::{Input, OutputHalf};

/// One end of a stream: both directions of it.
pub(crate) trait StreamEnd: BeginsStream {
    /// Waits for the head of the message that comes, where it does not begin with one.
    ///
    /// # Errors
    /// When the stream was reset, its connection is lost, or its head cannot be passed on.
    fn poll_head(&mut self, cx: &mut Context<'_>, incoming: &mut IncomingText) -> Poll<io::Result<()>>;

    /// Ends it, so that nobody takes what went for a whole message.
    fn reset(&mut self);
}

/// A stream with what has been read and written of it.
pub(crate) struct StreamText<E> {
    end: E,
    incoming: IncomingText,
    outgoing: OutgoingText,
}

impl<E> fmt::Debug for StreamText<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamText").field("incoming", &self.incoming).finish_non_exhaustive()
    }
}

impl<E: StreamEnd> StreamText<E> {
    pub(super) fn new(end: E, incoming: IncomingText) -> Self {
        Self { end, incoming, outgoing: OutgoingText::new() }
    }

    /// This end of the stream.
    pub(crate) fn end(&self) -> &E {
        &self.end
    }

    /// Whether the message that goes is out, and more of the one that comes is to come.
    pub(super) fn awaits_rest(&self) -> bool {
        self.outgoing.is_over() && self.incoming.is_unfinished()
    }

    pub(super) fn reset(&mut self) {
        if self.outgoing.is_over() {
            return;
        }
        match self.outgoing.body() {
            Some(body) => body.send_reset(Reason::INTERNAL_ERROR),
            None => self.end.reset(),
        }
    }
}

impl<E: StreamEnd + Unpin> AsyncRead for StreamText<E> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.incoming.lacks_head() {
            ready!(this.end.poll_head(cx, &mut this.incoming))?;
        }
        this.incoming.poll_read(cx, room)
    }
}

impl<E: StreamEnd + Unpin> AsyncWrite for StreamText<E> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.outgoing.poll_write(cx, bytes, &mut this.end)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The task of the connection sends what there is.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().outgoing.shutdown())
    }
}

impl<E: StreamEnd + Unpin> OutputHalf for StreamText<E> {
    fn takes_shared(&self) -> bool {
        true
    }

    fn poll_write_shared(&mut self, cx: &mut Context<'_>, bytes: &Bytes) -> Poll<io::Result<usize>> {
        self.outgoing.poll_write_shared(cx, bytes, &mut self.end)
    }
}

impl<E: StreamEnd + Unpin> Input for StreamText<E> {
    fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_broken(cx).map(drop)
    }

    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let reset = match self.outgoing.body() {
            Some(body) => body.poll_reset(cx),
            None => self.end.poll_reset(cx),
        };
        reset.map(|_| Err(io::ErrorKind::ConnectionReset.into()))
    }
}
