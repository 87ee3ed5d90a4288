//! Whether front-ends share what a policy remembers of targets.

use plimsoll_policy::params::GivenValue;
use plimsoll_policy::{PolicySpec, registered};

/// Whose the tables of targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tables {
    /// Each front-end has its own.
    #[default]
    Separate,
    /// All front-ends have one, at once and for nothing; each has its own view of the loads.
    Shared,
}

impl Tables {
    /// `separate` or `shared`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn read(given: &GivenValue) -> Result<Self, String> {
        match given.to_string().as_str() {
            "separate" => Ok(Self::Separate),
            "shared" => Ok(Self::Shared),
            other => Err(format!("expected separate or shared, not `{other}`")),
        }
    }

    /// What [`Tables::read`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Shared => "shared",
        }
    }
}

/// Whether a policy has a table of targets that front-ends can share: it bounds their number, and neither asks back-ends nor takes
/// their reports.
pub(crate) fn has_table(policy: &PolicySpec) -> bool {
    let hears = |name: &&str| ["polls", "probes", "takes_reports"].contains(name);
    policy.params.iter().any(|param| param.name == "max_targets")
        && !policy.capabilities.names().iter().any(hears)
}

/// The names of such policies.
pub(crate) fn policies_with_tables() -> String {
    registered().filter(|policy| has_table(policy)).map(|policy| policy.name).collect::<Vec<_>>().join(", ")
}
