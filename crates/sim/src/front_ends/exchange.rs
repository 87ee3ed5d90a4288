//! Front-ends that tell one another what they have seen.

use std::collections::BTreeMap;

use plimsoll_policy::{Core, Nanos, Time};

use crate::outcome::LoadMessages;

/// When front-ends exchange.
pub(super) struct SumExchange {
    interval: Nanos,
    due: Time,
}

impl SumExchange {
    /// `None` where they never do.
    pub(super) fn new(interval: Nanos, cores: &[Core]) -> Option<Self> {
        let shares = cores.iter().all(|core| core.policy().seen().is_some());
        (shares && !interval.is_zero()).then_some(Self { interval, due: Time::ZERO + interval })
    }

    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Every front-end gets the sum of what all have seen, for each partition.
    pub(super) fn carry_out(
        &mut self,
        cores: &mut [Core],
        partitions: usize,
        messages: &mut LoadMessages,
        now: Time,
    ) {
        self.due = now + self.interval;
        for partition in 0..partitions {
            let mut sum: BTreeMap<u64, u64> = BTreeMap::new();
            let of_partition = cores.iter().skip(partition).step_by(partitions);
            for (key, amount) in of_partition.filter_map(|core| core.policy().seen()).flatten() {
                let total = sum.entry(key).or_default();
                *total = total.saturating_add(amount);
            }
            let sum: Vec<(u64, u64)> = sum.into_iter().collect();
            let of_partition = cores.iter_mut().skip(partition).step_by(partitions);
            of_partition.for_each(|core| core.share(&sum, now));
        }
        let front_ends = (cores.len() / partitions) as u64;
        messages.messages += front_ends * (front_ends - 1);
    }
}
