//! The admission limit: how many requests the front-end lets into the cluster at once.

use super::growth::Growth;
use crate::cluster::ClusterView;
use crate::thresholds::Thresholds;

/// How many requests the front-end lets into the cluster at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionLimit {
    /// No limit.
    Unlimited,
    /// This many.
    Fixed(u64),
    /// LARD's S for the back-ends that are up (section 2.4).
    Lard(Thresholds),
    /// The same S, which grows while back-ends hold many requests without being overloaded; [`AdmissionLimit::requests`]
    /// is S.
    Adaptive(Thresholds),
}

impl AdmissionLimit {
    /// The limit for the cluster as it is now.
    #[must_use]
    pub fn requests(self, view: &ClusterView) -> u64 {
        match self {
            // Without a back-end requests wait for one to come up.
            _ if view.eligible() == 0 => 0,
            Self::Unlimited => u64::MAX,
            Self::Fixed(limit) => limit,
            Self::Lard(thresholds) | Self::Adaptive(thresholds) => thresholds.admission_limit(view),
        }
    }

    /// What an adaptive limit measures.
    pub(super) fn growth(self) -> Option<Box<Growth>> {
        matches!(self, Self::Adaptive(_)).then(Box::default)
    }
}

/// The admission limit, and how many requests may wait for room below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionControl {
    /// Requests in the cluster at once.
    pub limit: AdmissionLimit,
    /// Requests that wait at most; further ones are rejected.
    pub queue: usize,
}

impl AdmissionControl {
    /// No limit and no queue: without an eligible back-end, requests are rejected.
    pub const UNLIMITED: Self = Self { limit: AdmissionLimit::Unlimited, queue: 0 };

    /// `limit` with an unbounded queue.
    #[must_use]
    pub const fn queueing(limit: AdmissionLimit) -> Self {
        Self { limit, queue: usize::MAX }
    }
}
