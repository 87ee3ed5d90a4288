//! Typed look-up in a parsed class file. Collects errors and continues.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file_error::ClassFileError;

/// The most errors noted.
const ERRORS_MOST: usize = 200;

/// The lines of the file and its errors so far.
pub(super) struct FileReader<'a> {
    /// Where each line begins.
    lines: Vec<usize>,
    text: &'a str,
    pub(super) errors: Vec<ClassFileError>,
}

/// A table of the file, under its dotted key.
pub(super) struct ClassFileTable<'a> {
    pub(super) key: String,
    pub(super) span: Range<usize>,
    pub(super) table: &'a DeTable<'a>,
}

impl<'a> FileReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { lines, text, errors: Vec::new() }
    }

    /// The line, from 1, of a place in the text.
    pub(super) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|&begin| begin <= at.min(self.text.len()))
    }

    pub(super) fn wrong(&mut self, key: &str, span: Range<usize>, what: &str, remedy: &str) {
        let line = self.line(span.start);
        self.wrong_line(key, line, what, remedy);
    }

    pub(super) fn wrong_line(&mut self, key: &str, line: usize, what: &str, remedy: &str) {
        self.note(Some(line), key, what, remedy);
    }

    pub(super) fn wrong_file(&mut self, key: &str, what: &str, remedy: &str) {
        self.note(None, key, what, remedy);
    }

    fn note(&mut self, line: Option<usize>, key: &str, what: &str, remedy: &str) {
        if self.errors.len() < ERRORS_MOST {
            let [key, what, remedy] = [key, what, remedy].map(printable);
            self.errors.push(ClassFileError { line, key, what, remedy });
        }
    }

    /// Reports keys that are not among those known.
    pub(super) fn unknown_keys(&mut self, parent: &str, table: &DeTable<'_>, known: &[&str]) {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let remedy = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", known.join(", ")),
            };
            let dotted = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
            self.wrong(&dotted, key.span(), "there is no such key", &remedy);
        }
    }

    /// The text under a key, if it is there.
    pub(super) fn text<'t>(
        &mut self,
        table: &ClassFileTable<'t>,
        name: &str,
    ) -> Option<(&'t str, Range<usize>)> {
        let value = table.table.get(name)?;
        match value.get_ref() {
            DeValue::String(text) => Some((text.as_ref(), value.span())),
            other => {
                let remedy = format!("write `{name} = \"…\"` with a text in double quotes");
                self.wrong(&table.of(name), value.span(), &format!("is {}", kind(other)), &remedy);
                None
            }
        }
    }

    /// The text under a key that has to be there.
    pub(super) fn needed_text<'t>(
        &mut self,
        table: &ClassFileTable<'t>,
        name: &str,
        with: &str,
    ) -> Option<(&'t str, Range<usize>)> {
        if table.table.get(name).is_none() {
            self.wrong(
                &table.of(name),
                table.span.clone(),
                "is missing",
                &format!("write `{name} = \"…\"` with {with}"),
            );
        }
        self.text(table, name)
    }

    /// The number under a key, from 0 to `most`; `None` if it is not there or wrong.
    pub(super) fn number(&mut self, table: &ClassFileTable<'_>, name: &str, most: f64) -> Option<f64> {
        let value = table.table.get(name)?;
        let key = table.of(name);
        let remedy = format!("write a number from 0 to {most}");
        let Some(number) = as_number(value) else {
            self.wrong(&key, value.span(), &format!("is {}", kind(value.get_ref())), &remedy);
            return None;
        };
        if !(0.0..=most).contains(&number) {
            self.wrong(&key, value.span(), &format!("{number} is out of range"), &remedy);
            return None;
        }
        Some(number)
    }

    /// The whole number under a key, from 0 to `most`; 0 if it is not there.
    pub(super) fn count(&mut self, table: &ClassFileTable<'_>, name: &str, most: u64) -> u64 {
        let Some(value) = table.table.get(name) else { return 0 };
        let found = match value.get_ref() {
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok().filter(|n| *n <= most),
            _ => None,
        };
        if found.is_none() {
            let what = format!(
                "is {}",
                if value.get_ref().is_integer() { "out of range" } else { kind(value.get_ref()) }
            );
            self.wrong(
                &table.of(name),
                value.span(),
                &what,
                &format!("write a whole number from 0 to {most}"),
            );
        }
        found.unwrap_or(0)
    }
}

impl ClassFileTable<'_> {
    /// The dotted key of a name in this table.
    pub(super) fn of(&self, name: &str) -> String {
        format!("{}.{name}", self.key)
    }
}

fn as_number(value: &Spanned<DeValue<'_>>) -> Option<f64> {
    match value.get_ref() {
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
        DeValue::Float(x) => x.as_str().parse().ok(),
        _ => None,
    }
}

/// A value's type in words.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with decimals",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The known name that is most like `name`, if one is.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Names are short; a long one is no slip.
    if name.len() > 100 {
        return None;
    }
    let distance = |other: &&str| strsim::damerau_levenshtein(name, other);
    known
        .filter(|other| !other.is_empty() && other.len() <= 100)
        .min_by_key(distance)
        .filter(|near| distance(near) <= 2)
}

/// A text without characters that move a terminal's cursor, and not too long.
fn printable(text: &str) -> String {
    const MOST: usize = 300;
    let moves = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out: String = text.chars().take(MOST).map(|c| if moves(c) { ' ' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        out.push('…');
    }
    out
}
