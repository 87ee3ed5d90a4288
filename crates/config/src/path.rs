//! Paths in the configuration.

use std::path::{Component, Path, PathBuf};

use crate::reader::Wrong;

/// Checks that a path is usable.
pub(crate) fn path(text: &str) -> Result<&str, Wrong> {
    if text.is_empty() || text.contains('\0') {
        let what = if text.is_empty() { "is empty" } else { "contains a NUL" };
        return Err((
            what.to_owned(),
            "write a path, relative to the configuration file or absolute".to_owned(),
        ));
    }
    Ok(text)
}

/// A path without `.` and, as far as possible without looking at the file system, without `..`.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
