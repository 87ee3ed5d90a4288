//! What follows a change of protocol (RFC 9110, section 7.8): bytes, in both directions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::net::buffer::Buffer;
use crate::net::deadline::Deadline;
use crate::net::write::poll_write_all;

/// How long one side may go on after the other one has ended.
const AFTER_END: Duration = Duration::from_secs(30);

/// One direction.
struct Direction<'a, R, W> {
    from: R,
    to: W,
    buffer: &'a mut Buffer,
    /// What goes first.
    head: &'a [u8],
    written: usize,
    state: DirectionState,
    moved_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectionState {
    Open,
    /// All has come, and the other side is yet to be told.
    Ending,
    Over,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Direction<'_, R, W> {
    /// Moves on as far as both sides allow; ready when it is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.head.is_empty() || !self.buffer.is_empty() {
                let pieces = [self.head, self.buffer.data()];
                ready!(poll_write_all(cx, &mut self.to, &pieces, &mut self.written))?;
                let n = self.buffer.len();
                self.moved_bytes += n as u64;
                self.buffer.consume(n);
                (self.head, self.written) = (&[], 0);
            }
            match self.state {
                DirectionState::Open => {
                    if ready!(self.buffer.poll_fill(cx, &mut self.from))? == 0 {
                        self.state = DirectionState::Ending;
                    }
                }
                DirectionState::Ending => {
                    ready!(Pin::new(&mut self.to).poll_shutdown(cx))?;
                    self.state = DirectionState::Over;
                }
                DirectionState::Over => return Poll::Ready(Ok(())),
            }
        }
    }

    /// What has gone out behind the head.
    fn passed_bytes(&self) -> u64 {
        self.moved_bytes + self.written.saturating_sub(self.head.len()) as u64
    }

    /// Grows with whatever moves.
    fn progress(&self) -> (u64, usize, DirectionState) {
        (self.moved_bytes, self.written, self.state)
    }
}

/// Both directions.
pub(crate) struct ByteTunnel<'a, CR, BW, BR, CW> {
    up: Direction<'a, CR, BW>,
    down: Direction<'a, BR, CW>,
}

impl<'a, CR, BW, BR, CW> ByteTunnel<'a, CR, BW, BR, CW>
where
    CR: AsyncRead + Unpin,
    BW: AsyncWrite + Unpin,
    BR: AsyncRead + Unpin,
    CW: AsyncWrite + Unpin,
{
    /// From the client to the back-end and from there to the client, with what has been read already; the client gets `head` first.
    pub(crate) fn new(
        (from_client, to_backend, input): (CR, BW, &'a mut Buffer),
        (from_backend, to_client, response, head): (BR, CW, &'a mut Buffer, &'a [u8]),
    ) -> Self {
        let state = DirectionState::Open;
        let up = Direction {
            from: from_client,
            to: to_backend,
            buffer: input,
            head: &[],
            written: 0,
            state,
            moved_bytes: 0,
        };
        let down = Direction {
            from: from_backend,
            to: to_client,
            buffer: response,
            head,
            written: 0,
            state,
            moved_bytes: 0,
        };
        Self { up, down }
    }

    /// Moves bytes until both sides have ended, one breaks, or nothing has moved for `most`. Returns how many bytes the client got.
    pub(crate) async fn run(&mut self, deadline: &Deadline, most: Duration) -> u64 {
        let mut before = None;
        let (up, down) = (&mut self.up, &mut self.down);
        // Whatever the end, there is nobody to tell why.
        let _ = deadline
            .guard(|cx| {
                let ends = [up.poll(cx), down.poll(cx)];
                let now = (up.progress(), down.progress());
                if before.replace(now) != Some(now) {
                    let one_ended = [up.state, down.state].contains(&DirectionState::Over);
                    deadline.set(if one_ended { most.min(AFTER_END) } else { most });
                }
                let broke = ends.iter().any(|end| matches!(end, Poll::Ready(Err(_))));
                if broke || ends.iter().all(Poll::is_ready) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        down.passed_bytes()
    }
}
