//! Threads with a runtime of their own.

use std::future::{Future, pending};
use std::io;
use std::thread::JoinHandle;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::config::AgentError;

pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |error| AgentError::System { what, error }
}

/// Starts a thread that does `work` on a runtime of its own, where it may spawn local tasks, and ends with it.
///
/// # Errors
/// When the system provides no thread.
pub(super) fn spawn_with_runtime<F: Future>(
    name: String,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<JoinHandle<()>, AgentError> {
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(system("cannot start a thread"))?;
    let run = move || {
        let local = LocalSet::new();
        local.block_on(&runtime, work());
        // Before the runtime, which its sockets and timers need.
        drop(local);
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name(name).spawn(run);
    thread.map_err(system("cannot start a thread"))
}

/// Waits until it is told to stop. Whoever drops the sender without a word wants it to run on.
pub(super) async fn told_to_stop(stopped: oneshot::Receiver<()>) {
    if stopped.await.is_err() {
        pending::<()>().await;
    }
}
