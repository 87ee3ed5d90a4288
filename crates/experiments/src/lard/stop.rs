//! Why a measurement was not made.

use std::fmt;

use plimsoll_lab::LabError;

use crate::ExperimentError;

/// Why there are no measurements.
pub(super) enum Stop {
    /// This machine does not support it, or was too busy.
    NotHere(String),
    /// It failed after it had begun.
    Failed(ExperimentError),
}

impl Stop {
    /// This machine cannot do it, for this reason.
    pub(super) fn not_here(why: &impl fmt::Display) -> Self {
        Self::NotHere(one_line(&why.to_string()))
    }
}

impl From<ExperimentError> for Stop {
    fn from(error: ExperimentError) -> Self {
        Self::Failed(error)
    }
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Self {
        Self::Failed(error.into())
    }
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_one_line() {
        assert_eq!(
            one_line("no link\n  b0: no root\n\n  b1: no root.\n"),
            "no link; b0: no root; b1: no root"
        );
    }
}
