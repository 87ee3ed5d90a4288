//! What the access log is written to: a file, or something that can take nothing for long, such as a pipe.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use plimsoll_config::AccessLog;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// A pipe that is ready takes this much at once without waiting (`PIPE_BUF` of Linux, `pipe(7)`).
const PIECE_BYTES: usize = 4096;
/// How long to wait for readiness before asking whether to wait on.
const PATIENCE: Duration = Duration::from_millis(100);

/// An open output.
pub(super) struct Output {
    file: File,
    /// For messages.
    pub(super) name: String,
    /// Whether it always takes everything: files do, pipes, terminals and sockets do not.
    always_ready: bool,
}

/// Why not all lines were written; `rest` bytes at the end were not.
#[derive(Debug)]
pub(super) enum Unwritten {
    Failed { error: io::Error, rest: usize },
    Interrupted { rest: usize },
}

impl Output {
    /// Opens what is configured, without waiting for a reader.
    ///
    /// # Errors
    /// Those of opening the file, with its name; also when it is a FIFO that nobody reads.
    pub(super) fn open(config: &AccessLog) -> io::Result<Self> {
        match &config.file {
            None => Self::new(File::from(io::stdout().as_fd().try_clone_to_owned()?), "stdout".into()),
            Some(path) => Self::open_file(path)
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {}", path.display(), explain(path, &e)))),
        }
    }

    fn open_file(path: &Path) -> io::Result<Self> {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().create(true).append(true).custom_flags(nonblocking).open(path)?;
        Self::new(file, path.display().to_string())
    }

    pub(super) fn new(file: File, name: String) -> io::Result<Self> {
        let always_ready = file.metadata()?.is_file();
        Ok(Self { file, name, always_ready })
    }

    /// Whether what is written here goes behind what was written there: the same pipe opened twice.
    pub(super) fn continues(&self, old: &Self) -> bool {
        !self.always_ready && !old.always_ready && self.name == old.name
    }

    /// Writes all of it. As long as the output takes nothing, asks `interrupted` several times a second and gives up
    /// when it says so.
    pub(super) fn write(&mut self, bytes: &[u8], interrupted: &dyn Fn() -> bool) -> Result<(), Unwritten> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let failed = |error| Unwritten::Failed { error, rest: rest.len() };
            let piece = if self.always_ready {
                rest
            } else {
                if !self.ready().map_err(failed)? {
                    if interrupted() {
                        return Err(Unwritten::Interrupted { rest: rest.len() });
                    }
                    continue;
                }
                &rest[..rest.len().min(PIECE_BYTES)]
            };
            match self.file.write(piece) {
                Ok(0) => return Err(failed(ErrorKind::WriteZero.into())),
                Ok(n) => rest = &rest[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Ready, but not for so much.
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if interrupted() {
                        return Err(Unwritten::Interrupted { rest: rest.len() });
                    }
                    std::thread::sleep(PATIENCE / 10);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// Waits until something can be written, or an error be had, but not for long.
    fn ready(&self) -> io::Result<bool> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: PATIENCE.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn explain(path: &Path, error: &io::Error) -> String {
    let is_fifo = || path.metadata().is_ok_and(|m| m.file_type().is_fifo());
    if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) && is_fifo() {
        "a FIFO that nobody reads; start its reader first".to_owned()
    } else {
        error.to_string()
    }
}
