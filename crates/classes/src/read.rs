//! From the text of a class file to a table.

mod classes;
mod patterns;
mod reader;

use toml::de::{DeTable, DeValue};

use crate::bounds::FILE_BYTES_MOST;
use crate::file_error::ClassFileErrors;
use crate::read::classes::ReadClasses;
use crate::read::patterns::ReadPatterns;
use crate::read::reader::FileReader;
use crate::shadow::shadowed;
use crate::table::{ClassTable, ClassTableError};

/// A table that was read, and what is odd about its file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadClassTable {
    /// The table.
    pub table: ClassTable,
    /// What is no error but most likely not meant, such as patterns that no request can reach. Each names its lines.
    pub warnings: Vec<String>,
}

impl ClassTable {
    /// Reads the text of a class file: `[[class]]` and `[[pattern]]` tables in TOML.
    ///
    /// # Errors
    /// All errors of the file, each with line, key and what would be right.
    pub fn read(text: &str) -> Result<ReadClassTable, ClassFileErrors> {
        let mut reader = FileReader::new(text);
        if text.len() > FILE_BYTES_MOST {
            let what = format!("is larger than {} MiB", FILE_BYTES_MOST >> 20);
            reader.wrong_file("", &what, "merge classes, or name a class file");
            return Err(ClassFileErrors::new(reader.errors));
        }
        let (root, syntax) = DeTable::parse_recoverable(text);
        for error in &syntax {
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            let what = format!("not valid TOML: {message}");
            reader.wrong(
                "",
                error.span().unwrap_or(0..0),
                &what,
                "write one `key = value` a line, text in double quotes",
            );
        }
        if !syntax.is_empty() {
            // A recovering parser could only guess at the rest.
            return Err(ClassFileErrors::new(reader.errors));
        }
        read(&mut reader, root.get_ref()).ok_or_else(|| ClassFileErrors::new(reader.errors))
    }
}

fn read(reader: &mut FileReader<'_>, root: &DeTable<'_>) -> Option<ReadClassTable> {
    reader.unknown_keys("", root, &["class", "pattern"]);
    let found = tables(reader, root, "class");
    let classes = ReadClasses::read(reader, found);
    let found = tables(reader, root, "pattern");
    let patterns = ReadPatterns::read(reader, found, &classes);
    if !reader.errors.is_empty() {
        return None;
    }
    let lines = |place: usize| patterns.lines.get(place).copied().unwrap_or(0);
    let mut warnings: Vec<String> = shadowed(&patterns.patterns)
        .into_iter()
        .map(|found| {
            let [one, rest] = found.by.map(lines);
            format!(
                "line {}: pattern[{}] is never used: the patterns in lines {one} and {rest} are deeper and match the same requests",
                lines(found.pattern),
                found.pattern,
            )
        })
        .collect();
    for (at, class) in classes.classes.iter().enumerate() {
        if !patterns.patterns.iter().any(|pattern| usize::from(pattern.class) == at + 1) {
            let line = classes.lines.get(at).copied().unwrap_or(0);
            warnings.push(format!("line {line}: no pattern leads to the class `{}`", class.name));
        }
    }
    match ClassTable::new(classes.classes, classes.merged, patterns.patterns) {
        Ok(table) => Some(ReadClassTable { table, warnings }),
        Err(ClassTableError::Pattern { place, what }) => {
            reader.wrong_line(
                &format!("pattern[{place}]"),
                lines(place),
                what,
                "see docs/classify.md for the bounds",
            );
            None
        }
        Err(error) => {
            reader.wrong_file("", &error.to_string(), "see docs/classify.md for the bounds");
            None
        }
    }
}

/// The tables under a key, with their places in the file.
fn tables<'a>(
    reader: &mut FileReader<'_>,
    root: &'a DeTable<'a>,
    key: &str,
) -> Vec<(std::ops::Range<usize>, &'a DeTable<'a>)> {
    let Some(value) = root.get(key) else { return Vec::new() };
    let remedy = format!("write each as a table [[{key}]]");
    let Some(list) = value.get_ref().as_array() else {
        reader.wrong(key, value.span(), "is no list of tables", &remedy);
        return Vec::new();
    };
    let mut out = Vec::with_capacity(list.len());
    for item in list {
        match item.get_ref() {
            DeValue::Table(table) => out.push((item.span(), table)),
            _ => reader.wrong(key, item.span(), "is no table", &remedy),
        }
    }
    out
}

#[cfg(test)]
mod tests;
