//! Reads on from a back-end while a client is slow: the back-end is through with its response sooner, and free for others.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use crate::net::buffer::Buffer;
use crate::net::held_memory::{HeldShare, most_for_one};
use crate::worker::Worker;

/// What comes from a back-end, and has come already.
pub(super) struct ReadAhead<'a, R> {
    from: R,
    worker: &'a Worker,
    /// How much may be held, for all requests.
    most_bytes: usize,
    /// What has been read ahead; none of them is empty.
    pieces: VecDeque<Buffer>,
    /// The memory of the pieces, once there was one.
    share: Option<HeldShare>,
    /// How the back-end's side has ended, until that was told.
    end: Option<io::Result<()>>,
    /// The worker's time when the last of what was read came, where that was ahead.
    read_ms: Option<u64>,
}

/// A connection whose back-end has been through for longer than this is not used again: the back-end may be closing it.
const FRESH_MS: u64 = 100;

impl<'a, R> ReadAhead<'a, R> {
    pub(super) fn new(from: R, worker: &'a Worker, most_bytes: usize) -> Self {
        Self { from, worker, most_bytes, pieces: VecDeque::new(), share: None, end: None, read_ms: None }
    }

    /// Whether all that was read ahead has been used up.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether the back-end has been through for a while, or ended the connection.
    pub(super) fn is_stale(&self) -> bool {
        let now_ms = self.worker.deadlines.now_ms();
        self.end.is_some() || self.read_ms.is_some_and(|ms| now_ms.saturating_sub(ms) > FRESH_MS)
    }

    /// A further piece, if there may be one.
    fn add_piece(&mut self, most_bytes: usize) -> bool {
        let share = self.share.get_or_insert_with(|| self.worker.shared.held.share());
        let piece = self.worker.ahead_buffer();
        let grows = share.grow(piece.room(), most_bytes);
        if grows {
            self.pieces.push_back(piece);
        }
        grows
    }

    /// Gives the memory of pieces back in which nothing is.
    fn remove_empty(&mut self) {
        let Some(share) = &mut self.share else { return };
        self.pieces.retain(|piece| {
            if piece.is_empty() {
                share.shrink(piece.room());
            }
            !piece.is_empty()
        });
    }
}

