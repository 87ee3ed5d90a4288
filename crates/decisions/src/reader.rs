//! Reads a log back: one file, or all files of a directory in order.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use plimsoll_policy::Time;

use crate::bytes::Malformed;
use crate::decoder::EventDecoder;
use crate::event::{Event, RunHeader};
use crate::files;
use crate::frame::{FRAME_HEAD_BYTES, FileHead, FrameHead, FrameKind, HEAD_BYTES, Position, file_path, word};

/// Why a log cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum LogReadError {
    /// File or directory cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is nothing to read.
    #[error("{} holds no decision log (files named decisions-00000001.plog, and so on)", .0.display())]
    NoFiles(PathBuf),
    /// The data was not written by a recorder.
    #[error("{position}: {what}")]
    Damaged {
        /// Where.
        position: Position,
        /// What is wrong.
        what: &'static str,
    },
}

/// One item of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogItem {
    /// An input of the policy.
    Event(Event),
    /// Earlier items are missing, so the policy's state is unknown; the log continues with this cluster.
    Resumed {
        /// What is missing.
        missing: Missing,
        /// The run with the cluster as it is now; `None` when none had begun.
        run: Option<Box<RunHeader>>,
        /// The time of the last event that is missing.
        now: Time,
    },
    /// The writer lost chunks here.
    Dropped {
        /// How many.
        chunks: u64,
    },
    /// A file ends in the middle of a record: its front-end crashed, or is writing it now, or its length is damaged.
    Truncated {
        /// Bytes of the file that were not read.
        unread_bytes: u64,
    },
    /// A log that was neither closed nor full ends here: its front-end crashed or still runs, or files are missing.
    NoEnd,
    /// The files were full, and the writer stopped.
    Full,
    /// The log was closed.
    Ended,
}

/// Why a part of a log is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The start was rotated away, or the file is not the first of its log.
    Start,
    /// Chunks in between were lost.
    Chunks(u64),
}

/// Reads events in order.
pub struct LogReader {
    /// The files to come, the next one last.
    files: Vec<(PathBuf, u64)>,
    current: Option<OpenInput>,
    decoder: EventDecoder,
    /// Where the chunk being decoded starts in its file.
    chunk_at: u64,
    /// Where the last item stands in its file.
    item_at: u64,
    path: PathBuf,
    /// Session of the file being read, and the sequence of its next chunk.
    expected: Option<(u64, u64)>,
    done: bool,
    /// The session whose end has not been read.
    open: Option<u64>,
}

struct OpenInput {
    input: BufReader<File>,
    session: u64,
    at: u64,
}

impl LogReader {
    /// Reads one file, or the files of a directory in order, those of one writer together.
    ///
    /// # Errors
    /// When there is no such file, or the directory has none.
    pub fn open(path: &Path) -> Result<Self, LogReadError> {
        let failed = |error| LogReadError::Io { path: path.to_owned(), error };
        let mut found = Vec::new();
        if std::fs::metadata(path).map_err(failed)?.is_dir() {
            for number in files::numbers(path).map_err(failed)? {
                found.push(file_path(path, number));
            }
        } else {
            found.push(path.to_owned());
        }
        if found.is_empty() {
            return Err(LogReadError::NoFiles(path.to_owned()));
        }
        let mut files = Vec::new();
        let mut session = 0;
        for path in found {
            // A file without a complete head was being created when its writer crashed; it is ordered by its
            // number.
            session = session_of(&path)?.unwrap_or(session);
            files.push((path, session));
        }
        // Stable: within one session the order of numbers stays.
        files.sort_by_key(|(_, session)| *session);
        files.reverse();
        Ok(Self {
            files,
            current: None,
            decoder: EventDecoder::new(),
            chunk_at: 0,
            item_at: 0,
            path: PathBuf::new(),
            expected: None,
            done: false,
            open: None,
        })
    }

    /// Where the last item stands.
    #[must_use]
    pub fn place(&self) -> Position {
        Position { file: self.path.clone(), offset: self.item_at }
    }

    /// The next item; `None` at the end of the log.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged; then the log is at its end.
    pub fn next_item(&mut self) -> Result<Option<LogItem>, LogReadError> {
        let item = if self.done { Ok(None) } else { self.advance() };
        self.done |= !matches!(item, Ok(Some(_)));
        item
    }

    fn advance(&mut self) -> Result<Option<LogItem>, LogReadError> {
        loop {
            self.item_at = self.chunk_at + self.decoder.at() as u64;
            match self.decoder.event() {
                Ok(Some(event)) => return Ok(Some(LogItem::Event(event))),
                Ok(None) => {}
                Err(Malformed(what)) => return Err(self.damaged(what)),
            }
            if self.current.is_none() {
                let next = self.files.last().map(|(_, session)| *session);
                if self.open.is_some() && self.open != next {
                    self.open = None;
                    return Ok(Some(LogItem::NoEnd));
                }
                if !self.next_file()? {
                    return Ok(None);
                }
            }
            if let Some(item) = self.frame()? {
                return Ok(Some(item));
            }
        }
    }

