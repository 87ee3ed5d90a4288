//! What follows from health, weights and limits.

use super::{BackendId, Cluster};
use crate::min_blocks::MinBlocks;
use crate::weight::RelativeLoad;

impl Cluster {
    /// Recomputes everything derived from health and weight. Membership changes are rare enough for that.
    pub(super) fn refresh(&mut self) {
        let v = &mut self.view;
        (v.eligible, v.eligible_weight, v.uniform, v.full) = (0, 0, true, 0);
        let mut first = None;
        let mut relative = vec![RelativeLoad::INELIGIBLE; v.counted.len()];
        for (i, relative) in relative.iter_mut().enumerate() {
            if v.takes_requests(BackendId::new(i)) {
                *relative = v.relative_now(BackendId::new(i));
                v.full += usize::from(v.is_full(BackendId::new(i)));
                v.eligible += 1;
                v.eligible_weight += u64::from(v.counted[i].weight.steps());
                v.uniform &= *first.get_or_insert(v.counted[i].weight) == v.counted[i].weight;
            }
        }
        v.relative = MinBlocks::new(&relative);
        v.generation += 1;
    }
}
