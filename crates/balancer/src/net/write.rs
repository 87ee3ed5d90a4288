//! Writing several pieces with one system call where the peer takes them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

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
