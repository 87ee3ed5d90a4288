//! Watches the frames of a client, so that none keeps the front-end busy with frames that ask for nothing.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::resets::ResetWatch;
use crate::net::deadline::Deadlines;

/// Bytes before the first frame (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
/// Bytes of a frame's head (RFC 9113, section 4.1).
const HEAD_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

/// Frames that ask for nothing, of which a client may send so many at once, and so many in a second. For each request, and for each piece of an
/// answer that a back-end gave, it may send some more. So many bytes that were sent to it earn one that opens a window, or a ping by which it
/// measures (as that of gRPC), and nothing else. A client that opens its windows twice for each 256 bytes is within that.
const MOST_IDLE_FRAMES: u64 = 1000;
const IDLE_FRAMES_PER_S: u64 = 50;
const PER_REQUEST: u64 = 4;
const PER_PIECE: u64 = 3;
const EARNING_BYTES: u64 = 128;
/// Streams that it may reset at once, and in a second.
pub(super) const MOST_RESETS: u64 = 1000;
const RESETS_PER_S: u64 = 33;

/// Tokens that are used up, and come back with time.
struct Bucket {
    tokens: u64,
    most: u64,
    per_s: u64,
    since_ms: u64,
}

impl Bucket {
    fn full(most: u64, per_s: u64, now_ms: u64) -> Self {
        Self { tokens: most, most, per_s, since_ms: now_ms }
    }

    fn add(&mut self, tokens: u64) {
        self.tokens = (self.tokens + tokens).min(self.most);
    }

    /// Takes one; false where there is none.
    fn take(&mut self, now_ms: u64) -> bool {
        let earned = now_ms.saturating_sub(self.since_ms) * self.per_s / 1000;
        if earned > 0 {
            self.since_ms = now_ms;
            self.add(earned);
        }
        let left = self.tokens.checked_sub(1);
        self.tokens = left.unwrap_or(0);
        left.is_some()
    }
}

/// Finds the frames in a stream of bytes, and says which one is too much.
struct FrameWatch {
    /// Bytes up to the next frame's head.
    skip: usize,
    head: [u8; HEAD_BYTES],
    have: usize,
    idle_frames: Bucket,
    /// Frames that what was sent has earned.
    earned: u64,
    resets: Bucket,
}

impl FrameWatch {
    fn new(now_ms: u64) -> Self {
        Self {
            skip: PREFACE_BYTES,
            head: [0; HEAD_BYTES],
            have: 0,
            idle_frames: Bucket::full(MOST_IDLE_FRAMES, IDLE_FRAMES_PER_S, now_ms),
            earned: 0,
            resets: Bucket::full(MOST_RESETS, RESETS_PER_S, now_ms),
        }
    }

    /// Looks at bytes that came; false when there is a frame too many.
    fn came(&mut self, mut bytes: &[u8], now_ms: u64) -> bool {
        loop {
            let n = self.skip.min(bytes.len());
            self.skip -= n;
            bytes = &bytes[n..];
            let n = (HEAD_BYTES - self.have).min(bytes.len());
            if n == 0 {
                return true;
            }
            self.head[self.have..self.have + n].copy_from_slice(&bytes[..n]);
            self.have += n;
            bytes = &bytes[n..];
            if self.have == HEAD_BYTES {
                self.have = 0;
                let [a, b, c, kind, ..] = self.head;
                self.skip = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                if !self.frame(kind, self.skip, now_ms) {
                    return false;
                }
            }
        }
    }

    fn frame(&mut self, kind: u8, length: usize, now_ms: u64) -> bool {
        match kind {
            HEADERS => {
                self.idle_frames.add(PER_REQUEST);
                true
            }
            DATA if length > 0 => true,
            RST_STREAM => self.resets.take(now_ms),
            PING | WINDOW_UPDATE if self.earned > 0 => {
                self.earned -= 1;
                true
            }
            _ => self.idle_frames.take(now_ms),
        }
    }

    /// So many bytes were sent in all before the last ones, and so many are now.
    fn sent(&mut self, before: u64, now: u64) {
        let earned = now / EARNING_BYTES - before / EARNING_BYTES;
        self.earned = (self.earned + earned).min(MOST_IDLE_FRAMES);
    }
}

/// Whether all frames in these pieces are taken at once, and how many more that ask for nothing would be.
pub(super) fn watch_pieces<'a>(mut pieces: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
    let mut watch = FrameWatch::new(0);
    pieces.all(|piece| watch.came(piece, 0)).then_some(watch.idle_frames.tokens)
}

/// What a connection and its streams tell one another.
#[derive(Clone, Default)]
pub(super) struct FrameAccount(Rc<Told>);

#[derive(Default)]
struct Told {
    /// Set with a frame too many; nothing is read after that.
    flooded: Cell<bool>,
    /// Pieces of answers that back-ends have given.
    pieces: Cell<u64>,
    /// Answers that have begun.
    answers: Cell<u64>,
    /// Streams that were reset because the client has broken a rule, without those that are known.
    broken: Cell<u32>,
    /// Such that are known and have yet to go.
    known_broken: Cell<u32>,
}

impl FrameAccount {
    /// Whether the client has sent a frame too many.
    pub(super) fn is_flooded(&self) -> bool {
        self.0.flooded.get()
    }

    /// An answer has begun.
    pub(super) fn answered(&self) {
        self.0.answers.set(self.0.answers.get() + 1);
    }

    /// A back-end has given a piece of an answer.
    pub(super) fn piece(&self) {
        self.0.pieces.set(self.0.pieces.get() + 1);
    }

