//! What goes on a stream of HTTP/2, taken from what HTTP/1.1 writes.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};

use super::incoming::broken;
use super::piece::{LEAST_BYTES, PIECE_BYTES, copied};
use super::text::{TextFraming, read_trailers};
use crate::http::head_end::{HeadEnd, HeadScan};

/// The longest head that is taken. Those that the front-end writes are bounded before.
const MOST_HEAD_BYTES: usize = 2 << 20;

/// Who begins a stream with a head.
pub(crate) trait BeginsStream {
    /// Sends this head, whose text is whole; with `None` it was an interim one and another follows.
    ///
    /// # Errors
    /// When HTTP/2 cannot say it, or the stream is over.
    fn begin(&mut self, head: &Bytes) -> io::Result<Option<BegunStream>>;

    /// A chunk has begun: a piece that whoever gave the message has given at once.
    fn began_piece(&mut self) {}

    /// Whether the peer has reset the stream.
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reason, h2::Error>>;
}

/// A message whose head is out.
pub(crate) struct BegunStream {
    /// Where its body goes; `None` where it has none, and the stream has ended with the head.
    pub(super) body: Option<SendStream<Bytes>>,
    pub(super) framing: TextFraming,
    /// Bytes of a body that is written as it is.
    pub(super) length: u64,
}

/// What the bytes that are written lie in.
enum Memory<'a> {
    /// Somebody else's, who uses it again.
    Borrowed,
    /// A copy of a head and of what has come with it, both small.
    Small(&'a Bytes),
    /// Much that is shared. A head is copied out of it, since it may be kept for as long as the connection (HPACK's table).
    Shared(&'a Bytes),
}

impl Memory<'_> {
    fn head(&self, head: &[u8]) -> Bytes {
        match self {
            Self::Small(own) => own.slice_ref(head),
            Self::Borrowed | Self::Shared(_) => Bytes::copy_from_slice(head),
        }
    }

    fn content(&self, content: &[u8]) -> Bytes {
        match self {
            Self::Borrowed => copied(content),
            Self::Small(all) | Self::Shared(all) => all.slice_ref(content),
        }
    }
}

/// Where the writing of a message is.
enum Writing {
    Head,
    /// Bytes left of a body that is written as it is.
    Plain(SendStream<Bytes>, u64),
    /// In the line before a chunk, or in the trailer section.
    Line(SendStream<Bytes>),
    /// Bytes left of a chunk.
    Chunk(SendStream<Bytes>, u64),
    /// The protocol has changed.
    Tunnel(SendStream<Bytes>),
    Over,
}

/// One message that goes.
pub(super) struct OutgoingText {
    writing: Writing,
    /// A head, or a line of a chunked body, as far as it has come.
    line: Vec<u8>,
    scan: HeadScan,
    in_trailers: bool,
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl OutgoingText {
    pub(super) fn new() -> Self {
        Self { writing: Writing::Head, line: Vec::new(), scan: HeadScan::default(), in_trailers: false }
    }

    /// Whether the whole message is out.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.writing, Writing::Over)
    }

    /// The stream of a message whose body is not out yet.
    pub(super) fn body(&mut self) -> Option<&mut SendStream<Bytes>> {
        match &mut self.writing {
            Writing::Plain(body, _) | Writing::Line(body) | Writing::Chunk(body, _) => Some(body),
            Writing::Tunnel(body) => Some(body),
            Writing::Head | Writing::Over => None,
        }
    }

