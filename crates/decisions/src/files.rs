//! The files of a log: written one after the other, bounded in size and number.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::frame::{FileHead, FrameKind, HEAD_BYTES, MOST_PAYLOAD_BYTES, file_path, frame_head, number_of};
use crate::log_config::{LogConfig, LogRetention};

/// How many file numbers are tried when another process takes the next ones.
const TRIES: usize = 1000;

pub(crate) struct LogFiles {
    config: LogConfig,
    session: u64,
    /// The file being written.
    current: Option<OpenFile>,
    /// Number of the next file.
    next: u64,
    full: bool,
    lost: u64,
}

struct OpenFile {
    file: File,
    path: PathBuf,
    /// Bytes of whole frames.
    bytes: u64,
}

impl LogFiles {
    pub(crate) fn open(config: &LogConfig) -> io::Result<Self> {
        let invalid = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if config.file_bytes < LogConfig::LEAST_FILE_BYTES {
            return invalid(format!(
                "files of a decision log have at least {} bytes, not {}",
                LogConfig::LEAST_FILE_BYTES,
                config.file_bytes
            ));
        }
        if config.files == 0 {
            return invalid("a decision log has at least 1 file, not 0".into());
        }
        fs::create_dir_all(&config.directory).map_err(|e| naming(&config.directory, &e))?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let next = numbers(&config.directory)?.last().map_or(1, |last| last.saturating_add(1));
        let mut files = Self {
            config: config.clone(),
            session: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            current: None,
            next,
            full: false,
            lost: 0,
        };
        files.advance()?;
        Ok(files)
    }

    /// Whether nothing more is written.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Writes a chunk, preceded by a gap mark if `lost` chunks before it are missing. On an error nothing of
    /// it stays.
    pub(crate) fn write(&mut self, chunk: &[u8], lost: u64) -> io::Result<()> {
        if self.full {
            return Ok(());
        }
        if chunk.len() > MOST_PAYLOAD_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a chunk has more than 16 MiB"));
        }
        let fits = |c: &OpenFile| c.bytes + chunk.len() as u64 + 64 <= self.config.file_bytes;
        let begun = |c: &OpenFile| c.bytes > HEAD_BYTES as u64;
        if self.current.as_ref().is_none_or(|c| begun(c) && !fits(c)) {
            self.advance()?;
        }
        let Some(current) = self.current.as_mut().filter(|_| !self.full) else { return Ok(()) };
        let start_bytes = current.bytes;
        let mut result = if lost == 0 { Ok(()) } else { current.put(FrameKind::Gap, &lost.to_le_bytes()) };
        result = result.and_then(|()| current.put(FrameKind::Chunk, chunk));
        if result.is_err() && !current.cut(start_bytes) {
            // The end of this file is unknown, so the next chunk starts another one.
            self.current = None;
        }
        result
    }

    /// Remembers that chunks are missing at the end.
    pub(crate) fn add_lost(&mut self, chunks: u64) {
        self.lost += chunks;
    }

    /// Syncs everything written to disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.current.as_ref().map_or(Ok(()), |c| c.file.sync_data().map_err(|e| naming(&c.path, &e)))
    }

    /// Ends the log; `dropped` chunks and those of [`LogFiles::add_lost`] are missing at the end.
    pub(crate) fn close(&mut self, dropped: u64) -> io::Result<()> {
        let lost = self.lost + dropped;
        if let Some(current) = self.current.as_mut().filter(|_| !self.full) {
            if lost > 0 {
                current.put(FrameKind::Gap, &lost.to_le_bytes())?;
            }
            current.put(FrameKind::End, &[])?;
        }
        self.sync()
    }

    /// Goes on to the next file, or finds that the log is full.
    fn advance(&mut self) -> io::Result<()> {
        let there = numbers(&self.config.directory)?;
        let excess = (there.len() + 1).saturating_sub(self.config.files);
        if excess > 0 && self.config.when_full == LogRetention::Stop {
            self.full = true;
            return match &mut self.current {
                Some(current) => current.put(FrameKind::Full, &[]),
                None => Ok(()),
            };
        }
        for number in there.iter().take(excess) {
            let path = file_path(&self.config.directory, *number);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(naming(&path, &error)),
                _ => {}
            }
        }
        self.current = Some(self.create()?);
        Ok(())
    }

    fn create(&mut self) -> io::Result<OpenFile> {
        for _ in 0..TRIES {
            let number = self.next;
            let path = file_path(&self.config.directory, number);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            // Hashes of targets and identities of clients are not for every user.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
            self.next = self.next.saturating_add(1);
            match options.open(&path) {
                Ok(mut file) => {
                    let head = FileHead { session: self.session, number }.to_bytes();
                    file.write_all(&head).map_err(|e| naming(&path, &e))?;
                    return Ok(OpenFile { file, path, bytes: HEAD_BYTES as u64 });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(naming(&path, &error)),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "no free number for the next file of the decision log",
        ))
    }
}

impl OpenFile {
    fn put(&mut self, kind: FrameKind, payload: &[u8]) -> io::Result<()> {
        let head = frame_head(kind, payload);
        let written = self.file.write_all(&head).and_then(|()| self.file.write_all(payload));
        written.map_err(|e| naming(&self.path, &e))?;
        self.bytes += (head.len() + payload.len()) as u64;
        Ok(())
    }

    /// Cuts off an incomplete frame.
    fn cut(&mut self, bytes: u64) -> bool {
        self.bytes = bytes;
        self.file.set_len(self.bytes).and_then(|()| self.file.seek(SeekFrom::Start(self.bytes))).is_ok()
    }
}

/// The numbers of the files of logs in `directory`, in order.
pub(crate) fn numbers(directory: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory).map_err(|e| naming(directory, &e))? {
        numbers.extend(number_of(&entry.map_err(|e| naming(directory, &e))?.path()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// An error that names its file.
fn naming(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