    /// A stream is reset because its client has broken a rule, which has been told already.
    pub(super) fn breaks(&self) {
        self.0.known_broken.set(self.0.known_broken.get() + 1);
    }

    /// How many streams the library has reset for such a reason since the last call.
    pub(super) fn take_broken(&self) -> u32 {
        let (broken, known) = (self.0.broken.take(), self.0.known_broken.get());
        self.0.known_broken.set(known - known.min(broken));
        broken.saturating_sub(known)
    }
}

/// A connection whose frames are watched. What has been read of it before comes first.
pub(super) struct Metered<C> {
    stream: C,
    before: Vec<u8>,
    watch: FrameWatch,
    resets: ResetWatch,
    deadlines: Rc<Deadlines>,
    account: FrameAccount,
    /// Bytes written so far.
    sent_bytes: u64,
}

impl<C> Metered<C> {
    pub(super) fn new(stream: C, before: Vec<u8>, deadlines: Rc<Deadlines>, account: FrameAccount) -> Self {
        let watch = FrameWatch::new(deadlines.now_ms());
        Self { stream, before, watch, resets: ResetWatch::new(), deadlines, account, sent_bytes: 0 }
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Metered<C> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.account.is_flooded() {
            return Poll::Pending;
        }
        let start = room.filled().len();
        if this.before.is_empty() {
            ready!(Pin::new(&mut this.stream).poll_read(cx, room))?;
        } else {
            let n = this.before.len().min(room.remaining());
            room.put_slice(&this.before[..n]);
            this.before.drain(..n);
            this.before.shrink_to_fit();
        }
        this.watch.idle_frames.add(PER_PIECE * this.account.0.pieces.take());
        this.watch.resets.add(this.account.0.answers.take());
        if !this.watch.came(&room.filled()[start..], this.deadlines.now_ms()) {
            this.account.0.flooded.set(true);
            room.set_filled(start);
            // Whoever drives the connection looks at this once it returns.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> Metered<C> {
    fn sent<'a>(
        &mut self,
        written: Poll<io::Result<usize>>,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(n)) = written {
            let mut left = n;
            for piece in pieces {
                let went = &piece[..left.min(piece.len())];
                left -= went.len();
                let broken = self.resets.went(went);
                self.account.0.broken.set(self.account.0.broken.get() + broken);
            }
            let before = self.sent_bytes;
            self.sent_bytes += n as u64;
            self.watch.sent(before, self.sent_bytes);
        }
        written
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Metered<C> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.sent(written, std::iter::once(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, pieces);
        this.sent(written, pieces.iter().map(|piece| &**piece))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![0, 0, length as u8, kind, 0, 0, 0, 0, 1];
        bytes.resize(HEAD_BYTES + length, 0);
        bytes
    }

    /// How many of these frames are taken, given in pieces of this size.
    fn taken(frame: &[u8], count: usize, piece: usize) -> usize {
        let mut watch = FrameWatch::new(0);
        let mut bytes = vec![0; PREFACE_BYTES];
        bytes.extend(frame.repeat(count));
        let mut good = 0usize;
        for piece in bytes.chunks(piece) {
            if !watch.came(piece, 0) {
                return good.saturating_sub(PREFACE_BYTES) / frame.len();
            }
            good += piece.len();
        }
        count
    }

    #[test]
    fn frames_that_ask_for_nothing_are_bounded() {
        for piece in [1, 7, 17] {
            // The piece with the frame too many may begin before it.
            for (kind, length) in [(PING, 8), (RST_STREAM, 4)] {
                let taken = taken(&frame(kind, length), 5000, piece);
                assert!((998..=1000).contains(&taken), "{kind} {piece}: {taken}");
            }
            assert_eq!(taken(&frame(DATA, 100), 5000, piece), 5000);
            assert_eq!(taken(&frame(HEADERS, 100), 5000, piece), 5000);
        }
        assert_eq!(taken(&frame(DATA, 0), 5000, 9), 1000);
    }

    #[test]
    fn time_requests_and_answers_earn_more() {
        let mut watch = FrameWatch::new(0);
        watch.skip = 0;
        let update = frame(WINDOW_UPDATE, 4);
        assert!(watch.came(&update.repeat(1000), 0));
        assert!(!watch.came(&update, 10));
        watch.have = 0;
        watch.skip = 0;
        assert!(watch.came(&update.repeat(50), 1000));
        watch.sent(0, EARNING_BYTES / 2);
        watch.sent(EARNING_BYTES / 2, 2 * EARNING_BYTES);
        assert!(watch.came(&[update.clone(), frame(PING, 8)].concat(), 1000));
        assert!(watch.came(&frame(HEADERS, 9), 1000));
        assert!(watch.came(&update.repeat(4), 1000) && !watch.came(&update, 1000));
    }

    #[test]
    fn what_is_sent_earns_frames_that_answer_it_and_no_others() {
        const SETTINGS: u8 = 4;
        for (kind, length, taken) in [(WINDOW_UPDATE, 4, 2000), (PING, 8, 2000), (SETTINGS, 6, 1000)] {
            let mut watch = FrameWatch::new(0);
            watch.skip = 0;
            watch.sent(0, 5000 * EARNING_BYTES);
            let frame = frame(kind, length);
            assert!(watch.came(&frame.repeat(taken), 0), "{kind}");
            assert!(!watch.came(&frame, 0), "{kind}: what is earned is bounded");
        }
    }
}
