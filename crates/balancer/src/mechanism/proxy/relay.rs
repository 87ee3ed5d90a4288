//! Relays a response to the client: the rewritten head and the body, framed for the client.

use std::io;
use std::task::Poll;
use std::time::Duration;

use plimsoll_config::{Config, ContentCoding, Limits};
use tokio::io::{AsyncRead, AsyncWrite};

use super::coded_content::CodedContent;
use super::compress::Compressor;
use super::request_rest::RequestRest;
use super::upload::Upload;
use crate::http::chunked::{BadChunk, Decoder, chunk_line};
use crate::http::coding::coded_trailers;
use crate::http::response::{BadResponse, ResponseHead};
use crate::http::{Framing, HttpVersion};
use crate::net::buffer::Buffer;
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::Input;
use crate::net::pace::Pace;
use crate::net::write::poll_write_all;
use crate::passed_content::PassedContent;
use crate::stalling::Stalling;

/// A body up to this size goes out in one piece with its head: copying it costs less than a second piece.
const COPIED_BYTES: usize = 2048;

/// Why the client did not get the whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayFailed {
    /// The client has gone, or the front-end stops.
    ClientGone,
    /// The client takes nothing of it, or sends nothing of what is left of its request.
    ClientTimeout,
    /// The back-end's body was cut off, too long or badly framed, or took too long.
    Broken {
        /// Whether it is the back-end's fault: perhaps not while the client was waited for, to send the rest of the request.
        by_backend: bool,
    },
}

impl From<NotTaken> for RelayFailed {
    fn from(not_taken: NotTaken) -> Self {
        Self::Broken { by_backend: matches!(not_taken, NotTaken::Malformed(_)) }
    }
}

/// Why what has come does not go on.
enum NotTaken {
    /// It is no body.
    Malformed(BadChunk),
    /// There is no memory to compress it.
    NoMemory,
}

impl From<BadChunk> for NotTaken {
    fn from(bad: BadChunk) -> Self {
        Self::Malformed(bad)
    }
}

impl From<NotTaken> for BadResponse {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::Malformed(bad) => Self::Wrong(bad.0),
            NotTaken::NoMemory => Self::OverLimit("there is no memory to compress it"),
        }
    }
}

enum Body {
    /// Bytes still to come.
    Length(u64),
    Chunked(Decoder),
    UntilClose,
    /// All has been read.
    Read,
}

/// Waiting for a client to take a piece.
struct ClientWait<'a> {
    deadline: &'a Deadline,
    /// Without this piece.
    pace: Pace,
    began_ms: u64,
    /// The time-out of one step.
    most: Duration,
    /// Content that the client has taken before, in bytes.
    moved_bytes: u64,
}

impl ClientWait<'_> {
    /// Sets the deadline, after `written` bytes of the piece.
    fn set(&self, stalling: &Stalling<'_>, written: usize) {
        let waited_ms = self.deadline.now_ms().saturating_sub(self.began_ms);
        let most = self.pace.after(waited_ms).next(self.most, self.moved_bytes + written as u64);
        self.deadline.set(stalling.next(most, waited_ms));
    }
}

/// One response on its way to a client.
pub(crate) struct Relay<'a> {
    body: Body,
    /// Whether the body goes out chunked.
    chunked_out: bool,
    response: &'a mut Buffer,
    /// What goes out before the content in `response`: the head, or the line before a chunk.
    out: &'a mut Vec<u8>,
    /// Content at the front of `response`.
    content: usize,
    /// How many bytes of `response` it takes up.
    consumed: usize,
    /// What goes out after the content.
    tail: Vec<u8>,
    content_bytes: u64,
    clean: bool,
    trailers_out: bool,
    /// Where the content is compressed: by this, into chunks in `out`.
    coded: Option<CodedContent>,
    coding: Option<ContentCoding>,
}

