//! The policies that an advice weighs against one another: those that every balancer has, hashing, and those that know targets.

/// What a policy goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// By turns or loads alone.
    Blind,
    /// By a hash of the target.
    Hashing,
    /// By where targets have been served, and by loads.
    Aware,
}

/// A policy that takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contestant {
    /// Its name in the registry.
    pub policy: &'static str,
    /// The same, short enough for a column of a terminal.
    pub short: &'static str,
    /// What it goes by.
    pub kind: PolicyKind,
}

const fn of(policy: &'static str, short: &'static str, kind: PolicyKind) -> Contestant {
    Contestant { policy, short, kind }
}

/// What the others are measured against: what most balancers do unless told otherwise.
pub const BASELINE: &str = "round_robin";

/// All of them, the baseline first.
pub const CONTESTANTS: &[Contestant] = &[
    of(BASELINE, "rr", PolicyKind::Blind),
    of("least_connections", "lc", PolicyKind::Blind),
    of("uri_hash", "uri_hash", PolicyKind::Hashing),
    of("bounded_load_hash", "bounded", PolicyKind::Hashing),
    of("lard_r", "lard_r", PolicyKind::Aware),
    of("lard_auto", "lard_auto", PolicyKind::Aware),
];

/// Whether this policy sends requests where it does whatever load is there.
pub(super) fn is_static(policy: &str) -> bool {
    policy == "uri_hash"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_registered_and_the_baseline_is_the_first() {
        for contestant in CONTESTANTS {
            assert_eq!(plimsoll_policy::find(contestant.policy).unwrap().name, contestant.policy);
        }
        assert_eq!(CONTESTANTS[0].policy, BASELINE);
    }
}
