//! Paths in the configuration.

use std::marker::PhantomData;
use std::path::{Component, Path, PathBuf};

use crate::declare::KeyForm;
use crate::reader::{ConfigReader, DeclaredTable, Wrong};
use crate::value::ConfigValue;

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

/// The text of a key that is a path, or the word `none` for no path; then `None` inside.
pub(crate) fn read_optional<'a>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    name: &str,
    none: &str,
) -> Option<Option<String>> {
    let text = reader.text(section, name, |text| path(text).map(str::to_owned))?;
    Some((text != none).then_some(text))
}

/// As [`read_optional`] would read it.
pub(crate) fn show_optional(path: Option<&PathBuf>, none: &str) -> Option<ConfigValue> {
    Some(ConfigValue::Text(path.map_or_else(|| none.to_owned(), |path| path.display().to_string())))
}

/// A word in place of a path, for no path.
pub(crate) trait NoPath {
    const WORD: &'static str;
}

/// No file.
pub(crate) struct NoFile;

impl NoPath for NoFile {
    const WORD: &'static str = "none";
}

/// What the system has.
pub(crate) struct SystemsOwn;

impl NoPath for SystemsOwn {
    const WORD: &'static str = "system";
}

/// The path of a file that is read, and read again with each reload, or the word for no path.
pub(crate) struct FileOr<N>(PhantomData<N>);

impl<N: NoPath> KeyForm<Option<PathBuf>> for FileOr<N> {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<PathBuf>> {
        let text = read_optional(reader, section, name, N::WORD)?;
        Some(text.map(|text| reader.file(&text)))
    }

    fn show(path: &Option<PathBuf>) -> Option<ConfigValue> {
        show_optional(path.as_ref(), N::WORD)
    }
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
