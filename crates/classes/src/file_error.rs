//! What is wrong with a class file.

use std::fmt;

/// The most errors that are kept, so that a file of another kind does not fill the screen.
const ERRORS_MOST: usize = 50;

/// One error of a class file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassFileError {
    /// Line, from 1; `None` for an error of the whole file.
    pub line: Option<usize>,
    /// Dotted key, list entries counted from 0, as `class[1].cpu_s`; empty where there is none.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub remedy: String,
}

impl fmt::Display for ClassFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

/// All errors of a class file in the order of its lines; never empty. Shown one a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassFileErrors(Vec<ClassFileError>);

impl ClassFileErrors {
    pub(crate) fn new(mut errors: Vec<ClassFileError>) -> Self {
        errors.sort_by_key(|error| error.line);
        errors.dedup();
        errors.truncate(ERRORS_MOST);
        Self(errors)
    }

    /// The errors; of a very wrong file the first 50.
    #[must_use]
    pub fn errors(&self) -> &[ClassFileError] {
        &self.0
    }
}

impl fmt::Display for ClassFileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ClassFileErrors {}
