//! Uploads a request to the back-end: the rewritten head, then the body as it arrives.

use std::io;
use std::task::{Context, Poll, ready};

use plimsoll_config::{FieldEdit, Limits};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::http::chunked::{Decoder, chunk_line};
use crate::http::{Framing, RequestRefusal};
use crate::net::buffer::Buffer;
use crate::net::write::poll_write_all;

/// Bytes of a chunked body that are decoded at once: what has been held of one may be more, and its last content is copied.
const MOST_DECODED_BYTES: usize = 64 << 10;

/// Why a request was not sent to its end.
#[derive(Debug)]
pub(crate) enum UploadFailed {
    /// The client's connection ended in the middle of the body.
    ClientGone,
    /// The body is not what a body has to be.
    Refused(RequestRefusal),
    /// The back-end takes no more.
    Backend,
}

#[derive(Debug)]
enum Body {
    /// Bytes of content still to come from the client.
    Length(u64),
    Chunked(Decoder),
    /// All has been read.
    Read,
}

/// What is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    Head,
    /// Content at the front of the input, and how many bytes of the input it takes up.
    Content {
        content: usize,
        consumed: usize,
    },
    /// What ends a chunked body.
    End,
    Nothing,
    Done,
}

/// One request on its way to a back-end.
pub(crate) struct Upload<'a, R, W> {
    from: R,
    to: W,
    head: &'a [u8],
    input: &'a mut Buffer,
    body: Body,
    chunked: bool,
    writing: Writing,
    written: usize,
    /// The line before a chunk, or what ends the body.
    frame: Vec<u8>,
    /// What is changed in the request's fields, trailers included.
    edits: &'a [FieldEdit],
    /// Content that may still come before it is too much.
    allowed_bytes: u64,
    /// Grows with each step: a body time-out runs from the last one.
    pub(crate) steps: u64,
    /// Whether the client is waited for, and not the back-end.
    pub(crate) waits_for_client: bool,
    /// Content that came from the client, in bytes.
    pub(crate) content_bytes: u64,
}

impl<'a, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Upload<'a, R, W> {
    /// Nothing is sent until the first poll. `input` holds what of the body has been read already.
    pub(crate) fn new(
        (from, to): (R, W),
        head: &'a [u8],
        input: &'a mut Buffer,
        framing: Framing,
        (limits, edits): (&Limits, &'a [FieldEdit]),
    ) -> Self {
        let body = match framing {
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunked(Decoder::new(limits.head_bytes, limits.fields)),
            Framing::None | Framing::UntilClose => Body::Read,
        };
        Self {
            from,
            to,
            head,
            input,
            body,
            chunked: framing == Framing::Chunked,
            writing: Writing::Head,
            written: 0,
            frame: Vec::new(),
            edits,
            allowed_bytes: limits.body_bytes.unwrap_or(u64::MAX),
            steps: 0,
            waits_for_client: false,
            content_bytes: 0,
        }
    }

    /// Whether the whole request has been sent.
    pub(crate) fn is_done(&self) -> bool {
        self.writing == Writing::Done
    }

    /// Both halves, and what has been read and not sent.
    pub(crate) fn into_parts(self) -> (R, W, &'a mut Buffer) {
        (self.from, self.to, self.input)
    }

    /// The client's half that reads, to look whether the client is still there.
    pub(crate) fn client(&mut self) -> &mut R {
        &mut self.from
    }

    /// Goes on as far as both sides allow; ready when done.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UploadFailed>> {
        loop {
            match self.writing {
                Writing::Done => return Poll::Ready(Ok(())),
                Writing::Nothing => {
                    ready!(self.poll_next(cx))?;
                    self.waits_for_client = false;
                }
                Writing::Head | Writing::Content { .. } | Writing::End => {
                    ready!(self.poll_write(cx)).map_err(|_| UploadFailed::Backend)?;
                    self.wrote();
                }
            }
            self.steps += 1;
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let data = self.input.data();
        let pieces: &[&[u8]] = match self.writing {
            Writing::Head => &[self.head],
            Writing::Content { content, .. } if self.chunked => &[&self.frame, &data[..content], b"\r\n"],
            Writing::Content { content, .. } => &[&data[..content]],
            _ => &[&self.frame],
        };
        let before = self.written;
        let result = poll_write_all(cx, &mut self.to, pieces, &mut self.written);
        self.steps += u64::from(self.written != before);
        result
    }

    /// A piece is out: what is next.
    fn wrote(&mut self) {
        self.written = 0;
        if let Writing::Content { consumed, .. } = self.writing {
            self.input.consume(consumed);
        }
        self.writing = match (self.writing, &self.body) {
            (Writing::End, _) => Writing::Done,
            (_, Body::Read) if self.chunked => Writing::End,
            (_, Body::Read) => Writing::Done,
            _ => Writing::Nothing,
        };
    }

    /// Finds the next piece of the body, in what has been read or by reading more.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UploadFailed>> {
        if self.input.is_empty() {
            self.waits_for_client = true;
            let n = ready!(self.input.poll_fill(cx, &mut self.from)).map_err(|_| UploadFailed::ClientGone)?;
            if n == 0 {
                return Poll::Ready(Err(UploadFailed::ClientGone));
            }
        }
        Poll::Ready(self.next_piece().map_err(UploadFailed::Refused))
    }

    fn next_piece(&mut self) -> Result<(), RequestRefusal> {
        let (content, consumed) = match &mut self.body {
            Body::Length(left) => {
                let n = self.input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= n as u64;
                if *left == 0 {
                    self.body = Body::Read;
                }
                (n, n)
            }
            Body::Chunked(decoder) => {
                let come = self.input.data_mut();
                let most = come.len().min(MOST_DECODED_BYTES);
                let step =
                    decoder.decode(&mut come[..most]).map_err(|bad| RequestRefusal::bad_request(bad.0))?;
                self.frame.clear();
                if step.content > 0 {
                    chunk_line(step.content, &mut self.frame);
                }
                if step.done {
                    let trailers =
                        decoder.trailers(self.edits).map_err(|bad| RequestRefusal::bad_request(bad.0))?;
                    self.body = Body::Read;
                    return self.last_piece(step.content, step.consumed, &trailers);
                }
                (step.content, step.consumed)
            }
            Body::Read => (0, 0),
        };
        self.count(content)?;
        if content == 0 {
            self.input.consume(consumed);
        } else {
            self.writing = Writing::Content { content, consumed };
        }
        Ok(())
    }

    /// The last content of a chunked body goes out with the end in one piece: the end is part of what follows it.
    fn last_piece(&mut self, content: usize, consumed: usize, trailers: &[u8]) -> Result<(), RequestRefusal> {
        self.count(content)?;
        let mut end = std::mem::take(&mut self.frame);
        end.extend_from_slice(&self.input.data()[..content]);
        if content > 0 {
            end.extend_from_slice(b"\r\n");
        }
        end.extend_from_slice(b"0\r\n");
        end.extend_from_slice(trailers);
        end.extend_from_slice(b"\r\n");
        self.frame = end;
        self.input.consume(consumed);
        self.writing = Writing::End;
        Ok(())
    }

    fn count(&mut self, content: usize) -> Result<(), RequestRefusal> {
        self.content_bytes += content as u64;
        let left = self.allowed_bytes.checked_sub(content as u64);
        self.allowed_bytes = left.ok_or(RequestRefusal::TOO_LARGE)?;
        Ok(())
    }
}
