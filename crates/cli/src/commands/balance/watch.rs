//! Notices that a file changed, however it is replaced: in place, by renaming, or by changing a symbolic link on the way
//! to it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// Symbolic links to follow at most, as Linux does (`path_resolution(7)`).
const LINKS: usize = 40;

/// Identifies a version of a file: device, inode, time of change in s and ns, and length in bytes. `None` if
/// the file does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(Option<(u64, u64, i64, i64, u64)>);

impl Stamp {
    /// Of the file that the path leads to, symbolic links followed.
    pub(super) fn of(path: &Path) -> Self {
        let stamp = |m: std::fs::Metadata| (m.dev(), m.ino(), m.mtime(), m.mtime_nsec(), m.len());
        Self(std::fs::metadata(path).ok().map(stamp))
    }

    /// Of a file that nobody has seen.
    pub(super) fn none() -> Self {
        Self(None)
    }
}

/// Watches one file. Its directory is watched, because most programs replace files, and every directory with a symbolic
/// link that leads to it.
pub(super) struct FileWatch {
    watcher: RecommendedWatcher,
    path: PathBuf,
    watched: BTreeSet<PathBuf>,
}

impl FileWatch {
    /// Sends to `changed` whenever the file's stamp changes, starting from `seen`. Other events in these
    /// directories cost one look at the file.
    ///
    /// # Errors
    /// When a directory cannot be watched, or the system has no more watches.
    pub(super) fn start(path: &Path, seen: Stamp, changed: mpsc::Sender<()>) -> notify::Result<Self> {
        let path = std::path::absolute(path).map_err(notify::Error::io)?;
        let last = Arc::new(Mutex::new(seen));
        let look = {
            let path = path.clone();
            move || {
                let now = Stamp::of(&path);
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if std::mem::replace(&mut *last, now) != now {
                    // A pending notification suffices.
                    let _ = changed.try_send(());
                }
            }
        };
        let look_first = look.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may stand for events that were lost.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                look();
            }
        })?;
        let mut watch = Self { watcher, path, watched: BTreeSet::new() };
        watch.follow()?;
        // It may have changed before it was watched.
        look_first();
        Ok(watch)
    }

    /// Watches the directories that lead to the file now; to be called after each change.
    ///
    /// # Errors
    /// When one of them cannot be watched; the others are.
    pub(super) fn follow(&mut self) -> notify::Result<()> {
        let wanted = directories(&self.path).map_err(notify::Error::io)?;
        let mut result = Ok(());
        for directory in &wanted {
            // Watch again even if watched before: the directory may have been replaced.
            let added = self.watcher.watch(directory, RecursiveMode::NonRecursive);
            result = result.and(added);
        }
        for gone in self.watched.difference(&wanted) {
            // A directory that was removed is not watched any more.
            let _ = self.watcher.unwatch(gone);
        }
        self.watched = wanted;
        result
    }
}

/// The directories whose entries decide which file a path leads to: those with symbolic links on the way, and
/// the one that holds the file.
pub(in crate::commands) fn directories(path: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let path = std::path::absolute(path)?;
    let mut found = BTreeSet::new();
    let mut at = PathBuf::from("/");
    // Names still to go, the next one last.
    let mut todo: Vec<OsString> = path.components().rev().map(|c| c.as_os_str().to_owned()).collect();
    let mut links = 0;
    while let Some(name) = todo.pop() {
        let next = at.join(&name);
        match Path::new(&name).components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(_)) if next.is_symlink() => {
                links += 1;
                if links > LINKS {
                    return Err(io::Error::other("too many symbolic links"));
                }
                found.insert(at.clone());
                todo.extend(std::fs::read_link(&next)?.components().rev().map(|c| c.as_os_str().to_owned()));
            }
            // An absolute name replaces what was before it.
            _ => at = next,
        }
    }
    found.insert(at.parent().unwrap_or(Path::new("/")).to_owned());
    Ok(found)
}

#[cfg(test)]
mod tests;
