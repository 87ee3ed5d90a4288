//! What comes from a back-end, acknowledged at once where it waits for that.
//!
//! A server that writes a response in several small pieces, and has not switched Nagle's algorithm off (RFC 9293, section 3.7.4), sends the
//! second one when the first is acknowledged: on a kept connection 40 ms later, unless this end is told to do so at once. Whoever opens a connection for each request
//! does not see that, as the first data on one are acknowledged at once.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, ReadBuf};

use crate::net::halves::Input;

/// Who waits for so long in the middle of a response may wait for an acknowledgement; the system defers one by 40 ms at least.
const LONG: Duration = Duration::from_millis(30);
/// Who waits so often all the same, with no short wait between, waits for something else.
const BELIEVED: u32 = 8;
/// Behind so much of a response, segments are full, and acknowledged without that.
const SMALL_BYTES: usize = 16 * 1024;

/// One response as it comes from a back-end.
pub(super) struct Acknowledging<'a, I> {
    from: I,
    /// Whether this back-end was seen to wait, on any connection: how often it may still wait all the same.
    waits: &'a AtomicU32,
    bytes: usize,
    /// Something has come since we last waited.
    came: bool,
    waiting_since: Option<Instant>,
    /// Whether it was told then what has come.
    acknowledged: bool,
}

impl<'a, I> Acknowledging<'a, I> {
    pub(super) fn new(from: I, waits: &'a AtomicU32) -> Self {
        Self { from, waits, bytes: 0, came: false, waiting_since: None, acknowledged: false }
    }

    /// It waited so long.
    fn learn(&self, waited: Duration) {
        let believed = self.waits.load(Ordering::Relaxed);
        let now = match (waited >= LONG, self.acknowledged) {
            (true, true) => believed.saturating_sub(1),
            (true, false) => BELIEVED,
            (false, true) if believed > 0 => BELIEVED,
            (false, _) => believed,
        };
        if now != believed {
            self.waits.store(now, Ordering::Relaxed);
        }
    }

    pub(super) fn into_inner(self) -> I {
        self.from
    }
}

impl<I: Input> AsyncRead for Acknowledging<'_, I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = room.filled().len();
        let read = Pin::new(&mut this.from).poll_read(cx, room);
        let bytes = room.filled().len() - before;
        if bytes > 0 {
            this.came = true;
            this.bytes += bytes;
            if let Some(since) = this.waiting_since.take() {
                this.learn(since.elapsed());
            }
        } else if read.is_pending() && std::mem::take(&mut this.came) && this.bytes < SMALL_BYTES {
            this.acknowledged = this.waits.load(Ordering::Relaxed) > 0;
            if this.acknowledged {
                this.from.acknowledge_now();
            }
            this.waiting_since = Some(Instant::now());
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use plimsoll_testkit::{Why, pace};

    use super::*;

    /// Gives what it is told to, once, and counts acknowledgements.
    #[derive(Default)]
    struct Pieces {
        next: Option<usize>,
        acknowledged: usize,
    }

    impl AsyncRead for Pieces {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let Some(bytes) = self.get_mut().next.take() else { return Poll::Pending };
            room.put_slice(&vec![b'x'; bytes]);
            Poll::Ready(Ok(()))
        }
    }

    impl Input for Pieces {
        fn poll_broken(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn acknowledge_now(&mut self) {
            self.acknowledged += 1;
        }
    }

    fn read(from: &mut Acknowledging<'_, Pieces>, next: Option<usize>) {
        let mut bytes = vec![0; 2 * SMALL_BYTES];
        from.from.next = next;
        let read =
            Pin::new(from).poll_read(&mut Context::from_waker(Waker::noop()), &mut ReadBuf::new(&mut bytes));
        assert_eq!(read.is_ready(), next.is_some());
    }

    #[test]
    fn one_that_waited_once_is_told_each_time_that_something_came() {
        let waits = AtomicU32::new(0);
        let mut first = Acknowledging::new(Pieces::default(), &waits);
        read(&mut first, None);
        read(&mut first, Some(1));
        read(&mut first, None);
        assert_eq!(waits.load(Ordering::Relaxed), 0);
        pace(LONG, Why::TimeIsUp);
        read(&mut first, Some(1));
        assert_eq!(waits.load(Ordering::Relaxed), BELIEVED);
        assert_eq!(first.from.acknowledged, 0);
        let mut second = Acknowledging::new(Pieces::default(), &waits);
        for (next, acknowledged) in [
            (None, 0),
            (Some(1), 0),
            (None, 1),
            (None, 1),
            (Some(1), 1),
            (Some(1), 1),
            (None, 2),
            (Some(SMALL_BYTES), 2),
            (None, 2),
        ] {
            read(&mut second, next);
            assert_eq!(second.from.acknowledged, acknowledged);
        }
    }

    #[test]
    fn one_that_waits_all_the_same_waits_for_something_else() {
        let waits = AtomicU32::new(BELIEVED);
        let mut from = Acknowledging::new(Pieces::default(), &waits);
        from.acknowledged = true;
        for left in (1..BELIEVED).rev() {
            from.learn(LONG);
            assert_eq!(waits.load(Ordering::Relaxed), left);
        }
        from.learn(Duration::ZERO);
        assert_eq!(waits.load(Ordering::Relaxed), BELIEVED, "that one did not");
        for _ in 0..=BELIEVED {
            from.learn(LONG);
        }
        from.learn(Duration::ZERO);
        assert_eq!(waits.load(Ordering::Relaxed), 0);
        from.acknowledged = false;
        from.learn(Duration::ZERO);
        assert_eq!(waits.load(Ordering::Relaxed), 0);
        from.learn(LONG);
        assert_eq!(waits.load(Ordering::Relaxed), BELIEVED);
    }

    #[test]
    fn the_wait_for_an_answer_says_nothing() {
        let waits = AtomicU32::new(0);
        let mut from = Acknowledging::new(Pieces::default(), &waits);
        read(&mut from, None);
        pace(LONG, Why::TimeIsUp);
        read(&mut from, Some(1));
        assert_eq!(waits.load(Ordering::Relaxed), 0);
    }
}
