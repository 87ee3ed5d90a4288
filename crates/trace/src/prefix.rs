//! The first bytes of an input, and how much they resemble a format.

use std::path::Path;

/// How much an input resembles a format. A greater one wins; of equals the first in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// Not at all.
    None,
    /// By a name that is common for it.
    CommonName,
    /// Its bytes could be such records.
    Records,
    /// By a name that is its own.
    OwnName,
    /// So many of the first lines are of its form.
    Lines(usize),
    /// It begins with a header line of its own.
    Header,
    /// It begins with bytes that mark the format.
    Mark,
}

/// What editors and spreadsheets put before text in UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether an input is text that begins with [`BYTE_ORDER_MARK`].
pub(crate) fn is_marked_text(first: &[u8]) -> bool {
    first.starts_with(BYTE_ORDER_MARK) && memchr::memchr(0, first).is_none()
}

/// How many lines of the prefix are tried.
const PROBED_LINES: usize = 100;

/// The first bytes of an input, after decompression, and its name.
pub(crate) struct Prefix<'a> {
    /// The bytes.
    pub(crate) bytes: &'a [u8],
    /// File name in lower case; empty where there is none.
    pub(crate) name: String,
    /// Whether no byte is NUL.
    text: bool,
}

impl<'a> Prefix<'a> {
    pub(crate) fn new(bytes: &'a [u8], path: Option<&Path>) -> Self {
        let name = path.and_then(Path::file_name).map(|name| name.to_string_lossy().to_ascii_lowercase());
        Self { bytes, name: name.unwrap_or_default(), text: memchr::memchr(0, bytes).is_none() }
    }

    /// Whether there is something, and no byte of it is NUL: binary formats have such bytes within a record or two.
    pub(crate) fn is_text(&self) -> bool {
        self.text && !self.bytes.is_empty()
    }

    /// The first lines that are not empty, with their numbers, without a last one that may be cut off; none of binary
    /// data.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let end = memchr::memrchr(b'\n', self.bytes).unwrap_or(self.bytes.len());
        let text = if self.text { &self.bytes[..end] } else { &[] };
        (1..)
            .zip(text.split(|&b| b == b'\n'))
            .map(|(number, line)| (number, line.strip_suffix(b"\r").unwrap_or(line)))
            .filter(|(_, line)| !line.is_empty())
            .take(PROBED_LINES)
    }

    /// Those lines without their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.numbered().map(|(_, line)| line)
    }

    /// How many of those lines pass `test`.
    pub(crate) fn lines_like(&self, test: impl Fn(&[u8]) -> bool) -> Likeness {
        match self.lines().filter(|line| test(line)).count() {
            0 => Likeness::None,
            count => Likeness::Lines(count),
        }
    }
}