impl<R: AsyncRead + Unpin> ReadAhead<'_, R> {
    /// Reads what has come, of a body of which so many bytes were not read yet, or nobody knows how many; whether all of it has come. One
    /// of which more is left than may be held is not read ahead: its back-end would wait all the same.
    pub(super) fn poll_ahead(&mut self, cx: &mut Context<'_>, left_bytes: Option<u64>) -> bool {
        // Those that may be endless leave room to the others.
        let most_bytes = if left_bytes.is_some() { self.most_bytes } else { self.most_bytes / 2 };
        if left_bytes.is_some_and(|left_bytes| left_bytes > most_for_one(self.most_bytes) as u64) {
            return false;
        }
        let there: usize = self.pieces.iter().map(Buffer::len).sum();
        let mut missing_bytes = left_bytes.map(|left_bytes| left_bytes.saturating_sub(there as u64));
        while missing_bytes != Some(0) && self.end.is_none() {
            let has_room = self.pieces.back().is_some_and(|piece| piece.len() < piece.room());
            if !has_room && !self.add_piece(most_bytes) {
                break;
            }
            let Some(piece) = self.pieces.back_mut() else { break };
            match piece.poll_fill(cx, &mut self.from) {
                Poll::Ready(Ok(read @ 1..)) => {
                    self.read_ms = Some(self.worker.deadlines.now_ms());
                    missing_bytes =
                        missing_bytes.map(|missing_bytes| missing_bytes.saturating_sub(read as u64));
                }
                Poll::Ready(end) => self.end = Some(end.map(drop)),
                Poll::Pending => break,
            }
        }
        self.remove_empty();
        missing_bytes == Some(0) || self.end.is_some()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ReadAhead<'_, R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(piece) = this.pieces.front_mut() else {
            return match this.end.take() {
                Some(end) => Poll::Ready(end),
                None => {
                    this.read_ms = None;
                    Pin::new(&mut this.from).poll_read(cx, room)
                }
            };
        };
        let bytes = piece.len().min(room.remaining());
        room.put_slice(&piece.data()[..bytes]);
        piece.consume(bytes);
        if piece.is_empty() {
            this.remove_empty();
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::shared::FrontEndShared;

    const PIECE: usize = 64 << 10;

    /// What a back-end sends, in turn; then nothing.
    struct Sends(VecDeque<io::Result<Vec<u8>>>);

    impl AsyncRead for Sends {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let sends = &mut self.get_mut().0;
            match sends.pop_front() {
                Some(Ok(mut bytes)) => {
                    let rest = bytes.split_off(room.remaining().min(bytes.len()));
                    room.put_slice(&bytes);
                    if !rest.is_empty() {
                        sends.push_front(Ok(rest));
                    }
                    Poll::Ready(Ok(()))
                }
                Some(Err(error)) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            }
        }
    }

    fn read(ahead: &mut ReadAhead<'_, Sends>) -> Poll<Result<Vec<u8>, io::ErrorKind>> {
        let mut bytes = vec![0; 100_000];
        let mut reading = std::pin::pin!(ahead.read(&mut bytes));
        let polled = reading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        polled.map(|read| read.map(|n| bytes[..n].to_vec()).map_err(|error| error.kind()))
    }

    #[test]
    fn what_was_read_ahead_comes_first_and_then_how_it_ended() {
        let worker = Worker::new(FrontEndShared::before_three(""), 0);
        let held = &worker.shared.held;
        let mut cx = Context::from_waker(Waker::noop());
        for (end, told) in [
            (Ok(Vec::new()), Ok(Vec::new())),
            (Err(io::ErrorKind::ConnectionReset.into()), Err(io::ErrorKind::ConnectionReset)),
        ] {
            let sends = [Ok(b"abc".to_vec()), Ok(vec![b'x'; PIECE]), end];
            let mut ahead = ReadAhead::new(Sends(sends.into()), &worker, 1 << 30);
            assert!(ahead.poll_ahead(&mut cx, Some(0)));
            assert_eq!(held.bytes(), 0);
            assert!(ahead.poll_ahead(&mut cx, None) && ahead.is_stale());
            assert_eq!((held.bytes(), ahead.is_empty()), (2 * PIECE, false));
            let first = [&b"abc"[..], &vec![b'x'; PIECE - 3]].concat();
            assert_eq!(read(&mut ahead), Poll::Ready(Ok(first)));
            assert_eq!((read(&mut ahead), held.bytes()), (Poll::Ready(Ok(b"xxx".to_vec())), 0));
            assert!(ahead.is_empty());
            assert!(ahead.poll_ahead(&mut cx, None));
            assert_eq!((read(&mut ahead), read(&mut ahead)), (Poll::Ready(told), Poll::Pending));
        }
    }

    #[test]
    fn no_more_is_read_ahead_than_may_be_held_and_belongs_to_the_body() {
        let worker = Worker::new(FrontEndShared::before_three(""), 0);
        let sends = || Sends([Ok(vec![b'x'; 10 * PIECE])].into());
        let mut cx = Context::from_waker(Waker::noop());
        let three = 32 * 3 * PIECE;
        let mut ahead = ReadAhead::new(sends(), &worker, 2 * three);
        assert!(!ahead.poll_ahead(&mut cx, None));
        assert_eq!(worker.shared.held.bytes(), 3 * PIECE);
        // One that is used up in part has room again.
        let mut bytes = [0; 100];
        let mut room = ReadBuf::new(&mut bytes);
        assert!(Pin::new(&mut ahead).poll_read(&mut cx, &mut room).is_ready());
        assert!(!ahead.poll_ahead(&mut cx, None));
        assert_eq!((worker.shared.held.bytes(), room.filled().len()), (3 * PIECE, 100));
        let mut other = ReadAhead::new(sends(), &worker, three);
        assert!(!other.poll_ahead(&mut cx, Some(3 * PIECE as u64 + 1)));
        assert_eq!(worker.shared.held.bytes(), 3 * PIECE);
        assert!(other.poll_ahead(&mut cx, Some(PIECE as u64 + 1)));
        assert!(other.poll_ahead(&mut cx, Some(PIECE as u64 + 1)) && !other.is_stale());
        assert_eq!(worker.shared.held.bytes(), 5 * PIECE);
        drop((ahead, other));
        assert_eq!(worker.shared.held.bytes(), 0);
    }
}
