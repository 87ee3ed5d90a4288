//! Whether there is room under the admission limit.

use super::{AdmissionControl, AdmissionLimit, Core, Witness};
use crate::time::Time;

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

    /// Whether the admission limit and those of back-ends leave room for one more request, as far as is known at the time of the last input
    /// or [`Core::advance`].
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        (self.cluster.total_own_load() + self.reserved < self.limit || self.grows())
            && !self.cluster.all_full()
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
        // What an adaptive limit has measured still holds, and requests under way are part of it.
        if self.growth.is_some() != matches!(admission.limit, AdmissionLimit::Adaptive(_)) {
            self.growth = admission.limit.growth();
        }
        self.admission = admission;
        self.limit = admission.limit.requests(&self.cluster);
        self.witness.admission(admission, now);
    }

    /// An adaptive limit measures anew: requests of an earlier policy are not part of it.
    pub(super) fn set_limit(&mut self, admission: AdmissionControl) {
        self.admission = admission;
        self.limit = admission.limit.requests(&self.cluster);
        self.growth = admission.limit.growth();
    }
}
