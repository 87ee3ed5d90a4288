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

#[cfg(test)]
mod tests {
    use plimsoll_policy::{
        AdmissionControl, AdmissionLimit, BuildContext, Cluster, Ending, Offered, PolicyChoice, Request,
        TargetId,
    };

    use super::*;

    fn assign(core: &mut Core, number: u64, size_bytes: u64, now: Time) {
        let request = Request { size_bytes: Some(size_bytes), ..Request::of(number, TargetId(number)) };
        let Offered::Assigned(assigned) = core.offer(&request, now) else { panic!("nobody keeps it") };
        core.complete(&assigned, Ending::answered(Some(size_bytes)), now);
    }

    fn boundaries(core: &Core) -> Vec<Vec<f64>> {
        let tables = core.policy().tables();
        tables.into_iter().find(|table| table.name == "boundaries").unwrap().rows
    }

    /// Three front-ends get requests of different sizes; once they have told one another, all have the same boundaries.
    #[test]
    fn an_exchange_makes_boundaries_equal() {
        let admission = AdmissionControl { limit: AdmissionLimit::Unlimited, queue: 0 };
        let policy =
            || "adaptload:batch=100".parse::<PolicyChoice>().unwrap().build(&BuildContext::default());
        let core = |_| Core::new(policy().unwrap(), Cluster::new(4), admission);
        let mut cores: Vec<Core> = (0..3).map(core).collect();
        let interval = Nanos::from_secs(1);
        let mut exchange = SumExchange::new(interval, &cores).unwrap();
        assert!(SumExchange::new(Nanos::ZERO, &cores).is_none());
        for (place, core) in cores.iter_mut().enumerate() {
            let size_bytes = |n: u64| (1 + n % 7) * 1_000 * 10u64.pow(place as u32);
            (0..200).for_each(|n| assign(core, n, size_bytes(n), Time::ZERO));
        }
        assert!(
            boundaries(&cores[0]) != boundaries(&cores[1]) && boundaries(&cores[1]) != boundaries(&cores[2])
        );
        let mut messages = LoadMessages::default();
        let now = exchange.due();
        exchange.carry_out(&mut cores, 1, &mut messages, now);
        assert_eq!((messages.messages, exchange.due()), (6, now + interval), "each tells both others");
        cores.iter_mut().for_each(|core| assign(core, 200, 5_000, now));
        assert!(
            boundaries(&cores[0]) == boundaries(&cores[1]) && boundaries(&cores[1]) == boundaries(&cores[2])
        );
    }
}
