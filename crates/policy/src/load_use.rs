//! Which load information a policy can use.

use std::fmt;

/// Where the loads that a front-end knows may come from.
const ALL: &[&str] = &["exact", "own", "broadcast", "poll", "central", "header"];
/// Those of them by which back-ends report.
const REPORTED: &[&str] = &["exact", "broadcast", "poll", "header"];

/// What a policy knows of loads when it decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadUse {
    /// Nothing: loads play no part.
    None,
    /// The loads in its view, wherever they come from.
    View,
    /// The answers of the back-ends that it asks before a choice. Where nobody carries its polls, the loads in its view answer them.
    Polls,
    /// What back-ends report: the answers to its probes, and load information that comes unasked.
    Reports,
    /// The loads in its view, and the response times that it sees itself.
    ViewAndResponseTimes,
}

impl LoadUse {
    /// Its name, in lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::View => "view",
            Self::Polls => "polls",
            Self::Reports => "reports",
            Self::ViewAndResponseTimes => "view_and_response_times",
        }
    }

    /// Whether back-ends are asked before its choices where loads are polled: it looks at loads, and does not ask by itself.
    #[must_use]
    pub const fn is_asked_for(self) -> bool {
        matches!(self, Self::View | Self::ViewAndResponseTimes)
    }

    /// The kinds of load information that it can use.
    #[must_use]
    pub const fn sources(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::View | Self::Polls | Self::ViewAndResponseTimes => ALL,
            Self::Reports => REPORTED,
        }
    }
}

/// As in the table of policies.
impl fmt::Display for LoadUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = self.sources().join(", ");
        match self {
            Self::None => f.write_str("none"),
            Self::View => f.write_str(&list),
            Self::Polls => write!(f, "{list}; asks by itself"),
            Self::Reports => write!(f, "{list}; probes by itself"),
            Self::ViewAndResponseTimes => write!(f, "{list}; and response times"),
        }
    }
}
