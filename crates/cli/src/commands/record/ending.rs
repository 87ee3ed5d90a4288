//! When recording ends, and what it lost until then.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_policy::Nanos;

use crate::commands::origin::StopSignals;
use crate::error::CliError;

/// When recording ends.
pub(super) struct RecordEnd {
    until: Instant,
    stopped: Arc<AtomicBool>,
    came: Cell<Option<Instant>>,
}

impl RecordEnd {
    /// After `duration`, or at a signal.
    pub(super) fn after(duration: Nanos) -> Result<Self, CliError> {
        let failed = |error| CliError::Failed(format!("cannot wait for signals: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let mut signals = {
            let _inside = runtime.enter();
            StopSignals::new()?
        };
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let wait = move || {
            runtime.block_on(signals.next());
            stop.store(true, Ordering::Relaxed);
        };
        std::thread::Builder::new().name("signals".into()).spawn(wait).map_err(failed)?;
        let until = Instant::now() + Duration::from_nanos(duration.as_nanos());
        Ok(Self { until, stopped, came: Cell::new(None) })
    }

    /// Whether it is time.
    pub(super) fn has_come(&self) -> bool {
        let has_come = self.stopped.load(Ordering::Relaxed) || Instant::now() >= self.until;
        if has_come && self.came.get().is_none() {
            self.came.set(Some(Instant::now()));
        }
        has_come
    }

    /// Whether it was time a second ago.
    pub(super) fn is_overdue(&self) -> bool {
        self.came.get().is_some_and(|came| came.elapsed() > Duration::from_secs(1))
    }
}

/// What the way of recording tells beside the requests.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Losses {
    /// Copies of packets that were read.
    pub(super) packets: u64,
    /// Those that were lost, as this process read too slowly.
    pub(super) lost: u64,
    /// Segments of connections beyond the bound.
    pub(super) refused: u64,
    /// Connections on which something was asked; `None` where they are not told apart.
    pub(super) connections: Option<u64>,
}
