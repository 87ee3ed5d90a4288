//! The first line of an input and what was read from it, so that a misreading is seen.

use std::fmt;

use jiff::Timestamp;

use crate::format::Format;
use plimsoll_synth::Record;

/// How much of a line is shown, in characters.
const SHOWN: usize = 300;

/// How much of a line a message quotes.
const QUOTED_BYTES: usize = 200;

/// Seconds that lie after 1989 are taken for those since 1970.
const DATES_FROM_S: u64 = 600_000_000;

/// The first request of a trace, beside the line that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstLine {
    /// Input as the user named it.
    path: String,
    format: Format,
    /// Number and text of the line; `None` for a format whose records are no lines.
    line: Option<(u64, String)>,
    /// What was read, as pairs of name and value.
    read: Vec<(&'static str, String)>,
}

impl FirstLine {
    /// Of a line, by its number and text, and what was read from it.
    pub(crate) fn of_line(
        path: &str,
        format: Format,
        (number, line): (u64, &[u8]),
        read: Vec<(&'static str, String)>,
    ) -> Self {
        Self { path: path.to_owned(), format, line: Some((number, shown(line))), read }
    }

    /// Of a record, where the format has no lines that speak for themselves.
    pub(crate) fn of_record(path: &str, format: Format, record: &Record, target: &[u8]) -> Self {
        let read = vec![
            ("time", time_text(record.time_ns)),
            ("target", shown(target)),
            ("size", format!("{} bytes", record.size_bytes)),
        ];
        Self { path: path.to_owned(), format, line: None, read }
    }
}

impl fmt::Display for FirstLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, format, .. } = self;
        let path = if path == "-" { "standard input" } else { path };
        match &self.line {
            Some((number, text)) => {
                writeln!(f, "{path} is read as {format}. Line {number}:\n  {text}\nis read as")?;
            }
            None => writeln!(f, "{path} is read as {format}. Its first record is")?,
        }
        let read: Vec<String> = self.read.iter().map(|(name, value)| format!("{name} {value}")).collect();
        write!(f, "  {}", read.join(", "))
    }
}

/// A time as a date, if it is plausible as one.
pub(crate) fn time_text(time_ns: u64) -> String {
    let second = time_ns / 1_000_000_000;
    let date =
        (second >= DATES_FROM_S).then(|| Timestamp::from_nanosecond(i128::from(time_ns)).ok()).flatten();
    date.map_or_else(|| format!("{} s", time_ns as f64 / 1e9), |date| date.to_string())
}

/// Bytes of a log, short and safe for a terminal.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    let mut short = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == SHOWN {
            short.push('…');
            break;
        }
        match c {
            '\t' => short.push(' '),
            c if c.is_control() => short.extend(c.escape_default()),
            c => short.push(c),
        }
    }
    short
}

/// Part of a line in a message of one paragraph.
pub(crate) fn quoted(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(QUOTED_BYTES)]);
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{text}`")
}
