//! Reads a file table from a list of files.
//!
//! A line is `SIZE MODIFIED PATH`: bytes, seconds since 1970, and the path from its slash on, percent-encoded as clients send it.
//! `find DIR -type f -printf '%s %T@ /%P\n'` writes such a list.

use crate::file_table::{FileTable, SiteFile, TableFull};

/// The longest list in bytes.
pub const MOST_LIST_BYTES: usize = 1 << 30;

/// Why a list of files cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileListError {
    /// A line is none.
    #[error(
        "line {line}: {what}; a line is SIZE MODIFIED PATH, as `find DIR -type f -printf '%s %T@ /%P\\n'` writes it"
    )]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// There are too many.
    #[error("line {line}: {full}")]
    Full {
        /// The line, from 1.
        line: usize,
        /// The bound.
        full: TableFull,
    },
    /// A path twice.
    #[error("line {line}: this path is there already; leave one of both lines out")]
    Twice {
        /// The line, from 1.
        line: usize,
    },
    /// The list is too long.
    #[error("the list is longer than {} MiB", MOST_LIST_BYTES >> 20)]
    TooLong,
}

impl FileTable {
    /// The table of a list of files, with room for `most`.
    ///
    /// # Errors
    /// On the first line that is none, names a path again, or is one too many.
    pub fn read(list: &[u8], most: usize) -> Result<Self, FileListError> {
        if list.len() > MOST_LIST_BYTES {
            return Err(FileListError::TooLong);
        }
        let mut table = Self::new(most);
        for (index, text) in list.split(|&byte| byte == b'\n').enumerate() {
            let line = index + 1;
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.is_empty() {
                continue;
            }
            let (path, file) = parse(text).map_err(|what| FileListError::Line { line, what })?;
            let before = table.len();
            table.set(path, file).map_err(|full| FileListError::Full { line, full })?;
            if table.len() == before {
                return Err(FileListError::Twice { line });
            }
        }
        Ok(table)
    }
}

fn parse(text: &[u8]) -> Result<(&[u8], SiteFile), &'static str> {
    let mut parts = text.splitn(3, |&byte| byte == b' ' || byte == b'\t');
    let size_bytes = number(parts.next()).ok_or("its size is no whole number of bytes")?;
    let modified = parts.next().map(|seconds| seconds.split(|&byte| byte == b'.').next().unwrap_or(seconds));
    let modified_unix_s = number(modified).ok_or("its time is no number of seconds")?;
    let path =
        parts.next().filter(|path| path.first() == Some(&b'/')).ok_or("its path begins with no slash")?;
    Ok((path, SiteFile { size_bytes, modified_unix_s }))
}

fn number(text: Option<&[u8]>) -> Option<u64> {
    std::str::from_utf8(text?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_find_writes_them() {
        let table = FileTable::read(b"17 1700000000.5000000000 /a b.html\n\n0 5 /c\r\n", 10).unwrap();
        let file = table.find(b"/a b.html").unwrap().1;
        assert_eq!(file, SiteFile { size_bytes: 17, modified_unix_s: 1_700_000_000 });
        assert_eq!((table.find(b"/c").unwrap().1.size_bytes, table.len()), (0, 2));
    }

    #[test]
    fn errors_name_the_line_and_what_is_right() {
        let error = |list: &str, most| FileTable::read(list.as_bytes(), most).unwrap_err().to_string();
        for (list, what) in [
            ("1 2 /a\nx 2 /b", "line 2: its size"),
            ("-1 2 /a", "line 1: its size"),
            ("1 x /a", "line 1: its time"),
            ("1 2", "line 1: its path"),
            ("1 2 a", "line 1: its path"),
            ("1 2 /a\n1 3 /a", "line 2: this path is there already"),
        ] {
            assert!(error(list, 10).starts_with(what), "{list:?}: {}", error(list, 10));
        }
        assert!(error("1 2 x", 1).contains("find DIR"));
        assert_eq!(error("1 2 /a\n1 2 /b", 1), "line 2: a file table has room for 1 documents");
    }
}