impl<'a> Relay<'a> {
    /// For the response whose rewritten head is in `out`; `response` holds what of the body has been read already.
    /// A response that is seen to be badly framed before anything has gone out is not begun.
    pub(crate) fn new(
        head: ResponseHead,
        client: HttpVersion,
        response: &'a mut Buffer,
        out: &'a mut Vec<u8>,
        limits: &Limits,
        compressor: Option<Compressor>,
    ) -> Result<Self, BadResponse> {
        let body = match head.framing {
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunked(Decoder::new(limits.head_bytes, limits.fields)),
            Framing::UntilClose => Body::UntilClose,
            Framing::None => Body::Read,
        };
        let mut relay = Self {
            body,
            chunked_out: head.chunked_out,
            response,
            out,
            content: 0,
            consumed: 0,
            tail: Vec::new(),
            content_bytes: 0,
            clean: true,
            trailers_out: client != HttpVersion::Http10,
            coded: compressor.map(CodedContent::by),
            coding: head.coding,
        };
        if matches!(relay.body, Body::Read) {
            // What follows a response without a body was not asked for; the client need not know.
            relay.clean = relay.response.is_empty();
        } else {
            relay.take()?;
        }
        Ok(relay)
    }

    /// What has been passed on so far.
    pub(crate) fn passed(&self) -> PassedContent {
        let plain = PassedContent::plain(self.content_bytes);
        self.coded.as_ref().map_or(plain, |coded| PassedContent {
            original_bytes: coded.original_bytes,
            coding: self.coding,
            ..plain
        })
    }

    /// Whether nothing was left over on the back-end's connection.
    pub(crate) fn ended_cleanly(&self) -> bool {
        self.clean && matches!(self.body, Body::Read)
    }

