//! Time that passes in a test because the scenario says so, not because something is expected to have happened.

use std::fmt;
use std::time::{Duration, Instant};

use crate::wait::PAUSE;

/// Why a test lets time pass. None of these is "until something has happened": for that there is [`eventually`], which
/// waits for it.
///
/// [`eventually`]: crate::eventually
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The test plays a client or a server that is slow, or rests.
    SlowPeer,
    /// Bytes sent in pieces should arrive in pieces. Should they arrive together, the test proves less, but holds.
    Pieces,
    /// What the test does next should fall into the midst of something. Should it come too early or too late, another moment
    /// is tested, at which the same must hold.
    Midst,
    /// Traffic goes on this long between two events.
    UnderLoad,
    /// What is used meanwhile is measured.
    Measuring,
    /// A configured time has to be over, and nothing can be seen of that. More time is as good.
    TimeIsUp,
}

/// Lets this much time pass, or more: a busy machine takes longer. The test must hold however long that is.
pub fn pace(time: Duration, _why: Why) {
    std::thread::sleep(time);
}

/// [`pace`] for tests that run in an asynchronous runtime, whose other tasks go on meanwhile.
pub async fn pace_async(time: Duration, _why: Why) {
    tokio::time::sleep(time).await;
}

/// Looks for this long whether `is_so` stays true: for what must *not* happen. A busy machine looks less often, and can
/// make this prove less, but cannot make it fail.
///
/// # Panics
/// When it does not; `what` says what should have stayed.
pub fn stays(what: impl fmt::Display, time: Duration, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        assert!(is_so(), "{what}: not so any more");
        std::thread::sleep(PAUSE);
    }
    assert!(is_so(), "{what}: not so any more");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_time_passes_as_was_asked_for() {
        let began = Instant::now();
        pace(Duration::from_millis(5), Why::SlowPeer);
        stays("nothing", Duration::from_millis(5), || true);
        assert!(began.elapsed() >= Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn asynchronous_pauses_follow_the_clock_of_the_runtime() {
        let began = tokio::time::Instant::now();
        pace_async(Duration::from_secs(1000), Why::UnderLoad).await;
        assert!(began.elapsed() >= Duration::from_secs(1000));
    }

    #[test]
    #[should_panic(expected = "the second look: not so any more")]
    fn a_change_is_seen() {
        let mut looks = 0;
        stays("the second look", Duration::from_secs(60), || {
            looks += 1;
            looks < 2
        });
    }
}
