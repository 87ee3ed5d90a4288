//! The access log: workers gather lines, a thread of its own writes them.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use plimsoll_config::AccessLog;

pub(crate) use line::{Moment, line};

use crate::metrics::Counter;

/// Buffers of lines that may wait for the disk; more are lost and counted.
const BUFFERS_IN_FLIGHT: usize = 64;
/// A worker hands its lines over when there are this many bytes.
pub(crate) const BUFFER_BYTES: usize = 32 << 10;

enum Message {
    Lines(Vec<u8>),
    Reopen(Option<AccessLog>),
    Flush(SyncSender<()>),
}

/// Where lines go. Cheap to clone; each worker has one.
#[derive(Clone)]
pub(crate) struct AccessLogSender {
    messages: SyncSender<Message>,
    lost: Arc<Counter>,
}

impl AccessLogSender {
    /// Hands lines over without waiting; false when they are lost.
    pub(crate) fn push(&self, lines: Vec<u8>) -> bool {
        self.messages.try_send(Message::Lines(lines)).is_ok()
    }

    /// Lines that could not be written since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// Closes the file and opens what the configuration says now.
    pub(crate) fn reopen(&self, config: Option<AccessLog>) {
        drop(self.messages.send(Message::Reopen(config)));
    }

    /// Returns once everything handed over before is written.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.messages.send(Message::Flush(done)).is_ok() {
            // The thread answers or is gone; either way there is nothing more to wait for.
            let _ = wait.recv();
        }
    }
}

/// Opens the log and starts the thread that writes it.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn start(config: Option<&AccessLog>) -> io::Result<(AccessLogSender, JoinHandle<()>)> {
    let out = open(config)?;
    let (sender, messages) = sync_channel(BUFFERS_IN_FLIGHT);
    let lost = Arc::new(Counter::default());
    let counter = Arc::clone(&lost);
    let thread = std::thread::Builder::new()
        .name("access-log".into())
        .spawn(move || write(out, &messages, &counter))?;
    Ok((AccessLogSender { messages: sender, lost }, thread))
}

/// Whether a log that is configured like this can be opened.
///
/// # Errors
/// Those of opening it.
pub(crate) fn probe(config: Option<&AccessLog>) -> io::Result<()> {
    open(config).map(drop)
}

enum Out {
    Nowhere,
    Stdout,
    File(File, PathBuf),
}

fn open(config: Option<&AccessLog>) -> io::Result<Out> {
    match config {
        None => Ok(Out::Nowhere),
        Some(AccessLog { file: None, .. }) => Ok(Out::Stdout),
        Some(AccessLog { file: Some(path), .. }) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
            Ok(Out::File(file.map_err(named)?, path.clone()))
        }
    }
}

fn write(mut out: Out, messages: &Receiver<Message>, lost: &Counter) {
    let mut complained = false;
    while let Ok(message) = messages.recv() {
        let result = match message {
            Message::Lines(lines) => {
                let result = match &mut out {
                    Out::Nowhere => Ok(()),
                    Out::Stdout => io::stdout().lock().write_all(&lines),
                    Out::File(file, _) => file.write_all(&lines),
                };
                // How many of them got there before the failure is not known; all count as lost.
                result.inspect_err(|_| lost.add(memchr::memchr_iter(b'\n', &lines).count() as u64))
            }
            Message::Reopen(config) => open(config.as_ref()).map(|opened| {
                out = opened;
                complained = false;
            }),
            Message::Flush(done) => {
                // Whoever asked may have gone.
                let _ = done.send(());
                Ok(())
            }
        };
        if let Err(error) = result
            && !complained
        {
            complained = true;
            let file =
                if let Out::File(_, path) = &out { path.display().to_string() } else { "stdout".into() };
            tracing::error!(%error, file, "cannot write the access log");
        }
    }
}
