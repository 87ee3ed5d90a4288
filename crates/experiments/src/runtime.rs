//! Runs a measurement to its end.

use std::future::Future;
use std::io;
use std::time::Duration;

use crate::ExperimentError;

/// Runs `work` to its end on two threads, or until the process gets SIGINT or SIGTERM: then all of it ends at once.
///
/// # Errors
/// Those of `work`; also when the process is asked to end, or threads or signal handlers cannot be created.
pub fn block_on<T, E: From<ExperimentError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let failed = |what: &str, e: &io::Error| ExperimentError::Failed(format!("cannot {what}: {e}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| failed("start the threads", &e))?;
    let result = runtime.block_on(async {
        let kind = tokio::signal::unix::SignalKind::terminate();
        let mut terminate = tokio::signal::unix::signal(kind).map_err(|e| failed("wait for signals", &e))?;
        tokio::select! {
            result = work => result,
            _ = tokio::signal::ctrl_c() => Err(ExperimentError::Failed("interrupted".into()).into()),
            _ = terminate.recv() => Err(ExperimentError::Failed("asked to end".into()).into()),
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}
