//! The access log: workers gather lines, and a separate thread writes them. The output may block for any
//! time: only that thread waits for it.

mod output;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_config::AccessLog;

use output::{Output, Unwritten};

/// Buffers of lines that may wait for the disk; more are lost and counted.
const BUFFERS_IN_FLIGHT: usize = 64;
/// A worker hands its lines over when there are this many bytes.
pub const BUFFER_BYTES: usize = 32 << 10;
/// How long lines that wait at the end may take.
const FLUSH: Duration = Duration::from_secs(2);

enum Message {
    Lines(Vec<u8>),
    /// Look into [`Common::wanted`].
    Reopen,
    Flush(SyncSender<()>),
}

/// The state shared by senders and the thread.
#[derive(Default)]
struct Common {
    lost: AtomicU64,
    /// Lines that were handed over and neither written nor lost since.
    waiting: AtomicU64,
    /// The log to open next, until it is open.
    wanted: Mutex<Option<Option<AccessLog>>>,
    /// [`Message::Reopen`] did not fit into the queue, so reopen before handling it.
    overtakes: AtomicBool,
    /// Nothing waits for lines any more.
    given_up: AtomicBool,
}

impl Common {
    fn wanted(&self) -> MutexGuard<'_, Option<Option<AccessLog>>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where lines go. Cheap to clone; each worker has one.
#[derive(Clone)]
pub struct AccessLogSender {
    messages: SyncSender<Message>,
    common: Arc<Common>,
}

impl AccessLogSender {
    /// Queues lines without waiting; false when they are lost.
    pub fn push(&self, lines: Vec<u8>) -> bool {
        let count = count_lines(&lines);
        self.common.waiting.fetch_add(count, Ordering::Relaxed);
        let taken = self.messages.try_send(Message::Lines(lines)).is_ok();
        if !taken {
            self.common.waiting.fetch_sub(count, Ordering::Relaxed);
        }
        taken
    }

    /// Lines that could not be written since the start.
    pub fn lost(&self) -> u64 {
        self.common.lost.load(Ordering::Relaxed)
    }

    /// Reopens the log by the present configuration, without waiting.
    ///
    /// Lines queued before go to the old output, or to the new one if the old one blocks.
    pub fn reopen(&self, config: Option<AccessLog>) {
        *self.common.wanted() = Some(config);
        if let Err(TrySendError::Full(_)) = self.messages.try_send(Message::Reopen) {
            self.common.overtakes.store(true, Ordering::Release);
        }
    }

    /// Returns once all queued lines are written, or lost because the output blocked for two seconds. For
    /// shutdown: nothing is written after such a loss.
    pub fn flush(&self) {
        self.flush_within(FLUSH);
    }

    fn flush_within(&self, time: Duration) {
        let until = Instant::now() + time;
        let (done, wait) = sync_channel(1);
        let mut message = Message::Flush(done);
        let done = loop {
            match self.messages.try_send(message) {
                Ok(()) => {
                    let rest = until.saturating_duration_since(Instant::now());
                    break wait.recv_timeout(rest).is_ok();
                }
                Err(TrySendError::Disconnected(_)) => break false,
                Err(TrySendError::Full(_)) if Instant::now() >= until => break false,
                Err(TrySendError::Full(back)) => message = back,
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        if !done {
            self.common.given_up.store(true, Ordering::Release);
            let lines = self.common.waiting.swap(0, Ordering::Relaxed);
            self.common.lost.fetch_add(lines, Ordering::Relaxed);
            tracing::error!(lines, "access log: nobody takes the last lines, they are lost");
        }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Opens the log and starts the thread that writes it.
///
/// # Errors
/// When the file cannot be opened.
pub fn start(config: Option<&AccessLog>) -> io::Result<(AccessLogSender, JoinHandle<()>)> {
    start_with(config.map(Output::open).transpose()?)
}

fn start_with(out: Option<Output>) -> io::Result<(AccessLogSender, JoinHandle<()>)> {
    let (sender, messages) = sync_channel(BUFFERS_IN_FLIGHT);
    let common = Arc::<Common>::default();
    let mut writer = Writer { out, common: Arc::clone(&common), complained: false };
    let thread =
        std::thread::Builder::new().name("access-log".into()).spawn(move || writer.run(&messages))?;
    Ok((AccessLogSender { messages: sender, common }, thread))
}

/// Whether a log that is configured like this can be opened.
///
/// # Errors
/// Those of opening it.
pub fn probe(config: Option<&AccessLog>) -> io::Result<()> {
    config.map(Output::open).transpose().map(drop)
}

/// What the thread has.
struct Writer {
    /// `None` when no log is wanted.
    out: Option<Output>,
    common: Arc<Common>,
    complained: bool,
}

impl Writer {
    fn run(&mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            if self.common.given_up.load(Ordering::Acquire) {
                return;
            }
            if self.common.overtakes.swap(false, Ordering::Acquire) {
                self.reopen();
            }
            match message {
                Message::Lines(lines) => self.write(&lines),
                Message::Reopen => drop(self.reopen()),
                Message::Flush(done) => {
                    // The caller may have gone.
                    let _ = done.send(());
                }
            }
        }
    }

    fn write(&mut self, lines: &[u8]) {
        let common = Arc::clone(&self.common);
        let interrupted = || common.given_up.load(Ordering::Acquire) || common.wanted().is_some();
        let mut rest = lines;
        while let Some(out) = &mut self.out {
            let unwritten = match out.write(rest, &interrupted) {
                Ok(()) => break,
                Err(Unwritten::Failed { error, rest: unwritten }) => {
                    common.lost.fetch_add(count_lines(&rest[rest.len() - unwritten..]), Ordering::Relaxed);
                    self.complain(&error);
                    break;
                }
                Err(Unwritten::Interrupted { .. }) if common.given_up.load(Ordering::Acquire) => return,
                Err(Unwritten::Interrupted { rest: unwritten }) => unwritten,
            };
            rest = &rest[rest.len() - unwritten..];
            let begun = lines[..lines.len() - unwritten].last().is_some_and(|&byte| byte != b'\n');
            if self.reopen() && begun {
                // The other half of a line is of no use elsewhere.
                common.lost.fetch_add(1, Ordering::Relaxed);
                rest = &rest[memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1)..];
            }
        }
        common.waiting.fetch_sub(count_lines(lines), Ordering::Relaxed);
    }

    /// Opens the wanted log, if any; true when the output changed.
    fn reopen(&mut self) -> bool {
        let Some(config) = self.common.wanted().take() else { return false };
        match config.as_ref().map(Output::open).transpose() {
            Ok(out) => {
                let stays = matches!((&self.out, &out), (Some(old), Some(new)) if new.continues(old));
                self.out = out;
                self.complained = false;
                !stays
            }
            Err(error) => {
                self.complain(&error);
                false
            }
        }
    }

    /// Logs the error, once per opening.
    fn complain(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.complained, true) {
            let file = self.out.as_ref().map_or("none", |out| &*out.name);
            tracing::error!(%error, file, "cannot write the access log");
        }
    }
}
