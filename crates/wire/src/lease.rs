//! A front-end's bounds on an agent's clock, and the leases that it grants in terms of that clock.
//!
//! An agent sends its clock in [`FromAgent::Pong`](crate::message::FromAgent::Pong) and when a link begins.
//! By the time the front-end reads it, the agent's clock is past that value, and from then on both clocks run
//! at about the same rate. So the front-end has a *floor*: a time that the agent's clock has surely reached.
//! A lease that ends some time after the floor is over when that time, plus a margin for drift, has passed
//! here.
//!
//! This assumes that the rates of the two clocks differ by no more than [`DRIFT_PER_S_NS`], and that neither
//! stops while its host runs. A host that is suspended between taking a connection over and reporting it
//! breaks the assumption.

/// How far two clocks may drift apart in a second, in nanoseconds: 1 ms. Clocks that are disciplined by NTP differ by less
/// than half of it.
pub const DRIFT_PER_S_NS: u64 = 1_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// The floor of an agent's clock, for one link: a restarted agent may have another clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentClock {
    clock_ns: u64,
    read_at_ns: u64,
}

/// A lease as both sides see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// When it ends on the agent's clock, in nanoseconds.
    pub until_ns: u64,
    /// When it is surely over on the front-end's clock, in nanoseconds.
    pub over_at_ns: u64,
}

impl AgentClock {
    /// The agent sent `clock_ns`, which the front-end read at `read_at_ns` of its own clock.
    #[must_use]
    pub fn new(clock_ns: u64, read_at_ns: u64) -> Self {
        Self { clock_ns, read_at_ns }
    }

    /// Takes another clock value of the agent; the one with the higher floor counts.
    pub fn observe(&mut self, clock_ns: u64, read_at_ns: u64) {
        if clock_ns >= self.floor_ns(read_at_ns) {
            *self = Self { clock_ns, read_at_ns };
        }
    }

    /// The time that the agent's clock has surely reached when the front-end's shows `now_ns`.
    #[must_use]
    pub fn floor_ns(&self, now_ns: u64) -> u64 {
        let passed_ns = now_ns.saturating_sub(self.read_at_ns);
        self.clock_ns.saturating_add(passed_ns.saturating_sub(drift_ns(passed_ns)))
    }

    /// A lease granted at `now_ns` of the front-end's clock for at most `duration_ns`.
    #[must_use]
    pub fn lease(&self, now_ns: u64, duration_ns: u64) -> Lease {
        // The agent's clock gains at least 1 − d in each unit of ours, so the duration takes 1 / (1 − d) of them.
        let margin_ns = scaled(duration_ns, DRIFT_PER_S_NS, SECOND_NS - DRIFT_PER_S_NS);
        Lease {
            until_ns: self.floor_ns(now_ns).saturating_add(duration_ns),
            over_at_ns: now_ns.saturating_add(duration_ns).saturating_add(margin_ns),
        }
    }
}

/// How far the clocks may have drifted apart after a time, rounded up.
fn drift_ns(time_ns: u64) -> u64 {
    scaled(time_ns, DRIFT_PER_S_NS, SECOND_NS)
}

/// `time_ns` · `by` / `of`, rounded up.
fn scaled(time_ns: u64, by: u64, of: u64) -> u64 {
    u64::try_from((u128::from(time_ns) * u128::from(by)).div_ceil(u128::from(of))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_lease_by_hand() {
        let mut clock = AgentClock::new(5_000 * MS, 1_000 * MS);
        assert_eq!(clock.floor_ns(1_000 * MS), 5_000 * MS);
        // Half a second later, less half a millisecond of drift.
        assert_eq!(clock.floor_ns(1_500 * MS), 5_500 * MS - MS / 2);
        assert_eq!(clock.floor_ns(0), 5_000 * MS, "before it was read");
        let lease = clock.lease(1_500 * MS, 100 * MS);
        assert_eq!(lease.until_ns, 5_600 * MS - MS / 2);
        assert_eq!(lease.over_at_ns, 1_600 * MS + MS / 10 + 101);
        // One that was long under way does not lower the floor.
        clock.observe(5_400 * MS, 1_500 * MS);
        assert_eq!(clock.floor_ns(1_500 * MS), 5_500 * MS - MS / 2);
        clock.observe(5_600 * MS, 1_500 * MS);
        assert_eq!(clock.floor_ns(1_500 * MS), 5_600 * MS);
    }

    proptest! {
        /// An agent's clock that runs at any rate within the drift has reached the floor, and is past the lease's end when
        /// the front-end takes it for over.
        #[test]
        fn over_means_over(
            offset_ns in 0_u64..1 << 60,
            pongs in prop::collection::vec((0_u64..2_000_000_000, 0_u64..3_000_000_000), 1..20),
            rate_ppm in -999_i64..=999,
            after_ns in 0_u64..1_500_000_000,
            duration_ns in 0_u64..10_000_000_000,
        ) {
            // The agent's clock when the front-end's shows t.
            let agent = |t: u64| {
                let drift = i128::from(t) * i128::from(rate_ppm) / 1_000_000;
                u64::try_from(i128::from(offset_ns) + i128::from(t) + drift).unwrap()
            };
            let mut now_ns = 0;
            let mut clock: Option<AgentClock> = None;
            for (pause_ns, way_ns) in pongs {
                now_ns += pause_ns;
                let told_ns = agent(now_ns);
                now_ns += way_ns;
                match &mut clock {
                    None => clock = Some(AgentClock::new(told_ns, now_ns)),
                    Some(clock) => clock.observe(told_ns, now_ns),
                }
            }
            now_ns += after_ns;
            let clock = clock.unwrap();
            // Rounding of the model costs two nanoseconds at most.
            prop_assert!(clock.floor_ns(now_ns) <= agent(now_ns) + 2);
            let lease = clock.lease(now_ns, duration_ns);
            prop_assert!(lease.until_ns <= agent(lease.over_at_ns) + 2);
        }

        #[test]
        fn no_numbers_overflow(a: u64, b: u64, c: u64, d: u64, e: u64) {
            let mut clock = AgentClock::new(a, b);
            clock.observe(c, d);
            let lease = clock.lease(e, a);
            prop_assert!(lease.over_at_ns >= e);
            prop_assert!(lease.until_ns >= clock.floor_ns(e));
        }
    }
}
