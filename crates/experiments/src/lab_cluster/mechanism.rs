//! What takes requests to the back-ends of a lab's cluster.

use std::fmt;

use plimsoll_config::MechanismKind;

/// What takes requests to back-ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabMechanism {
    /// The front-end, with this mechanism.
    FrontEnd(MechanismKind),
    /// Back-ends are nodes of Socket Cloning, and the front-end distributes connections among them at layer 4.
    Clone,
}

impl LabMechanism {
    /// The mechanism of the front-end.
    #[must_use]
    pub fn of_front_end(self) -> MechanismKind {
        match self {
            Self::FrontEnd(kind) => kind,
            Self::Clone => MechanismKind::Direct,
        }
    }
}

impl From<MechanismKind> for LabMechanism {
    fn from(kind: MechanismKind) -> Self {
        Self::FrontEnd(kind)
    }
}

impl fmt::Display for LabMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrontEnd(kind) => kind.fmt(f),
            Self::Clone => f.pad("clone"),
        }
    }
}
