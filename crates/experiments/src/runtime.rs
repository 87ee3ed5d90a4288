//! Runs a measurement to its end.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::ExperimentError;

/// How many calls of [`block_on`] are at work, which hear signals themselves.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);
/// Whether somebody hears signals while none is.
static IS_WATCHED: Mutex<bool> = Mutex::new(false);

/// Runs `work` to its end on two threads, or until the process gets SIGINT, SIGTERM, or SIGHUP (unless that is ignored, as under `nohup`): then
/// all of it ends at once, and with it the processes that it has started. Later these signals end the process as if nobody had ever heard them.
///
/// # Errors
/// Those of `work`; also when the process is asked to end, or threads or signal handlers cannot be created.
pub fn block_on<T, E: From<ExperimentError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let failed = |what: &str, e: &io::Error| ExperimentError::Failed(format!("cannot {what}: {e}"));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| failed("start the threads", &e))?;
    watch_afterwards().map_err(|e| failed("wait for signals", &e))?;
    AT_WORK.fetch_add(1, Ordering::SeqCst);
    let result = runtime.block_on(async {
        let mut signals = Signals::hear().map_err(|e| failed("wait for signals", &e))?;
        tokio::select! {
            result = work => result,
            kind = signals.next() => Err(ExperimentError::Failed(told(kind).into()).into()),
        }
    });
    AT_WORK.fetch_sub(1, Ordering::SeqCst);
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// The signals that ask a process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where it is ignored.
    hang_up: Option<Signal>,
}

impl Signals {
    fn hear() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hang_up = if ignores_hangup(&status) { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up,
        })
    }

    async fn next(&mut self) -> SignalKind {
        let hung_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = hung_up => SignalKind::hangup(),
        }
    }
}

fn told(kind: SignalKind) -> &'static str {
    if kind == SignalKind::interrupt() {
        "interrupted"
    } else if kind == SignalKind::terminate() {
        "asked to end"
    } else {
        "the terminal was closed"
    }
}

/// Has a thread end the process at a signal that comes while no [`block_on`] is at work: tokio's handlers stay when a runtime has ended, so
/// that without it nothing would come of that signal. The exit code is what shells make of the signal, 128 and its number.
fn watch_afterwards() -> io::Result<()> {
    let mut is_watched = IS_WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_watched {
        return Ok(());
    }
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::hear()?
    };
    let watch = async move {
        loop {
            let kind = signals.next().await;
            if AT_WORK.load(Ordering::SeqCst) == 0 {
                std::process::exit(128 + kind.as_raw_value());
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(watch))?;
    *is_watched = true;
    Ok(())
}

/// Whether a process of this status (`/proc/PID/status`) ignores SIGHUP, which is signal 1.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_ignores_hangups_says_so() {
        assert!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(!ignores_hangup(""));
    }

    /// Set in the process of the next test.
    const CHILD: &str = "PLIMSOLL_TEST_COMPUTES";

    /// What that process does: it works twice, and then computes.
    #[test]
    fn works_and_computes_on() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        for _ in 0..2 {
            block_on(async { Ok::<_, ExperimentError>(()) }).unwrap();
        }
        println!("\ncomputes");
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_signal_ends_what_computes_after_the_work() {
        for (name, code) in [("-INT", 130), ("-TERM", 143)] {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "runtime::tests::works_and_computes_on", "--nocapture"])
                .env(CHILD, "1")
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line == "computes"));
            let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
            assert!(sent.success());
            assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
        }
    }
}
