//! Why a back-end was chosen.

use plimsoll_policy::BackendId;

/// Why a request was given to the back-end that it was given to, as far as it shows from outside the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The policy keeps no assignment of targets.
    Load,
    /// The target had no back-end yet.
    New,
    /// The back-end serves this target already.
    Locality,
    /// The target's back-ends were passed over.
    Moved,
    /// Nobody was asked: the back-end has the connection.
    Stays,
    /// Nobody was asked: the back-end was ejected, and the request tries whether it answers.
    Trial,
}

impl Reason {
    /// The word for logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::New => "new",
            Self::Locality => "locality",
            Self::Moved => "moved",
            Self::Stays => "stays",
            Self::Trial => "trial",
        }
    }

    /// Why a policy has chosen `backend`, if it had assigned the target to `before` (`None` where nobody has looked), and keeps state
    /// of so many targets now.
    #[must_use]
    pub fn of_choice(before: Option<&[BackendId]>, backend: BackendId, tracked_targets: usize) -> Self {
        match before {
            Some(set) if set.contains(&backend) => Self::Locality,
            Some(set) if !set.is_empty() => Self::Moved,
            Some(_) if tracked_targets > 0 => Self::New,
            _ => Self::Load,
        }
    }
}