    /// Writes and reads until the response is out. What is left of the request goes on at the same time.
    pub(crate) async fn run<I, O, R, W>(
        &mut self,
        upload: &mut Upload<'_, I, O>,
        from: &mut R,
        client: &mut W,
        deadline: &Deadline,
        config: &Config,
        stalling: &mut Stalling<'_>,
    ) -> Result<(), RelayFailed>
    where
        I: Input,
        O: AsyncWrite + Unpin,
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut pace = Pace::default();
        let open = !upload.is_done();
        let mut rest = RequestRest { upload, open, spoilt: false, deadline, step: config.timeouts.body };
        loop {
            self.join_small();
            let began_ms = deadline.now_ms();
            let wait = ClientWait {
                deadline,
                pace,
                began_ms,
                most: config.timeouts.body,
                moved_bytes: self.content_bytes,
            };
            self.write_out(client, &wait, stalling, &mut rest).await?;
            pace = pace.after(deadline.now_ms().saturating_sub(began_ms));
            self.wrote();
            if matches!(self.body, Body::Read) {
                return Ok(());
            }
            deadline.set(config.timeouts.body);
            while self.content == 0 && self.tail.is_empty() && self.out.is_empty() {
                let read = deadline.guard(|cx| {
                    if rest.poll(cx) || rest.upload.client().poll_cancelled(cx).is_ready() {
                        return Poll::Ready(None);
                    }
                    self.response.poll_fill(cx, from).map(Some)
                });
                match read.await {
                    Ok(Some(Ok(0))) if matches!(self.body, Body::UntilClose) => self.end_here()?,
                    Ok(Some(Ok(n))) if n > 0 => self.take()?,
                    Ok(None) => return Err(RelayFailed::ClientGone),
                    Err(Fired::TimedOut) if rest.is_awaited() => return Err(RelayFailed::ClientTimeout),
                    Err(_) if rest.is_awaited() => return Err(RelayFailed::ClientGone),
                    // A back-end may end its connection because the client sends nothing.
                    _ => return Err(RelayFailed::Broken { by_backend: !rest.is_awaited() }),
                }
                deadline.set(config.timeouts.body);
                if matches!(self.body, Body::Read) {
                    break;
                }
            }
        }
    }

    /// Writes what is there. A client that takes it slowly is no load of the back-end, nor is one that is the last to be
    /// waited for.
    async fn write_out<I, O, W>(
        &self,
        client: &mut W,
        wait: &ClientWait<'_>,
        stalling: &mut Stalling<'_>,
        rest: &mut RequestRest<'_, '_, I, O>,
    ) -> Result<(), RelayFailed>
    where
        I: Input,
        O: AsyncWrite + Unpin,
        W: AsyncWrite + Unpin,
    {
        let all_read = matches!(self.body, Body::Read);
        let pieces: [&[u8]; 3] = [self.out, &self.response.data()[..self.content], &self.tail];
        let mut written = 0;
        wait.set(stalling, written);
        loop {
            let write = wait.deadline.guard(|cx| {
                if rest.poll(cx) {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                let before = written;
                let result = poll_write_all(cx, client, &pieces, &mut written);
                let begins = all_read && !stalling.is_stalled();
                if result.is_pending() && (begins || written != before) {
                    if begins {
                        stalling.stall();
                    }
                    wait.set(stalling, written);
                }
                result
            });
            match write.await {
                Ok(Ok(())) => return Ok(()),
                Err(Fired::TimedOut) if !stalling.is_stalled() => stalling.stall(),
                Err(Fired::TimedOut) => return Err(RelayFailed::ClientTimeout),
                _ => return Err(RelayFailed::ClientGone),
            }
            wait.set(stalling, written);
        }
    }

    /// Takes what has been read for content, as far as it is. More than belongs to the body is an error, found before
    /// the last piece goes out: the client sees a response that was cut.
    fn take(&mut self) -> Result<(), NotTaken> {
        let there = self.response.len();
        match &mut self.body {
            Body::Length(left) => {
                if there as u64 > *left {
                    return Err(BadChunk("a body longer than its Content-Length").into());
                }
                *left -= there as u64;
                (self.content, self.consumed) = (there, there);
                if *left == 0 {
                    self.body = Body::Read;
                }
            }
            Body::UntilClose => (self.content, self.consumed) = (there, there),
            Body::Chunked(decoder) => {
                let step = decoder.decode(self.response.data_mut())?;
                (self.content, self.consumed) = (step.content, step.consumed);
                if step.done {
                    if step.consumed < there {
                        return Err(BadChunk("bytes after the last chunk").into());
                    }
                    let trailers = decoder.trailers()?;
                    self.body = Body::Read;
                    return self.frame(Some(&trailers));
                }
                if step.content == 0 {
                    self.response.consume(step.consumed);
                    (self.content, self.consumed) = (0, 0);
                }
            }
            Body::Read => {}
        }
        self.frame(None)
    }

    /// The back-end's connection has ended, and the body with it.
    fn end_here(&mut self) -> Result<(), NotTaken> {
        self.body = Body::Read;
        self.clean = false;
        self.frame(Some(&[]))
    }

    /// Puts the chunk's frame around the content, and the end of the body behind it when `trailers` are given.
    fn frame(&mut self, trailers: Option<&[u8]>) -> Result<(), NotTaken> {
        if !self.chunked_out {
            return Ok(());
        }
        let trailers = if self.coded.is_some() { self.code(trailers)? } else { trailers };
        if self.content > 0 {
            chunk_line(self.content, self.out);
            self.tail.extend_from_slice(b"\r\n");
        }
        if let Some(trailers) = trailers {
            self.tail.extend_from_slice(b"0\r\n");
            if self.trailers_out {
                let held = self.coded.as_ref().map(|_| coded_trailers(trailers));
                self.tail.extend_from_slice(held.as_deref().unwrap_or(trailers));
            }
            self.tail.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// Puts the content into `out`, compressed, as a chunk. Returns the trailers: none of them at an end that has none.
    fn code<'t>(&mut self, trailers: Option<&'t [u8]>) -> Result<Option<&'t [u8]>, NotTaken> {
        let ends = matches!(self.body, Body::Read);
        if let Some(coded) = self.coded.as_mut().filter(|_| ends || self.content > 0) {
            let content = &self.response.data()[..self.content];
            coded.code(content, ends, self.out).map_err(|_| NotTaken::NoMemory)?;
            self.response.consume(self.consumed);
            (self.content, self.consumed) = (0, 0);
        }
        Ok(trailers.or(ends.then_some(&[])))
    }

    /// Makes one piece of what is small.
    fn join_small(&mut self) {
        if self.content + self.tail.len() > 0 && self.content + self.tail.len() <= COPIED_BYTES {
            self.out.extend_from_slice(&self.response.data()[..self.content]);
            self.out.extend_from_slice(&self.tail);
            self.response.consume(self.consumed);
            self.content_bytes += self.content as u64;
            (self.content, self.consumed) = (0, 0);
            self.tail.clear();
        }
    }

    fn wrote(&mut self) {
        self.response.consume(self.consumed);
        self.content_bytes += self.content as u64;
        (self.content, self.consumed) = (0, 0);
        if let Some(coded) = &mut self.coded {
            self.content_bytes += std::mem::take(&mut coded.out_bytes) as u64;
        }
        self.out.clear();
        self.tail.clear();
    }
}
