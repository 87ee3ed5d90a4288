//! The findings of a check.

/// The status of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, but not in every case.
    Warning,
    /// It does not work.
    Missing,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was checked, with its interface or address.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// What was found, and what that means.
    pub meaning: String,
    /// A remedy, if there is a problem.
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(name: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Ok, meaning: meaning.into(), remedy: None }
    }

    pub(super) fn warning(
        name: impl Into<String>,
        meaning: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { name: name.into(), status: Status::Warning, meaning: meaning.into(), remedy }
    }

    pub(super) fn missing(
        name: impl Into<String>,
        meaning: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { status: Status::Missing, ..Self::warning(name, meaning, remedy) }
    }
}