    /// Takes as much of `bytes` as the stream does now; how much that is.
    ///
    /// # Errors
    /// When the stream was reset, its connection is lost, or `bytes` are no message.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        by: &mut impl BeginsStream,
    ) -> Poll<io::Result<usize>> {
        if bytes.len() < LEAST_BYTES && matches!(self.writing, Writing::Head) && self.line.is_empty() {
            let own = Bytes::copy_from_slice(bytes);
            return self.poll_write_of(cx, &own, &Memory::Small(&own), by);
        }
        self.poll_write_of(cx, bytes, &Memory::Borrowed, by)
    }

    /// The same of memory that is shared: content is not copied.
    ///
    /// # Errors
    /// As [`Self::poll_write`].
    pub(super) fn poll_write_shared(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &Bytes,
        by: &mut impl BeginsStream,
    ) -> Poll<io::Result<usize>> {
        self.poll_write_of(cx, bytes, &Memory::Shared(bytes), by)
    }

    fn poll_write_of(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        memory: &Memory<'_>,
        by: &mut impl BeginsStream,
    ) -> Poll<io::Result<usize>> {
        let mut used = 0;
        while used < bytes.len() {
            match self.poll_step(cx, &bytes[used..], memory, by) {
                Poll::Ready(Ok(n)) => used += n,
                // What was taken is told first; an error shows again.
                _ if used > 0 => break,
                other => return other,
            }
        }
        Poll::Ready(Ok(used))
    }

    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        memory: &Memory<'_>,
        by: &mut impl BeginsStream,
    ) -> Poll<io::Result<usize>> {
        match &mut self.writing {
            Writing::Head => Poll::Ready(self.take_head(bytes, memory, by)),
            Writing::Plain(body, left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                let n = ready!(poll_room(cx, body, most))?;
                let ends = n as u64 == *left;
                body.send_data(memory.content(&bytes[..n]), ends).map_err(broken)?;
                *left -= n as u64;
                if ends {
                    self.writing = Writing::Over;
                }
                Poll::Ready(Ok(n))
            }
            Writing::Chunk(body, left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                let n = ready!(poll_room(cx, body, most))?;
                body.send_data(memory.content(&bytes[..n]), false).map_err(broken)?;
                *left -= n as u64;
                if *left == 0 {
                    self.end_chunk();
                }
                Poll::Ready(Ok(n))
            }
            Writing::Tunnel(body) => {
                let n = ready!(poll_room(cx, body, bytes.len()))?;
                body.send_data(memory.content(&bytes[..n]), false).map_err(broken)?;
                Poll::Ready(Ok(n))
            }
            Writing::Line(_) => {
                let taken = self.take_line(bytes);
                if matches!(self.writing, Writing::Chunk(..)) {
                    by.began_piece();
                }
                Poll::Ready(taken)
            }
            // Nothing belongs behind a message.
            Writing::Over => Poll::Ready(Err(invalid())),
        }
    }

    /// Ends what follows a change of protocol; a message ends by itself.
    ///
    /// # Errors
    /// When the stream is over.
    pub(super) fn shutdown(&mut self) -> io::Result<()> {
        if let Writing::Tunnel(body) = &mut self.writing {
            body.send_data(Bytes::new(), true).map_err(broken)?;
            self.writing = Writing::Over;
        }
        Ok(())
    }

    fn take_head(
        &mut self,
        bytes: &[u8],
        memory: &Memory<'_>,
        by: &mut impl BeginsStream,
    ) -> io::Result<usize> {
        let before = self.line.len();
        // Mostly it comes at once, with some of the body behind it, which need not be copied to here.
        let come = if before == 0 {
            bytes
        } else {
            self.line.extend_from_slice(bytes);
            &self.line
        };
        let head = match self.scan.scan(come) {
            HeadEnd::At(length) if before == 0 => memory.head(&come[..length]),
            HeadEnd::At(length) => Bytes::copy_from_slice(&come[..length]),
            HeadEnd::Open if come.len() <= MOST_HEAD_BYTES => {
                if before == 0 {
                    self.line.extend_from_slice(bytes);
                }
                return Ok(bytes.len());
            }
            _ => return Err(invalid()),
        };
        self.line.clear();
        self.scan = HeadScan::default();
        let begun = by.begin(&head)?;
        if let Some(BegunStream { body, framing, length }) = begun {
            self.writing = match (body, framing) {
                (None, _) | (Some(_), TextFraming::None) => Writing::Over,
                (Some(body), TextFraming::Plain) => Writing::Plain(body, length),
                (Some(body), TextFraming::Chunked) => Writing::Line(body),
                (Some(body), TextFraming::Tunnel) => Writing::Tunnel(body),
            };
        }
        Ok(head.len() - before)
    }

    /// A chunk is out: an empty line follows, then another line.
    fn end_chunk(&mut self) {
        self.writing = match std::mem::replace(&mut self.writing, Writing::Over) {
            Writing::Chunk(body, _) => Writing::Line(body),
            other => other,
        };
    }

    /// Takes one line of a chunked body.
    fn take_line(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = memchr::memchr(b'\n', bytes).map(|at| at + 1);
        let n = end.unwrap_or(bytes.len());
        if self.line.len() + n > MOST_HEAD_BYTES {
            return Err(invalid());
        }
        self.line.extend_from_slice(&bytes[..n]);
        if end.is_none() {
            return Ok(n);
        }
        if self.in_trailers {
            self.end_trailer()?;
        } else {
            self.end_line()?;
        }
        Ok(n)
    }

    /// The line before a chunk is whole, or the empty one behind it.
    fn end_line(&mut self) -> io::Result<()> {
        let digits = self.line.strip_suffix(b"\r\n").ok_or_else(invalid)?;
        if !digits.is_empty() {
            let digits = std::str::from_utf8(digits).map_err(|_| invalid())?;
            let size = u64::from_str_radix(digits, 16).map_err(|_| invalid())?;
            self.in_trailers = size == 0;
            if size > 0
                && let Writing::Line(body) = std::mem::replace(&mut self.writing, Writing::Over)
            {
                self.writing = Writing::Chunk(body, size);
            }
        }
        self.line.clear();
        Ok(())
    }

    /// A line of the trailer section is whole: an empty one ends the message.
    fn end_trailer(&mut self) -> io::Result<()> {
        if self.line != b"\r\n" && !self.line.ends_with(b"\r\n\r\n") {
            return Ok(());
        }
        let Writing::Line(mut body) = std::mem::replace(&mut self.writing, Writing::Over) else {
            return Err(invalid());
        };
        let trailers = read_trailers(&std::mem::take(&mut self.line).into()).ok_or_else(invalid)?;
        match trailers.is_empty() {
            true => body.send_data(Bytes::new(), true),
            false => body.send_trailers(trailers),
        }
        .map_err(broken)
    }
}

