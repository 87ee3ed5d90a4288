//! Checks whether this machine can hand connections over or take them: what is missing, what that means, and
//! a remedy.

mod diagnosis;
mod facts;
mod finding;
mod judge;
mod question;
mod raw;

pub use finding::{Finding, Status};
pub use question::{Question, Role};

/// Checks the machine and returns all findings, good and bad. Tries the programs in a separate network
/// namespace, so nothing changes. Takes up to a second per peer that does not answer.
#[must_use]
pub fn check(question: &Question) -> Vec<Finding> {
    judge::judge(&facts::gather(question))
}
