//! The errors of a configuration, reported together, each with place, reason and remedy.

use std::fmt;

/// A place in the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePosition {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file as the user named it.
    pub file: String,
    /// Its position; `None` for an error of the whole file, for example when it cannot be read.
    pub place: Option<FilePosition>,
    /// Dotted key, list entries counted from 0, e.g. `backend[1].address`; empty when there is none.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub remedy: String,
    /// The line and the marks below it.
    pub(crate) snippet: Option<Snippet>,
}

/// A line of the file with the erroneous part marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snippet {
    line: String,
    /// Characters before the marks.
    before: usize,
    /// Marks, at least 1.
    marks: usize,
}

impl Snippet {
    /// Characters shown of a line.
    const WIDTH: usize = 100;

    /// Of the line `line`, with `marks` characters from character `before` on.
    pub(crate) fn new(line: &str, before: usize, marks: usize) -> Self {
        // Scrolls the line so that a mark far to the right is visible.
        let skip = (before + 20).saturating_sub(Self::WIDTH);
        // Keeps control characters and bidirectional overrides from the terminal.
        let moves =
            |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let plain = |c: char| if moves(c) { ' ' } else { c };
        let line: String = line.chars().skip(skip).take(Self::WIDTH).map(plain).collect();
        let before = before - skip;
        let room = line.chars().count().saturating_sub(before);
        Self { line, before, marks: marks.min(room).max(1) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(FilePosition { line, column }) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for ConfigError {}

/// All errors of a configuration, in the order of the file; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// The most errors kept, so that a file of another kind does not fill the screen.
    const MOST: usize = 50;

    pub(crate) fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by_key(|e| e.place);
        errors.dedup();
        errors.truncate(Self::MOST);
        Self(errors)
    }

    /// A single error about the file as a whole.
    pub(crate) fn file(file: &str, what: String, remedy: &str) -> Self {
        let (file, remedy) = (file.to_owned(), remedy.to_owned());
        Self(vec![ConfigError { file, place: None, key: String::new(), what, remedy, snippet: None }])
    }

    /// The errors.
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.0
    }

    /// The errors with their lines, for a terminal. Lines that may hold a secret are left out.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        for error in &self.0 {
            out += &format!("{error}\n");
            if let (Some(Snippet { line, before, marks }), Some(place)) = (&error.snippet, error.place) {
                let number = place.line.to_string();
                let margin = " ".repeat(number.len());
                out += &format!("  {number} | {line}\n");
                out += &format!("  {margin} | {}{}\n", " ".repeat(*before), "^".repeat(*marks));
            }
        }
        out
    }
}

impl fmt::Display for ConfigErrors {
    /// One line for each error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