/// Room of a stream for at least one byte, and at most this many.
fn poll_room(cx: &mut Context<'_>, body: &mut SendStream<Bytes>, most: usize) -> Poll<io::Result<usize>> {
    let most = most.min(PIECE_BYTES);
    body.reserve_capacity(most);
    while body.capacity() == 0 {
        match ready!(body.poll_capacity(cx)) {
            Some(capacity) => capacity.map_err(broken)?,
            None => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        };
    }
    Poll::Ready(Ok(body.capacity().min(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all heads for interim ones, and refuses those of status 500.
    #[derive(Default)]
    struct Heads(Vec<String>);

    impl BeginsStream for Heads {
        fn begin(&mut self, head: &Bytes) -> io::Result<Option<BegunStream>> {
            let head = String::from_utf8(head.to_vec()).unwrap();
            let is_refused = head.contains(" 500 ");
            self.0.push(head);
            if is_refused { Err(invalid()) } else { Ok(None) }
        }

        fn poll_reset(&mut self, _: &mut Context<'_>) -> Poll<Result<Reason, h2::Error>> {
            Poll::Pending
        }
    }

    const INTERIM: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    const REFUSED: &str = "HTTP/1.1 500 Oh\r\nA: b\r\n\r\n";

    /// Writes all of it, as whoever writes in pieces does.
    fn write(out: &mut OutgoingText, mut bytes: &[u8], heads: &mut Heads) -> io::Result<()> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while !bytes.is_empty() {
            let Poll::Ready(taken) = out.poll_write(&mut cx, bytes, heads) else { panic!("it waits") };
            bytes = &bytes[taken?..];
        }
        Ok(())
    }

    #[test]
    fn heads_in_two_pieces_cut_anywhere() {
        let text = [INTERIM, INTERIM, REFUSED].concat();
        for cut in 0..=text.len() {
            let (mut out, mut heads) = (OutgoingText::new(), Heads::default());
            let (first, second) = text.as_bytes().split_at(cut);
            let written =
                write(&mut out, first, &mut heads).and_then(|()| write(&mut out, second, &mut heads));
            assert!(written.is_err(), "{cut}");
            let (known, again) = heads.0.split_at(3);
            assert_eq!(known, [INTERIM, INTERIM, REFUSED], "{cut}");
            assert!(again.iter().all(|head| head == REFUSED), "{cut}: only an error shows again");
        }
    }

    #[test]
    fn a_head_shares_the_memory_of_a_small_message_alone() {
        let all = Bytes::from_static(b"head and content");
        let lies_within = |part: &Bytes| all.as_ptr_range().contains(&part.as_ptr());
        let (small, much) = (Memory::Small(&all), Memory::Shared(&all));
        assert!(lies_within(&small.head(&all[..4])) && lies_within(&small.content(&all[9..])));
        // HPACK's table may keep a head, and with it whatever memory it lies in.
        assert!(!lies_within(&much.head(&all[..4])) && lies_within(&much.content(&all[9..])));
        let own = Memory::Borrowed;
        assert!(!lies_within(&own.head(&all[..4])) && !lies_within(&own.content(&all[9..])));
        assert_eq!(own.head(&all[..4]), "head");
    }
}
