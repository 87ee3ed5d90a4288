//! The admission limit: how many requests the front-end lets into the cluster at once.

use super::growth::Growth;
use super::{Core, Witness};
use crate::cluster::ClusterView;
use crate::thresholds::Thresholds;
use crate::time::Time;

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

impl<W: Witness> Core<W> {
    /// The admission limit S now, in requests.
    #[must_use]
    pub fn admission_limit(&self) -> u64 {
        self.limit
    }

    /// The admission limit and the length of the queue, as set.
    #[must_use]
    pub fn admission(&self) -> AdmissionControl {
        self.admission
    }

    /// Whether the admission limit leaves room for one more request, as far as is known at the time of the last input
    /// or [`Core::advance`].
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        self.cluster.total_load() + self.reserved < self.limit || self.grows()
    }

    /// Whether an adaptive limit may grow: back-ends hold many requests, but are not overloaded.
    #[must_use]
    pub fn may_grow(&self) -> bool {
        self.growth.as_ref().is_some_and(|growth| !growth.overloaded(&self.cluster))
    }

    fn grows(&self) -> bool {
        self.growth.as_ref().is_some_and(|g| g.has_room(self.limit, self.reserved, &self.cluster))
    }

    /// Time has come to `now`: an adaptive limit may leave room without any other input.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        if let Some(growth) = &mut self.growth {
            growth.advance(now);
        }
    }

    /// Sets the admission limit and the queue length. Waiting requests stay, even beyond the new length.
    pub fn set_admission(&mut self, admission: AdmissionControl, now: Time) {
        self.set_limit(admission);
        self.witness.admission(admission, now);
    }

    /// An adaptive limit measures anew: a decision log that begins here knows nothing of what was before.
    pub(super) fn set_limit(&mut self, admission: AdmissionControl) {
        self.admission = admission;
        self.limit = admission.limit.requests(&self.cluster);
        self.growth = admission.limit.growth();
    }
}
