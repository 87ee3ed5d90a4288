//! The access log and the decision log.

use std::path::{Component, Path, PathBuf};

use crate::model::{AccessLog, AccessLogFormat, DecisionLogConfig, WhenFull};
use crate::reader::{Reader, Section, Wrong};

/// The access log.
pub(super) fn access<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<AccessLog> {
    let name = reader.text(section, "file", |text| path(text).map(str::to_owned));
    let format = match reader.choice(section, "format") {
        "json" => AccessLogFormat::Json,
        _ => AccessLogFormat::Combined,
    };
    let name = name?;
    let file = (name != "-").then(|| reader.resolve(&name));
    if file.as_ref().is_some_and(|f| f.is_dir()) {
        let wrong = ("is a directory".to_owned(), "name a file in it, e.g. \"access.log\"".to_owned());
        reader.wrong(&section.key("file"), section.span_of("file"), wrong);
    }
    Some(AccessLog { file, format })
}

/// The decision log.
pub(super) fn decisions<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<DecisionLogConfig> {
    let name = reader.text(section, "directory", |text| path(text).map(str::to_owned));
    let file_bytes = reader.size(section, "file_size").unwrap_or_default();
    let files = usize::try_from(reader.integer(section, "files")).unwrap_or(1);
    let when_full = match reader.choice(section, "when_full") {
        "stop" => WhenFull::Stop,
        _ => WhenFull::Rotate,
    };
    let directory = reader.resolve(&name?);
    if directory.is_file() {
        let wrong = ("is a file".to_owned(), "name a directory".to_owned());
        reader.wrong(&section.key("directory"), section.span_of("directory"), wrong);
    }
    Some(DecisionLogConfig { directory, file_bytes, files, when_full })
}

/// A path that could name something.
pub(super) fn path(text: &str) -> Result<&str, Wrong> {
    if text.is_empty() || text.contains('\0') {
        let what = if text.is_empty() { "is empty" } else { "contains a NUL" };
        return Err((
            what.to_owned(),
            "write a path, relative to the configuration file or absolute".to_owned(),
        ));
    }
    Ok(text)
}

/// A path without `.` and, where that can be told from the path alone, without `..`.
pub(super) fn plain(path: &Path) -> PathBuf {
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