    /// Opens the next file; false when there is none.
    fn next_file(&mut self) -> Result<bool, LogReadError> {
        let Some((path, session)) = self.files.pop() else { return Ok(false) };
        let file = File::open(&path).map_err(|error| LogReadError::Io { path: path.clone(), error })?;
        self.path = path;
        self.item_at = 0;
        let mut current = OpenInput { input: BufReader::with_capacity(1 << 16, file), session, at: 0 };
        let mut head = [0; HEAD_BYTES];
        let there = self.fill(&mut current, &mut head)?;
        current.at = there as u64;
        if there == HEAD_BYTES {
            current.session = FileHead::read(&head).map_err(|what| self.damaged(what))?.session;
        }
        self.open = Some(current.session);
        // Without a complete head nothing follows; reading the next frame then finds the end.
        self.current = Some(current);
        Ok(true)
    }

    /// Reads a frame: `None` when it holds a chunk in sequence, or the file is at its end.
    fn frame(&mut self) -> Result<Option<LogItem>, LogReadError> {
        let Some(mut current) = self.current.take() else { return Ok(None) };
        self.item_at = current.at;
        let mut head = [0; FRAME_HEAD_BYTES];
        match self.fill(&mut current, &mut head)? {
            0 if current.at >= HEAD_BYTES as u64 => return Ok(None),
            FRAME_HEAD_BYTES => {}
            n => {
                let of_head = if current.at < HEAD_BYTES as u64 { current.at } else { 0 };
                return Ok(Some(LogItem::Truncated { unread_bytes: of_head + n as u64 }));
            }
        }
        let head = FrameHead::read(&head).map_err(|what| self.damaged(what))?;
        let mut payload = Vec::new();
        let read = (&mut current.input).take(head.payload_bytes as u64).read_to_end(&mut payload);
        read.map_err(|error| LogReadError::Io { path: self.path.clone(), error })?;
        if payload.len() < head.payload_bytes {
            let unread_bytes = (FRAME_HEAD_BYTES + payload.len()) as u64;
            return Ok(Some(LogItem::Truncated { unread_bytes }));
        }
        head.check(&payload).map_err(|what| self.damaged(what))?;
        let payload_at = current.at + FRAME_HEAD_BYTES as u64;
        current.at = payload_at + payload.len() as u64;
        let session = current.session;
        self.current = Some(current);
        match head.kind {
            FrameKind::Gap => Ok(Some(LogItem::Dropped { chunks: word(&payload) })),
            FrameKind::Full => {
                self.open = None;
                Ok(Some(LogItem::Full))
            }
            FrameKind::End => {
                self.open = None;
                Ok(Some(LogItem::Ended))
            }
            FrameKind::Chunk => self.chunk(payload, payload_at, session),
        }
    }

    fn chunk(&mut self, payload: Vec<u8>, at: u64, session: u64) -> Result<Option<LogItem>, LogReadError> {
        self.chunk_at = at;
        let start = self.decoder.begin(payload).map_err(|Malformed(what)| self.damaged(what))?;
        let expected = self.expected.filter(|e| e.0 == session).map(|e| e.1);
        self.expected = Some((session, start.sequence.wrapping_add(1)));
        let missing = match expected {
            Some(next) if next == start.sequence => return Ok(None),
            // The first chunk of a recorder.
            _ if start.sequence == 0 => return Ok(None),
            Some(next) => Missing::Chunks(start.sequence.saturating_sub(next)),
            None => Missing::Start,
        };
        Ok(Some(LogItem::Resumed { missing, run: start.run.map(Box::new), now: start.now }))
    }

    /// Reads up to the length of `buffer`, less at the end of the file.
    fn fill(&self, current: &mut OpenInput, buffer: &mut [u8]) -> Result<usize, LogReadError> {
        fill(&mut current.input, buffer).map_err(|error| LogReadError::Io { path: self.path.clone(), error })
    }

    fn damaged(&self, what: &'static str) -> LogReadError {
        LogReadError::Damaged { position: self.place(), what }
    }
}

impl Iterator for LogReader {
    type Item = Result<LogItem, LogReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_item().transpose()
    }
}

/// The session in the head of a file; `None` when the head is incomplete.
fn session_of(path: &Path) -> Result<Option<u64>, LogReadError> {
    let failed = |error| LogReadError::Io { path: path.to_owned(), error };
    let mut head = [0; HEAD_BYTES];
    let mut file = File::open(path).map_err(failed)?;
    if fill(&mut file, &mut head).map_err(failed)? < HEAD_BYTES {
        return Ok(None);
    }
    let position = Position { file: path.to_owned(), offset: 0 };
    FileHead::read(&head).map(|h| Some(h.session)).map_err(|what| LogReadError::Damaged { position, what })
}

fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
