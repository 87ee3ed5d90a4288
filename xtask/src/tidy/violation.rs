//! What a rule reports.

use std::fmt;

/// One place that breaks a rule. Sorts by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Path from the root of the repository.
    pub(super) file: String,
    /// Line from 1.
    pub(super) line: usize,
    /// Name of the rule.
    pub(super) rule: &'static str,
    /// What is wrong and what to do.
    pub(super) remedy: String,
}

impl Violation {
    pub(super) fn new(file: &str, line: usize, rule: &'static str, remedy: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, rule, remedy: remedy.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.rule, self.remedy)
    }
}
