//! Relays a response to the client: the rewritten head and the body, framed for the client.

use std::io;
use std::ops::Range;
use std::task::Poll;

use bytes::Bytes;
use plimsoll_config::{Config, ContentCoding, FieldEdit, Limits};
use tokio::io::{AsyncRead, AsyncWrite};

use super::client_wait::ClientWait;
use super::coded_content::CodedContent;
use super::compress::Compressor;
use super::read_ahead::ReadAhead;
use super::relay_failed::{NotTaken, RelayFailed};
use super::request_rest::RequestRest;
use super::upload::Upload;
use crate::backend::Backend;
use crate::http::chunked::{Decoder, chunk_line};
use crate::http::coding::coded_trailers;
use crate::http::response::{BadResponse, ResponseHead};
use crate::http::{Framing, HttpVersion};
use crate::net::buffer::Buffer;
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::{Input, OutputHalf};
use crate::net::pace::Pace;
use crate::net::write::{poll_write_all, poll_write_around};
use crate::passed_content::PassedContent;
use crate::stalling::Stalling;

/// A body up to this size goes out in one piece with its head: copying it costs less than a second piece.
const COPIED_BYTES: usize = 2048;

enum Body {
    /// Bytes still to come.
    Length(u64),
    Chunked(Decoder),
    UntilClose,
    /// All has been read.
    Read,
}

