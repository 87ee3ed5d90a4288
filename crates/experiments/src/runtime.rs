//! Runs a measurement to its end.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::ExperimentError;

/// Runs `work` to its end on two threads, or until the process gets SIGINT, SIGTERM, or SIGHUP (unless that is ignored, as under `nohup`): then
/// all of it ends at once, and with it the processes that it has started.
///
/// # Errors
/// Those of `work`; also when the process is asked to end, or threads or signal handlers cannot be created.
pub fn block_on<T, E: From<ExperimentError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let failed = |what: &str, e: &io::Error| ExperimentError::Failed(format!("cannot {what}: {e}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| failed("start the threads", &e))?;
    let result = runtime.block_on(async {
        let on = |kind| signal(kind).map_err(|e| failed("wait for signals", &e));
        let mut terminate = on(SignalKind::terminate())?;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut hang_up = if ignores_hangup(&status) { None } else { Some(on(SignalKind::hangup())?) };
        let hung_up = async {
            match &mut hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = work => result,
            _ = tokio::signal::ctrl_c() => Err(ExperimentError::Failed("interrupted".into()).into()),
            _ = terminate.recv() => Err(ExperimentError::Failed("asked to end".into()).into()),
            _ = hung_up => Err(ExperimentError::Failed("the terminal was closed".into()).into()),
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Whether a process of this status (`/proc/PID/status`) ignores SIGHUP, which is signal 1.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ignores_hangups_says_so() {
        assert!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(!ignores_hangup(""));
    }
}
