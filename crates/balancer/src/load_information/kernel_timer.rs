//! A timer that is not late by a millisecond, as those of the runtime may be.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// See the module's documentation.
pub(super) struct KernelTimer(AsyncFd<OwnedFd>);

impl KernelTimer {
    /// One of the current runtime, which is not set.
    #[allow(
        deprecated,
        reason = "unsound only for types whose descriptor changes; that of an owned one never does"
    )]
    pub(super) fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self(AsyncFd::new(timer)?))
    }

    /// It goes off once, after this time.
    pub(super) fn set(&self, after: Duration) -> io::Result<()> {
        // Zero would unset it.
        let after = after.max(Duration::from_nanos(1));
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: after.subsec_nanos().into(),
        };
        timerfd_settime(
            self.0.get_ref(),
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: zero, it_value: value },
        )?;
        Ok(())
    }

    /// Returns when it has gone off.
    pub(super) async fn gone_off(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            match rustix::io::read(self.0.get_ref(), &mut [0; 8]) {
                Ok(_) => {
                    // It goes off again only once it is set again.
                    ready.clear_ready();
                    return Ok(());
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
