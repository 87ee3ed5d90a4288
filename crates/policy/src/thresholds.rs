//! LARD's load thresholds and what follows from them (Pai et al., ASPLOS 1998, section 2.4).

use crate::cluster::ClusterView;
use crate::params::ParamSet;

/// `T_low` and `T_high`, in requests on a back-end of weight 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Load below which a back-end is likely to have idle resources.
    pub t_low: u32,
    /// Load above which a back-end is likely to delay requests substantially.
    pub t_high: u32,
}

impl Default for Thresholds {
    /// The paper's 25 and 65, found good for all its workloads.
    fn default() -> Self {
        Self { t_low: 25, t_high: 65 }
    }
}

impl Thresholds {
    /// `t_low` and `t_high` of a policy with these parameters, or the defaults where it has none.
    #[must_use]
    pub fn of(params: &ParamSet) -> Self {
        let default = Self::default();
        Self {
            t_low: params.get("t_low").unwrap_or(default.t_low),
            t_high: params.get("t_high").unwrap_or(default.t_high),
        }
    }

    /// The admission limit S = (n − 1)·T_high + T_low − 1: at most n − 2 back-ends can then be at `T_high` or above
    /// while none is below `T_low`. With weights, n is the sum of the weights of the back-ends that take requests.
    /// At least 1, so that a cluster with any back-end at all makes progress; 0 without back-ends.
    #[must_use]
    pub fn admission_limit(self, view: &ClusterView) -> u64 {
        if view.eligible() == 0 { 0 } else { self.limit(view.eligible_weight_steps()) }
    }

    /// The same of so many back-ends of weight 1, one at least.
    #[must_use]
    pub fn admission_limit_of(self, backends: usize) -> u64 {
        self.limit(256 * backends as u64)
    }

    /// `n_steps`: the sum of the weights in steps of 1/256.
    fn limit(self, n_steps: u64) -> u64 {
        let above = n_steps.saturating_sub(256) * u64::from(self.t_high) / 256;
        (above + u64::from(self.t_low)).saturating_sub(1).max(1)
    }

    /// The largest `T_high` that keeps the delay difference between back-ends within `max_delay_s`, given a mean
    /// service time of `service_s`: (T_low + D/R)/2, and at least T_low + 1.
    #[must_use]
    pub fn t_high_for_delay(t_low: u32, max_delay_s: f64, service_s: f64) -> u32 {
        (((f64::from(t_low) + max_delay_s / service_s) / 2.0) as u32).max(t_low.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BackendId, Cluster};
    use crate::weight::Weight;

    #[test]
    fn s_by_hand() {
        let limit = |n| Thresholds::default().admission_limit(&Cluster::new(n));
        assert_eq!(limit(0), 0);
        assert_eq!(limit(1), 24);
        assert_eq!(limit(2), 89);
        assert_eq!(limit(16), 15 * 65 + 24);
        for n in [1, 2, 16] {
            assert_eq!(Thresholds::default().admission_limit_of(n), limit(n));
        }
        let tiny = Thresholds { t_low: 1, t_high: 2 };
        assert_eq!(tiny.admission_limit(&Cluster::new(1)), 1);
    }

    #[test]
    fn weights_count_as_backends() {
        let mut c = Cluster::new(2);
        c.set_weight(BackendId(0), Weight::new(3.0).unwrap());
        assert_eq!(Thresholds::default().admission_limit(&c), 3 * 65 + 24);
    }

    #[test]
    fn t_high_from_a_delay_bound() {
        // D = 2 s, R = 20 ms: (25 + 100) / 2.
        assert_eq!(Thresholds::t_high_for_delay(25, 2.0, 0.02), 62);
        assert_eq!(Thresholds::t_high_for_delay(25, 0.1, 0.02), 26);
    }
}
