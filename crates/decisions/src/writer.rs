//! Writes chunks to bounded, rotating files in a thread of its own.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::files::LogFiles;
use crate::log_config::LogConfig;

/// A command to the thread.
enum WriterCommand {
    /// Write a chunk; with the number of chunks dropped before it.
    Chunk(Vec<u8>, u64),
    /// Sync to disk, then answer.
    Flush(SyncSender<()>),
}

/// Status that the thread shares with its owner.
#[derive(Default)]
struct WriterStatus {
    dropped: AtomicU64,
    errors: AtomicU64,
    stopped: AtomicBool,
    last_error: Mutex<Option<String>>,
}

/// The files of a decision log. Handing over a chunk never waits for the disk.
pub struct LogWriter {
    messages: Option<SyncSender<WriterCommand>>,
    /// Buffers that were written and can be used again.
    emptied: Mutex<Receiver<Vec<u8>>>,
    shared: Arc<WriterStatus>,
    /// Chunks dropped since the last one that entered the queue.
    dropped_lately: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl LogWriter {
    /// Chunks that may wait for the disk; further ones are dropped.
    pub const CHUNKS_IN_FLIGHT: usize = 64;

    /// Opens a log: finds the next number in the directory, makes room, and starts the thread that writes.
    ///
    /// # Errors
    /// When the configuration makes no sense, or directory or first file cannot be made.
    pub fn open(config: &LogConfig) -> io::Result<Self> {
        let mut files = LogFiles::open(config)?;
        let shared = Arc::new(WriterStatus::default());
        shared.stopped.store(files.is_full(), Ordering::Relaxed);
        let dropped_lately = Arc::new(AtomicU64::new(0));
        let (messages, inbox) = sync_channel(Self::CHUNKS_IN_FLIGHT);
        let (give_back, emptied) = sync_channel(Self::CHUNKS_IN_FLIGHT);
        let (theirs, lately) = (Arc::clone(&shared), Arc::clone(&dropped_lately));
        let thread = std::thread::Builder::new().name("decision-log".into()).spawn(move || {
            work(&mut files, &inbox, &give_back, &theirs);
            let dropped = lately.swap(0, Ordering::AcqRel);
            note(files.close(dropped), &theirs);
        })?;
        Ok(Self {
            messages: Some(messages),
            emptied: Mutex::new(emptied),
            shared,
            dropped_lately,
            thread: Some(thread),
        })
    }

    /// Queues a chunk without ever waiting. When [`LogWriter::CHUNKS_IN_FLIGHT`] chunks already wait for the
    /// disk, it drops the chunk, which the log will note. Returns a recycled buffer, if there is one.
    pub fn push(&self, chunk: Vec<u8>) -> Option<Vec<u8>> {
        if chunk.is_empty() || self.stopped() {
            return Some(chunk);
        }
        let Some(messages) = &self.messages else { return Some(chunk) };
        let dropped = self.dropped_lately.swap(0, Ordering::AcqRel);
        match messages.try_send(WriterCommand::Chunk(chunk, dropped)) {
            Ok(()) => self.emptied.try_lock().ok()?.try_recv().ok(),
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                self.dropped_lately.fetch_add(dropped + 1, Ordering::AcqRel);
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                match message {
                    WriterCommand::Chunk(chunk, _) => Some(chunk),
                    WriterCommand::Flush(_) => None,
                }
            }
        }
    }

    /// Waits until all queued chunks are on disk or have failed.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if let Some(messages) = &self.messages
            && messages.send(WriterCommand::Flush(done)).is_ok()
        {
            // The thread answers or is gone; either way the wait is over.
            let _ = wait.recv();
        }
    }

    /// Writes all queued chunks and the end of the log, and waits for that. Dropping does the same.
    pub fn close(self) {
        drop(self);
    }

    /// Chunks that were lost since the log was opened, because the disk was too slow or failed.
    #[must_use]
    pub fn dropped_chunks(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Failures of the disk since the log was opened.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.shared.errors.load(Ordering::Relaxed)
    }

    /// The latest failure of the disk.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the files are full and nothing more is written ([`LogRetention::Stop`](crate::LogRetention::Stop)).
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Relaxed)
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; the log then lacks its end, and its reader says so.
            let _ = thread.join();
        }
    }
}

fn work(
    files: &mut LogFiles,
    inbox: &Receiver<WriterCommand>,
    give_back: &SyncSender<Vec<u8>>,
    shared: &WriterStatus,
) {
    let mut lost = 0;
    while let Ok(message) = inbox.recv() {
        match message {
            WriterCommand::Chunk(chunk, dropped) => {
                lost += dropped;
                match files.write(&chunk, lost) {
                    Ok(()) => lost = 0,
                    Err(error) => {
                        lost += 1;
                        shared.dropped.fetch_add(1, Ordering::Relaxed);
                        note(Err(error), shared);
                    }
                }
                shared.stopped.store(files.is_full(), Ordering::Relaxed);
                // If the channel is full, the buffer is freed.
                let _ = give_back.try_send(chunk);
            }
            WriterCommand::Flush(done) => {
                note(files.sync(), shared);
                // The caller may have gone.
                let _ = done.send(());
            }
        }
    }
    files.add_lost(lost);
}

/// Counts a failure. Only the first is printed, because a full disk fails with every chunk.
fn note(result: io::Result<()>, shared: &WriterStatus) {
    let Err(error) = result else { return };
    if shared.errors.fetch_add(1, Ordering::Relaxed) == 0 {
        tracing::error!(%error, "the decision log cannot be written; further failures are only counted");
    }
    *shared.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer whose thread never comes to its queue.
    fn stuck() -> (LogWriter, Receiver<WriterCommand>) {
        let (messages, inbox) = sync_channel(LogWriter::CHUNKS_IN_FLIGHT);
        let (_, emptied) = sync_channel(1);
        let writer = LogWriter {
            messages: Some(messages),
            emptied: Mutex::new(emptied),
            shared: Arc::default(),
            dropped_lately: Arc::default(),
            thread: None,
        };
        (writer, inbox)
    }

    #[test]
    fn a_slow_disk_loses_chunks_and_the_next_one_says_how_many() {
        let (writer, inbox) = stuck();
        for _ in 0..LogWriter::CHUNKS_IN_FLIGHT {
            assert_eq!(writer.push(vec![1]), None);
        }
        assert_eq!(writer.push(vec![2]), Some(vec![2]));
        assert_eq!(writer.push(vec![3]), Some(vec![3]));
        assert_eq!(writer.dropped_chunks(), 2);
        let dropped = |message| match message {
            WriterCommand::Chunk(chunk, dropped) => (chunk, dropped),
            WriterCommand::Flush(_) => (Vec::new(), 0),
        };
        assert_eq!(dropped(inbox.recv().unwrap()), (vec![1], 0));
        writer.push(vec![4]);
        let waiting: Vec<_> = inbox.try_iter().map(dropped).collect();
        assert_eq!(waiting.len(), LogWriter::CHUNKS_IN_FLIGHT);
        assert_eq!(waiting.last(), Some(&(vec![4], 2)));
    }

    #[test]
    fn a_thread_that_is_gone_loses_chunks_and_nothing_else() {
        let (writer, inbox) = stuck();
        drop(inbox);
        assert_eq!(writer.push(vec![1]), Some(vec![1]));
        assert_eq!(writer.dropped_chunks(), 1);
        writer.flush();
    }
}
