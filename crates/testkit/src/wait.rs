//! Waiting until a condition holds.

use std::io;
use std::time::{Duration, Instant};

/// How long a test waits for an event before it fails. A test that passes never waits this long, however busy the machine
/// is: only a failure reaches it. Time-outs of a test's sockets and channels use it too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks at a condition.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

/// Does `call` again as long as it is interrupted: a system call with a time-out may be at any moment, even where the
/// program handles no signal (`signal(7)`).
///
/// # Errors
/// Those of the call.
pub fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Waits until `is_so` returns true.
///
/// # Panics
/// When it is still false after [`PATIENCE`]; `what` then says what was waited for.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until `get` returns a value, and returns that.
///
/// # Panics
/// When there is still none after [`PATIENCE`]; `what` then says what was waited for.
pub fn wait_for<T>(what: &str, mut get: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        // Asked once more behind the last pause, which may have been a long one.
        let is_last = Instant::now() >= end;
        if let Some(value) = get() {
            return value;
        }
        assert!(!is_last, "waited {PATIENCE:?} in vain for {what}");
        std::thread::sleep(PAUSE);
    }
}

/// [`eventually`] for tests that run in an asynchronous runtime, whose other tasks go on meanwhile.
///
/// # Panics
/// As [`eventually`] does.
pub async fn eventually_async(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        let is_last = Instant::now() >= end;
        if is_so().await {
            return;
        }
        assert!(!is_last, "waited {PATIENCE:?} in vain for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_until_the_condition_holds() {
        let mut looks = 0;
        eventually("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
        let mut left = vec!["found"];
        assert_eq!(wait_for("a word", || left.pop()), "found");
    }

    #[tokio::test]
    async fn other_tasks_go_on_meanwhile() {
        let other = tokio::spawn(async {});
        eventually_async("the other task", async || other.is_finished()).await;
    }
}
