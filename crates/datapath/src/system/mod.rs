//! Whether this machine can hand connections over or take them: what is missing, what that means, and what helps.

mod diagnosis;
mod facts;
mod finding;
mod judge;
mod raw;

use std::net::IpAddr;

pub use finding::{Finding, Status};

/// What a machine is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It forwards clients' packets.
    FrontEnd,
    /// It answers clients.
    Backend,
}

/// What is asked about a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What it is to be.
    pub role: Role,
    /// Interfaces at which clients' packets arrive.
    pub interfaces: Vec<String>,
    /// Virtual addresses.
    pub vips: Vec<IpAddr>,
    /// The machines on the other side: back-ends of a front-end, front-ends of a back-end.
    pub peers: Vec<IpAddr>,
}

/// Looks at the machine and says what it found, the good and the bad. Programs are tried in a network namespace of their
/// own, so nothing changes. Takes up to a second for each peer that does not answer.
#[must_use]
pub fn check(question: &Question) -> Vec<Finding> {
    judge::judge(&facts::gather(question))
}
