//! Load from the client's node.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_lab::{Lab, LabError, Node};
use plimsoll_testbed::load::{ClosedLoop, LoadSummary, Meter, Req, closed_loop};

use crate::{ExperimentError, Tell};

/// A load on a thread in the client's node, which ends by itself.
pub struct ClientLoad {
    meter: Meter,
    thread: JoinHandle<Result<Option<LoadSummary>, LabError>>,
}

impl ClientLoad {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no thread for it, or the client's node cannot be entered.
    pub fn start<F>(lab: &Lab, load: ClosedLoop<F>) -> Result<Self, ExperimentError>
    where
        F: Fn(u64) -> Req + Send + Sync + 'static,
    {
        let meter = load.meter.clone();
        let enter = lab.node(Node::Client)?.entry()?;
        let (started, result) = mpsc::channel();
        let thread = std::thread::Builder::new().name("load".to_owned()).spawn(move || {
            enter.enter()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // If the receiver is gone, it uses the thread's result instead.
            let _ = started.send(());
            Ok(runtime.ok().map(|runtime| runtime.block_on(closed_loop(load))))
        });
        let thread = thread.map_err(|e| ExperimentError::Failed(format!("cannot start a thread: {e}")))?;
        // If it failed, the end tells why.
        let _ = result.recv();
        Ok(Self { meter, thread })
    }

    /// Waits for this time and reports progress each second.
    pub async fn tell(&self, time: Duration, tell: Tell<'_>) {
        let end = tokio::time::Instant::now() + time;
        let mut told = 0;
        while tokio::time::Instant::now() < end {
            let second = tokio::time::Instant::now() + Duration::from_secs(1);
            tokio::time::sleep_until(second.min(end)).await;
            let done = self.meter.summary().requests;
            if second < end {
                tell(&format!("plimsoll:   {} requests/s", done.saturating_sub(told)));
            }
            told = done;
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it did not run.
    pub fn end(self) -> Result<LoadSummary, ExperimentError> {
        let failed = || ExperimentError::Failed("the load generator did not run".to_owned());
        self.thread.join().map_err(|_| failed())??.ok_or_else(failed)
    }
}
