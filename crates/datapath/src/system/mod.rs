//! Checks whether this machine can hand connections over or take them: what is missing, what that means, and
//! a remedy.

mod diagnosis;
mod facts;
mod finding;
mod judge;
mod raw;

use std::net::IpAddr;

pub use finding::{Finding, Status};

/// The role of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It forwards clients' packets.
    FrontEnd,
    /// It answers clients.
    Backend,
}

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its role.
    pub role: Role,
    /// Interfaces at which clients' packets arrive.
    pub interfaces: Vec<String>,
    /// Virtual addresses.
    pub vips: Vec<IpAddr>,
    /// The machines on the other side: back-ends of a front-end, front-ends of a back-end.
    pub peers: Vec<IpAddr>,
}

/// Checks the machine and returns all findings, good and bad. Tries the programs in a separate network
/// namespace, so nothing changes. Takes up to a second per peer that does not answer.
#[must_use]
pub fn check(question: &Question) -> Vec<Finding> {
    judge::judge(&facts::gather(question))
}
