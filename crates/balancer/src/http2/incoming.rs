//! What comes on a stream of HTTP/2, read as HTTP/1.1 writes it.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::RecvStream;
use tokio::io::ReadBuf;

use super::text::{TextFraming, write_trailers};
use crate::http::chunked::chunk_line;

/// Where the reading of a message is.
#[derive(Debug)]
enum Reading {
    /// Its head has not come yet.
    Head,
    Content(RecvStream),
    Trailers(RecvStream),
    Over,
}

/// One message that comes.
#[derive(Debug)]
pub(crate) struct IncomingText {
    reading: Reading,
    is_chunked: bool,
    /// The head, or what goes before and behind content.
    text: Bytes,
    /// Content that has come.
    content: Bytes,
}

impl IncomingText {
    /// Its head is to come.
    pub(super) fn new() -> Self {
        Self { reading: Reading::Head, is_chunked: false, text: Bytes::new(), content: Bytes::new() }
    }

    /// Its head is this text, and its body comes from there.
    pub(super) fn begin(&mut self, text: Vec<u8>, framing: TextFraming, body: RecvStream) {
        self.text = text.into();
        self.is_chunked = framing == TextFraming::Chunked;
        self.reading = match framing {
            TextFraming::None => Reading::Over,
            TextFraming::Plain | TextFraming::Chunked | TextFraming::Tunnel => Reading::Content(body),
        };
    }

    /// Text that goes before the head: an interim response.
    pub(super) fn interim(&mut self, text: Vec<u8>) {
        self.text = text.into();
    }

    /// Whether the head is waited for, and nothing else is left to read.
    pub(super) fn lacks_head(&self) -> bool {
        matches!(self.reading, Reading::Head) && self.text.is_empty()
    }

    /// Whether the peer has not ended its message yet.
    pub(super) fn is_unfinished(&self) -> bool {
        match &self.reading {
            Reading::Content(body) | Reading::Trailers(body) => !body.is_end_stream(),
            Reading::Head | Reading::Over => false,
        }
    }

    /// Reads into `room`; nothing is the end.
    ///
    /// # Errors
    /// When the stream was reset, or its connection is lost.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = room.filled().len();
        loop {
            take(&mut self.text, room);
            if self.text.is_empty() && !self.content.is_empty() {
                self.take_content(room)?;
            }
            if room.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if !self.text.is_empty() {
                continue;
            }
            match self.poll_next(cx) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                // What is there goes first; an error shows again.
                _ if room.filled().len() > before => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn take_content(&mut self, room: &mut ReadBuf<'_>) -> io::Result<()> {
        let taken = take(&mut self.content, room);
        if let Reading::Content(body) = &mut self.reading {
            // The peer may send as much again.
            body.flow_control().release_capacity(taken).map_err(broken)?;
        }
        if self.content.is_empty() && self.is_chunked {
            self.text = Bytes::from_static(b"\r\n");
        }
        Ok(())
    }

    /// Finds more to read; false at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        match &mut self.reading {
            Reading::Head => Poll::Pending,
            Reading::Content(body) => {
                match ready!(body.poll_data(cx)) {
                    Some(data) => {
                        let data = data.map_err(broken)?;
                        if !data.is_empty() && self.is_chunked {
                            let mut line = Vec::with_capacity(8);
                            chunk_line(data.len(), &mut line);
                            self.text = line.into();
                        }
                        self.content = data;
                    }
                    None => {
                        if let Reading::Content(body) = std::mem::replace(&mut self.reading, Reading::Over)
                            && self.is_chunked
                        {
                            self.reading = Reading::Trailers(body);
                        }
                    }
                }
                Poll::Ready(Ok(true))
            }
            Reading::Trailers(body) => {
                let trailers = ready!(body.poll_trailers(cx)).map_err(broken)?;
                let mut text = b"0\r\n".to_vec();
                if let Some(trailers) = trailers {
                    write_trailers(&trailers, &mut text).map_err(io::Error::other)?;
                }
                text.extend_from_slice(b"\r\n");
                self.text = text.into();
                self.reading = Reading::Over;
                Poll::Ready(Ok(true))
            }
            Reading::Over => Poll::Ready(Ok(false)),
        }
    }
}

/// Moves as much as there is room for; how much that is.
fn take(from: &mut Bytes, room: &mut ReadBuf<'_>) -> usize {
    let n = from.len().min(room.remaining());
    room.put_slice(&from[..n]);
    from.advance(n);
    n
}

/// A stream that was reset, or whose connection is lost.
pub(super) fn broken(error: h2::Error) -> io::Error {
    // RFC 9113, sections 6.8 and 8.7: streams that the peer refuses, or that are beyond the last one that it takes, were not processed.
    let refused =
        error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM));
    let kind = if refused { NOT_PROCESSED } else { io::ErrorKind::ConnectionReset };
    io::Error::new(kind, error)
}

/// Whether this is a stream that the peer has reset because of its request: not because it has too many.
pub(crate) fn is_reset_for_request(error: &io::Error) -> bool {
    let of_stream = error.get_ref().and_then(|inner| inner.downcast_ref::<h2::Error>());
    of_stream.is_some_and(|inner| {
        let too_many = [h2::Reason::REFUSED_STREAM, h2::Reason::ENHANCE_YOUR_CALM];
        inner.is_remote() && inner.is_reset() && inner.reason().is_some_and(|why| !too_many.contains(&why))
    })
}

/// The kind of errors of a stream whose request the peer has not processed.
pub(crate) const NOT_PROCESSED: io::ErrorKind = io::ErrorKind::ConnectionRefused;
/// The kind of errors of a stream whose request cannot be said with HTTP/2, or not to this peer.
pub(crate) const UNSAYABLE: io::ErrorKind = io::ErrorKind::Unsupported;