/// One response on its way to a client.
pub(crate) struct Relay<'a> {
    body: Body,
    /// Whether the body goes out chunked.
    chunked_out: bool,
    response: &'a mut Buffer,
    /// What goes out before the content in `response`: the head, or the line before a chunk.
    out: &'a mut Vec<u8>,
    /// Where there is content in `out`.
    content_in_out: Range<usize>,
    /// Content at the front of `response`.
    content: usize,
    /// How many bytes of `response` it takes up.
    consumed: usize,
    /// The content, where it was given away from `response`.
    shared: Option<Bytes>,
    /// What goes out after the content.
    tail: Vec<u8>,
    /// What the client got of the content.
    content_bytes: u64,
    /// As the back-end gave that, where it is compressed.
    original_bytes: u64,
    clean: bool,
    excess: bool,
    keep_backend: bool,
    /// What a route changes in the response's fields, trailers included.
    edits: &'a [FieldEdit],
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
        (limits, edits): (&Limits, &'a [FieldEdit]),
        compressor: Option<Compressor>,
    ) -> Result<Self, BadResponse> {
        let body = match head.framing {
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunked(Decoder::of_response(limits.head_bytes, limits.fields)),
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
            shared: None,
            tail: Vec::new(),
            content_in_out: 0..0,
            content_bytes: 0,
            original_bytes: 0,
            clean: true,
            excess: false,
            keep_backend: head.keep_backend,
            edits,
            trailers_out: client != HttpVersion::Http10,
            // A response without a body is not compressed, whatever its head says of one.
            coding: head.coding.filter(|_| compressor.is_some()),
            coded: compressor.map(CodedContent::by),
        };
        if matches!(relay.body, Body::Read) {
            // What follows a response without a body was not asked for; the client need not know.
            relay.excess = !relay.response.is_empty();
        } else {
            relay.take()?;
        }
        Ok(relay)
    }

    /// What has been passed on so far.
    pub(crate) fn passed(&self) -> PassedContent {
        let original_bytes = if self.coded.is_some() { self.original_bytes } else { self.content_bytes };
        PassedContent {
            client_bytes: self.content_bytes,
            original_bytes,
            coding: self.coding,
            first_byte: None,
        }
    }

    /// Tells the back-end if bytes came that belong to no response, on a connection that could have been used again.
    pub(crate) fn note_excess(&self, from: &Backend) {
        if self.excess && self.keep_backend {
            from.sent_excess();
        }
    }

    /// Whether nothing was left over on the back-end's connection.
    pub(crate) fn ended_cleanly(&self) -> bool {
        self.clean && !self.excess && matches!(self.body, Body::Read)
    }

    /// Writes and reads until the response is out. What is left of the request goes on at the same time.
    pub(crate) async fn run<I, O, R, W>(
        &mut self,
        upload: &mut Upload<'_, I, O>,
        from: &mut ReadAhead<'_, R>,
        client: &mut W,
        deadline: &Deadline,
        config: &Config,
        stalling: &mut Stalling<'_>,
    ) -> Result<(), RelayFailed>
    where
        I: Input,
        O: AsyncWrite + Unpin,
        R: AsyncRead + Unpin,
        W: OutputHalf,
    {
        let mut pace = Pace::default();
        let open = !upload.is_done();
        let mut rest = RequestRest { upload, open, spoilt: false, deadline, step: config.timeouts.body };
        loop {
            self.join_small();
            self.share(client);
            let began_ms = deadline.now_ms();
            let wait = ClientWait {
                deadline,
                pace,
                began_ms,
                most: config.timeouts.body,
                moved_bytes: self.content_bytes,
            };
            let mut written = 0;
            let result = self.write_out((client, from), &wait, stalling, &mut rest, &mut written).await;
            if let Err(failed) = result {
                self.count_written(written);
                return Err(failed);
            }
            pace = pace.after(deadline.now_ms().saturating_sub(began_ms));
            self.wrote();
            if matches!(self.body, Body::Read) {
                self.excess |= !from.is_empty();
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
                    Err(Fired::Stopped) => return Err(RelayFailed::Stopped),
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

    /// Writes what is there, and counts in `written` what has gone out. A client that takes it slowly is no load of the back-end, nor
    /// is one that is the last to be waited for: what the back-end has to say is read ahead.
    async fn write_out<I, O, R, W>(
        &self,
        (client, from): (&mut W, &mut ReadAhead<'_, R>),
        wait: &ClientWait<'_>,
        stalling: &mut Stalling<'_>,
        rest: &mut RequestRest<'_, '_, I, O>,
        written: &mut usize,
    ) -> Result<(), RelayFailed>
    where
        I: Input,
        O: AsyncWrite + Unpin,
        R: AsyncRead + Unpin,
        W: OutputHalf,
    {
        let left_bytes = self.left_bytes();
        let content = if self.shared.is_some() { &[] } else { &self.response.data()[..self.content] };
        let pieces: [&[u8]; 3] = [self.out, content, &self.tail];
        wait.set(stalling, *written);
        loop {
            let write = wait.deadline.guard(|cx| {
                if rest.poll(cx) {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                let before = *written;
                let result = match &self.shared {
                    Some(shared) => poll_write_around(cx, client, (self.out, shared, &self.tail), written),
                    None => poll_write_all(cx, client, &pieces, written),
                };
                if result.is_pending() {
                    let is_slow = stalling.is_stalled() || wait.is_long();
                    let all_read = left_bytes == Some(0) || is_slow && from.poll_ahead(cx, left_bytes);
                    let begins = all_read && !stalling.is_stalled();
                    if begins {
                        stalling.stall();
                    }
                    if begins || *written != before {
                        wait.set(stalling, *written);
                    }
                }
                result
            });
            match write.await {
                Ok(Ok(())) => return Ok(()),
                Err(Fired::TimedOut) if !stalling.is_stalled() => stalling.stall(),
                Err(Fired::TimedOut) => return Err(RelayFailed::ClientTimeout),
                Err(Fired::Stopped) => return Err(RelayFailed::Stopped),
                _ => return Err(RelayFailed::ClientGone),
            }
            wait.set(stalling, *written);
        }
    }

    /// How much of the body is still to be read from the back-end, if anybody knows.
    fn left_bytes(&self) -> Option<u64> {
        match self.body {
            Body::Length(left) => Some(left),
            Body::Chunked(_) | Body::UntilClose => None,
            Body::Read => Some(0),
        }
    }

    /// Takes what has been read for content, as far as it is. More than belongs to the body is dropped, and the connection on which
    /// it came is not used again (RFC 9112, section 9.2).
    fn take(&mut self) -> Result<(), NotTaken> {
        let there = self.response.len();
        match &mut self.body {
            Body::Length(left) => {
                let content = there.min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= content as u64;
                self.excess = content < there;
                (self.content, self.consumed) = (content, there);
                if *left == 0 {
                    self.body = Body::Read;
                }
            }
            Body::UntilClose => (self.content, self.consumed) = (there, there),
            Body::Chunked(decoder) => {
                let step = decoder.decode(self.response.data_mut())?;
                (self.content, self.consumed) = (step.content, step.consumed);
                if step.done {
                    self.excess = step.consumed < there;
                    self.consumed = there;
                    let trailers = decoder.trailers(self.edits)?;
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
            self.content_in_out = coded.code(content, ends, self.out).map_err(|_| NotTaken::NoMemory)?;
            self.response.consume(self.consumed);
            (self.content, self.consumed) = (0, 0);
        }
        Ok(trailers.or(ends.then_some(&[])))
    }

    /// Makes one piece of what is small.
    fn join_small(&mut self) {
        if self.content + self.tail.len() > 0 && self.content + self.tail.len() <= COPIED_BYTES {
            if self.content > 0 {
                self.content_in_out = self.out.len()..self.out.len() + self.content;
            }
            self.out.extend_from_slice(&self.response.data()[..self.content]);
            self.out.extend_from_slice(&self.tail);
            self.response.consume(self.consumed);
            (self.content, self.consumed) = (0, 0);
            self.tail.clear();
        }
    }

    /// Gives content to a client that takes it without copying, where nothing that is to be kept stands behind it.
    fn share(&mut self, client: &impl OutputHalf) {
        if self.consumed == self.response.len() && client.takes_shared() {
            self.shared = self.response.share(self.content);
            self.consumed = if self.shared.is_some() { 0 } else { self.consumed };
        }
    }

    /// All that was there has gone out.
    fn wrote(&mut self) {
        self.count_written(usize::MAX);
        self.shared = None;
        self.response.consume(self.consumed);
        (self.content, self.consumed) = (0, 0);
        self.content_in_out = 0..0;
        self.out.clear();
        self.tail.clear();
    }

    /// Counts the content among the first `written` bytes of what was there.
    fn count_written(&mut self, written: usize) {
        let in_out = written.min(self.content_in_out.end).saturating_sub(self.content_in_out.start);
        let behind = written.saturating_sub(self.out.len()).min(self.content);
        self.content_bytes += (in_out + behind) as u64;
        // Of a compressed piece nobody knows how much the client can read: as a document it counts whole.
        if let Some(coded) = self.coded.as_ref().filter(|_| written > self.content_in_out.start) {
            self.original_bytes = coded.original_bytes;
        }
    }
}

#[cfg(test)]
mod tests;
