//! Response times of one back-end: whether it seems overloaded.

use crate::time::{Nanos, Time};

/// Responses in a group, and how many of them are slowed where a back-end is overloaded.
const GROUP: u32 = 16;
const SLOWED_OF_GROUP: u32 = 6;
/// How long the least response time of targets of which nothing is known is remembered.
const MEMORY_OF_UNKNOWN: Nanos = Nanos::from_secs(60);
/// Above this mean only responses that take about equally long are a sign of waiting; above the second one, only those of
/// targets of which something is known.
const LONG: Nanos = Nanos::from_secs(1);
const VERY_LONG: Nanos = Nanos::from_secs(10);

/// A response to a request that was assigned at `at`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedResponse {
    pub(super) at: Time,
    pub(super) time: Nanos,
    /// Whether it took much longer than usual.
    pub(super) slowed: bool,
    /// Whether something is known of its target.
    pub(super) known: bool,
}

/// See the module's documentation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Responses {
    /// The group that is being collected.
    group: Group,
    /// That this back-end is overloaded: what the last full group said, and what counts now.
    last: Option<Verdict>,
    verdict: Option<Verdict>,
    /// The least response time of targets of which nothing is known, and when it was seen.
    unknown: Option<(Nanos, Time)>,
}

#[derive(Debug, Clone, Copy)]
struct Verdict {
    until: Time,
    mean: Nanos,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    count: u32,
    sum: Nanos,
    slowed: u32,
    slowed_sum: Nanos,
    known_slowed: u32,
    least: Nanos,
    /// When its first request was assigned, and when its last response came.
    first: Time,
    latest: Time,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            count: 0,
            sum: Nanos::ZERO,
            slowed: 0,
            slowed_sum: Nanos::ZERO,
            known_slowed: 0,
            least: Nanos::MAX,
            first: Time::MAX,
            latest: Time::ZERO,
        }
    }
}

impl Responses {
    /// The mean response time, if it seems overloaded.
    #[inline]
    pub(super) fn overloaded(&self, now: Time) -> Option<Nanos> {
        self.verdict.filter(|verdict| now <= verdict.until).map(|verdict| verdict.mean)
    }

    /// The least response time of targets of which nothing is known, with this one. Nothing is forgotten while it is busy.
    pub(super) fn least_of_unknown(&mut self, response_time: Nanos, busy: bool, now: Time) -> Nanos {
        let known = self.unknown.filter(|(_, seen)| busy || now.since(*seen) <= MEMORY_OF_UNKNOWN);
        let least = known.filter(|(least, _)| *least < response_time).unwrap_or((response_time, now));
        self.unknown = Some(least);
        least.0
    }

    pub(super) fn add(&mut self, response: &TimedResponse, now: Time) {
        if self.group.count > 0 && now > self.group.counts_until() {
            // What it says is of another time.
            self.group = Group::default();
        }
        self.group.add(response, now);
        // Slowed ones count as soon as there are enough.
        let overloaded = self.group.is_overloaded(self.last.is_some());
        let verdict =
            overloaded.then(|| Verdict { until: self.group.counts_until(), mean: self.group.mean() });
        if self.group.count == GROUP {
            (self.last, self.group) = (verdict, Group::default());
        }
        self.verdict = verdict.or(self.last);
    }
}

impl Group {
    fn add(&mut self, response: &TimedResponse, now: Time) {
        self.latest = now;
        self.first = self.first.min(response.at);
        self.count += 1;
        self.sum += response.time;
        self.least = self.least.min(response.time);
        if response.slowed {
            self.slowed += 1;
            self.slowed_sum += response.time;
            self.known_slowed += u32::from(response.known);
        }
    }

    fn mean(&self) -> Nanos {
        Nanos::new(self.sum.as_nanos() / u64::from(self.count.max(1)))
    }

    /// It counts for twice its mean, or twice the time that it took.
    fn counts_until(&self) -> Time {
        let span = self.mean().max(self.latest.since(self.first));
        Time::from_nanos(self.latest.as_nanos().saturating_add(span.as_nanos().saturating_mul(2)))
    }

    /// Whether its responses are those of an overloaded back-end, which it was before, or not.
    fn is_overloaded(&self, before: bool) -> bool {
        if self.slowed < SLOWED_OF_GROUP || self.slowed_sum.as_nanos() < self.sum.as_nanos() / 2 {
            return false;
        }
        // When the queue becomes shorter, responses after it are faster than those before; yet all are slowed.
        let goes_on = before && self.slowed == self.count;
        let mean = self.mean();
        let alike = 3 * u128::from(self.least.as_nanos()) >= u128::from(mean.as_nanos())
            && (mean <= VERY_LONG || self.known_slowed >= SLOWED_OF_GROUP);
        mean <= LONG || alike || goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// Responses of this length, one each 10 ms, from the time `from_ms` on.
    fn add(responses: &mut Responses, count: u64, from_ms: u64, time: Nanos, slowed: bool) -> Time {
        let mut now = Time::ZERO;
        for number in 0..count {
            now = Time::ZERO + ms(from_ms + 10 * number);
            let at = Time::from_nanos(now.as_nanos() - time.as_nanos());
            responses.add(&TimedResponse { at, time, slowed, known: true }, now);
        }
        now
    }

    #[test]
    fn six_slowed_ones_are_enough_and_a_full_group_without_them_ends_it() {
        let mut responses = Responses::default();
        let now = add(&mut responses, 5, 1000, ms(300), true);
        assert_eq!(responses.overloaded(now), None);
        let now = add(&mut responses, 1, 1050, ms(300), true);
        assert_eq!(responses.overloaded(now), Some(ms(300)));
        add(&mut responses, 10, 1060, ms(300), true);
        let now = add(&mut responses, 15, 1160, ms(5), false);
        assert!(responses.overloaded(now).is_some(), "the last full group counts");
        let now = add(&mut responses, 1, 1310, ms(5), false);
        assert_eq!(responses.overloaded(now), None);
    }

    #[test]
    fn what_was_long_ago_says_nothing() {
        let mut responses = Responses::default();
        let now = add(&mut responses, 6, 1000, ms(300), true);
        assert!(responses.overloaded(now + ms(600)).is_some());
        assert_eq!(responses.overloaded(now + ms(800)), None);
        // Eight hours later, one response: what was collected is of another time.
        let now = add(&mut responses, 1, 8 * 3_600_000, ms(5), false);
        assert_eq!(responses.overloaded(now), None);
        let now = add(&mut responses, 5, 8 * 3_600_000 + 10, ms(300), true);
        assert_eq!(responses.overloaded(now), None);
    }

    #[test]
    fn equal_times_of_a_minute_are_no_sign_where_nothing_is_known() {
        for (time, known, overloaded) in
            [(ms(5000), false, true), (ms(60_000), false, false), (ms(60_000), true, true)]
        {
            let mut responses = Responses::default();
            let now = Time::ZERO + ms(100_000);
            let at = Time::from_nanos(now.as_nanos() - time.as_nanos());
            for _ in 0..6 {
                responses.add(&TimedResponse { at, time, slowed: true, known }, now);
            }
            assert_eq!(responses.overloaded(now).is_some(), overloaded, "{time:?} {known}");
        }
    }
}
