//! Writing several pieces with one system call where the peer takes them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::halves::OutputHalf;

/// The most pieces of one write.
const MOST_PIECES: usize = 6;

/// Writes `pieces` from the first `*written` bytes on; ready when all is written or nothing more can be.
///
/// # Errors
/// Those of the socket; `WriteZero` when the peer takes nothing more.
pub(crate) fn poll_write_all<W: AsyncWrite + Unpin>(
    cx: &mut Context<'_>,
    to: &mut W,
    pieces: &[&[u8]],
    written: &mut usize,
) -> Poll<io::Result<()>> {
    let total: usize = pieces.iter().map(|p| p.len()).sum();
    while *written < total {
        let mut slices = [IoSlice::new(&[]); MOST_PIECES];
        let mut count = 0;
        let mut skip = *written;
        for piece in pieces {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            slices[count] = IoSlice::new(&piece[skip..]);
            skip = 0;
            count += 1;
        }
        let n = match count {
            1 => ready!(Pin::new(&mut *to).poll_write(cx, &slices[0]))?,
            _ => ready!(Pin::new(&mut *to).poll_write_vectored(cx, &slices[..count]))?,
        };
        if n == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        *written += n;
    }
    // A connection under TLS may still hold some of it.
    Pin::new(to).poll_flush(cx)
}

/// The same of one piece that is shared, and what goes before and behind it.
///
/// # Errors
/// As [`poll_write_all`].
pub(crate) fn poll_write_around<W: OutputHalf>(
    cx: &mut Context<'_>,
    to: &mut W,
    (before, shared, behind): (&[u8], &Bytes, &[u8]),
    written: &mut usize,
) -> Poll<io::Result<()>> {
    if *written < before.len() {
        ready!(poll_write_all(cx, to, &[before], written))?;
    }
    let end = before.len() + shared.len();
    while *written < end {
        let left = shared.slice(*written - before.len()..);
        let n = ready!(to.poll_write_shared(cx, &left))?;
        if n == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        *written += n;
    }
    let mut written_behind = *written - end;
    let polled = poll_write_all(cx, to, &[behind], &mut written_behind);
    *written = end + written_behind;
    polled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes three bytes every other time.
    #[derive(Default)]
    struct Slow {
        taken: Vec<u8>,
        shared_bytes: usize,
        calls: usize,
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.calls += 1;
            if self.calls % 2 == 1 {
                return Poll::Pending;
            }
            let n = bytes.len().min(3);
            self.taken.extend_from_slice(&bytes[..n]);
            Poll::Ready(Ok(n))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl OutputHalf for Slow {
        fn poll_write_shared(&mut self, cx: &mut Context<'_>, bytes: &Bytes) -> Poll<io::Result<usize>> {
            let n = ready!(Pin::new(&mut *self).poll_write(cx, bytes))?;
            self.shared_bytes += n;
            Poll::Ready(Ok(n))
        }
    }

    #[test]
    fn a_shared_piece_goes_between_the_others() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for (before, shared, behind) in
            [("head", "0123456789", "\r\n"), ("", "01", ""), ("h", "", "t"), ("", "0123", "tail")]
        {
            let (mut to, mut written, mut polls) = (Slow::default(), 0, 0);
            let content = Bytes::from_static(shared.as_bytes());
            let parts = (before.as_bytes(), &content, behind.as_bytes());
            while poll_write_around(&mut cx, &mut to, parts, &mut written).is_pending() {
                assert_eq!(written, to.taken.len());
                polls += 1;
                assert!(polls < 100);
            }
            assert_eq!(to.taken, [before, shared, behind].concat().as_bytes());
            assert_eq!((written, to.shared_bytes), (to.taken.len(), shared.len()));
        }
    }
}
