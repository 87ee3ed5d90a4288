//! `classify --root`: the list of a site's files, for the file table of a layer-4 front-end.

use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, UNIX_EPOCH};

use notify::{RecursiveMode, Watcher as _};
use plimsoll_report::format::count;

use crate::error::CliError;
use crate::output;

/// The most files of a list.
const MOST_FILES: usize = 10_000_000;
/// How long changes are gathered before the list is written anew.
const GATHER: Duration = Duration::from_millis(300);

/// Writes the list of the files below `root` to `out`, and with `watch` again after each change, until it is stopped.
pub(super) fn run(root: &Path, out: Option<&Path>, watch: bool) -> Result<(), CliError> {
    let failed = |error: notify::Error| {
        CliError::Failed(format!("cannot watch {}: {error}; leave --watch out", root.display()))
    };
    let (sender, changes) = mpsc::channel();
    // Before the first look, so that no change is missed.
    let watcher = watch.then(|| {
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                // Fails when nobody listens any more.
                let _ = sender.send(());
            }
        })?;
        watcher.watch(root, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    let watcher = watcher.transpose().map_err(failed)?;
    let mut written = None;
    loop {
        let (list, files) = list(root)?;
        let Some(out) = out else { return output::print(&list) };
        if written.as_ref() != Some(&list) {
            replace(out, &list).map_err(|error| CliError::writing(out, &error))?;
            eprintln!("Wrote {} files to {}.", count(files), out.display());
            written = Some(list);
        }
        if watcher.is_none() || changes.recv().is_err() {
            return Ok(());
        }
        std::thread::sleep(GATHER);
        while changes.try_recv().is_ok() {}
    }
}

/// So that a reader finds the old list or the new one.
fn replace(out: &Path, list: &str) -> io::Result<()> {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = out.with_file_name(name);
    fs::write(&new, list)?;
    fs::rename(&new, out)
}

/// The list, sorted by path, and its number of files.
fn list(root: &Path) -> Result<(String, u64), CliError> {
    let failed =
        |path: &Path, error: &io::Error| CliError::Failed(format!("cannot list {}: {error}", path.display()));
    let mut found: Vec<(String, Metadata)> = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            // It has gone while the list was made.
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory != *root => continue,
            Err(error) => return Err(failed(&directory, &error)),
        };
        for entry in entries {
            let path: PathBuf = entry.map_err(|error| failed(&directory, &error))?.path();
            // Links are not followed into directories, which may lead in a circle.
            let Ok(own) = fs::symlink_metadata(&path) else { continue };
            if own.is_dir() {
                directories.push(path);
                continue;
            }
            let Some(facts) = fs::metadata(&path).ok().filter(Metadata::is_file) else { continue };
            if found.len() >= MOST_FILES {
                return Err(CliError::Failed(format!(
                    "{} has more than {} files; give a directory below it",
                    root.display(),
                    count(MOST_FILES as u64)
                )));
            }
            let below = path.strip_prefix(root).unwrap_or(&path);
            found.push((as_asked_for(below), facts));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut list = String::new();
    for (path, facts) in &found {
        let modified = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        // Writing to a string does not fail.
        let _ = writeln!(list, "{} {} {path}", facts.len(), modified.unwrap_or_default().as_secs());
    }
    Ok((list, found.len() as u64))
}

/// The path as clients send it: RFC 3986, section 3.3, with everything encoded that may not stand in a path.
fn as_asked_for(path: &Path) -> String {
    let mut text = String::from("/");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use plimsoll_sniffer::FileTable;

    use super::*;

    #[test]
    fn a_list_that_the_file_table_reads() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub dir")).unwrap();
        fs::write(dir.path().join("a.html"), "12345").unwrap();
        fs::write(dir.path().join("sub dir/ä?.txt"), "").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("circle")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("broken")).unwrap();
        let (list, files) = list(dir.path()).unwrap();
        assert_eq!(files, 2);
        let table = FileTable::read(list.as_bytes(), 10).unwrap();
        assert_eq!(table.find(b"/a.html").unwrap().1.size_bytes, 5);
        assert_eq!(table.find(b"/sub%20dir/%C3%A4%3F.txt").unwrap().1.size_bytes, 0);
        let out = dir.path().join("list");
        replace(&out, &list).unwrap();
        assert_eq!(fs::read_to_string(&out).unwrap(), list);
    }
}
