//! Files that a process needs after its start, and whether somebody may use them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// How many entries of a tree are looked at: more take too long at a start.
const MOST_ENTRIES: usize = 10_000;

/// What a file is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// It is read; a directory is listed.
    Read,
    /// Everything below this directory is read.
    ReadTree,
    /// It is appended to; made where it is not there.
    Append,
    /// Files are made and removed in this directory; made where it is not there.
    Fill,
    /// Files are made in this directory, which is there.
    CreateIn,
    /// It is a socket to connect to.
    Connect,
    /// The same, perhaps of a server that has not started yet: only the way to where it will be can be looked at then.
    ConnectLater,
}

/// A file that a process needs after its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNeed {
    /// The file.
    pub path: PathBuf,
    /// What happens to it.
    pub access: FileAccess,
    /// What it is, as in "the access log".
    pub what: &'static str,
}

impl FileNeed {
    /// A need.
    pub fn new(path: impl Into<PathBuf>, access: FileAccess, what: &'static str) -> Self {
        Self { path: path.into(), access, what }
    }

    /// Whether the calling thread may not use the file, with its effective user.
    pub(super) fn denied(&self) -> Option<DeniedFile> {
        let refuse =
            |path: &Path, verb, error| DeniedFile { path: path.to_owned(), verb, what: self.what, error };
        let may = |path: &Path, access, verb| match accessat(CWD, path, access, AtFlags::EACCESS) {
            Ok(()) => None,
            Err(errno) => Some(refuse(path, verb, errno.into())),
        };
        let is_missing =
            |path: &Path| path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        match self.access {
            FileAccess::Read if self.path.is_dir() => {
                may(&self.path, Access::READ_OK | Access::EXEC_OK, "list")
            }
            FileAccess::Read => may(&self.path, Access::READ_OK, "read"),
            FileAccess::ReadTree => self.denied_below(),
            FileAccess::Append | FileAccess::Fill | FileAccess::ConnectLater
                if is_missing(&self.path) || self.leads_nowhere_yet() =>
            {
                // It is made, here or by another program, and the user must then reach it.
                let there = self.path.ancestors().skip(1).find(|path| !is_missing(path));
                let there = there.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
                may(there, Access::EXEC_OK, "enter")
            }
            FileAccess::Append | FileAccess::Connect | FileAccess::ConnectLater => {
                may(&self.path, Access::WRITE_OK, "write to")
            }
            FileAccess::Fill | FileAccess::CreateIn => {
                may(&self.path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK, "make files in")
            }
        }
    }

    /// Whether it is a symbolic link to a socket that is not there yet.
    fn leads_nowhere_yet(&self) -> bool {
        self.access == FileAccess::ConnectLater
            && self.path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// The first entry of the tree that cannot be read, of those that are looked at. Symbolic links are not followed.
    fn denied_below(&self) -> Option<DeniedFile> {
        let mut todo = vec![self.path.clone()];
        let mut seen = 0;
        while let Some(path) = todo.pop() {
            let one = Self { path, access: FileAccess::Read, what: self.what };
            if let Some(denied) = one.denied() {
                return Some(denied);
            }
            seen += 1;
            if seen >= MOST_ENTRIES {
                return None;
            }
            let entries = std::fs::read_dir(&one.path).into_iter().flatten().flatten();
            todo.extend(
                entries.filter(|entry| entry.file_type().is_ok_and(|t| !t.is_symlink())).map(|e| e.path()),
            );
        }
        None
    }
}

/// A file that somebody may not use.
#[derive(Debug)]
pub struct DeniedFile {
    /// The file, or the directory on the way to it.
    pub path: PathBuf,
    verb: &'static str,
    what: &'static str,
    error: io::Error,
}

/// As in "may not read /etc/key (the key): Permission denied".
impl fmt::Display for DeniedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, verb, what, error } = self;
        write!(f, "may not {verb} {} ({what}): {error}", path.display())
    }
}
