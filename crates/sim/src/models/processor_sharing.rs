//! Processor sharing: n requests in service get 1/n of the server each, at all times.
//!
//! Between arrivals and completions all of them attain service at the same rate. So it is enough to keep the
//! service that a request present from the start would have attained, and for each request the value at which
//! it ends. Both, and the time of the last arrival or completion, are in units of 2^-32 ns. A completion is
//! reported at the next whole nanosecond, but its share goes to the others from the moment it ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_policy::{Nanos, Time};

use crate::model::JobId;

/// Fractional bits of a nanosecond.
const BITS: u32 = 32;

/// The most that rounding may have added to a time: less than one unit per arrival.
const SLACK: u128 = 1 << 16;

/// A request in service, ordered by its end, then by arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SharingJob {
    /// The service attained when it ends.
    ends_at: u128,
    arrival: u64,
    job: JobId,
    /// Bytes to transmit afterwards.
    bytes: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct ProcessorSharing {
    attained: u128,
    /// The time up to which `attained` is current.
    since: u128,
    requests: BinaryHeap<Reverse<SharingJob>>,
    arrivals: u64,
}

impl ProcessorSharing {
    /// When the next request ends, in units, if none enters before.
    fn next_end(&self) -> Option<u128> {
        let Reverse(next) = self.requests.peek()?;
        let left = next.ends_at.saturating_sub(self.attained).saturating_mul(self.requests.len() as u128);
        Some(self.since.saturating_add(left))
    }

    /// When the next request ends, if none enters before.
    pub(super) fn due(&self) -> Option<Time> {
        let end = self.next_end()?.saturating_sub(SLACK);
        let whole_ns = (end >> BITS) + u128::from(end & ((1 << BITS) - 1) > 0);
        Some(Time::from_nanos(u64::try_from(whole_ns).unwrap_or(u64::MAX)))
    }

    /// `job` enters at `now`, needs this service, and transmits `bytes` afterwards.
    pub(super) fn enter(&mut self, job: JobId, service: Nanos, bytes: u64, now: Time) {
        let now = u128::from(now.as_nanos()) << BITS;
        match self.requests.len() as u128 {
            0 => self.attained = 0,
            n => self.attained += now.saturating_sub(self.since) / n,
        }
        self.since = self.since.max(now);
        let ends_at = self.attained + (u128::from(service.as_nanos()) << BITS);
        self.arrivals += 1;
        self.requests.push(Reverse(SharingJob { ends_at, arrival: self.arrivals, job, bytes }));
    }

    /// Removes a request that has ended by `now` and returns it with its bytes. Several may end at the same
    /// time.
    pub(super) fn complete(&mut self, now: Time) -> Option<(JobId, u64)> {
        if self.due()? > now {
            return None;
        }
        self.since = self.next_end()?;
        let Reverse(ended) = self.requests.pop()?;
        self.attained = self.attained.max(ended.ends_at);
        Some((ended.job, ended.bytes))
    }

    /// Aborts all requests.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::*;

    /// When each (arrival, service) ends.
    fn ends(jobs: &[(u64, u64)]) -> Vec<u64> {
        let mut server = ProcessorSharing::default();
        let mut ends = vec![0; jobs.len()];
        let mut arrivals = jobs.iter().enumerate().peekable();
        loop {
            let arrival = arrivals.peek().map(|(_, job)| Time::from_nanos(job.0));
            match (server.due(), arrival) {
                (Some(due), arrival) if arrival.is_none_or(|at| due <= at) => {
                    let (job, bytes) = server.complete(due).unwrap();
                    assert_eq!(bytes, u64::from(job));
                    ends[job as usize] = due.as_nanos();
                }
                (_, Some(at)) => {
                    let (job, (_, service)) = arrivals.next().unwrap();
                    server.enter(job as JobId, Nanos::new(*service), job as u64, at);
                }
                _ => return ends,
            }
        }
    }

    /// The same as a fluid in floating point, each request with what it has left.
    fn fluid(jobs: &[(u64, u64)]) -> Vec<f64> {
        let mut left: Vec<(usize, f64)> = Vec::new();
        let (mut now, mut ends) = (0.0, vec![0.0; jobs.len()]);
        let mut arrivals = jobs.iter().enumerate().peekable();
        while !left.is_empty() || arrivals.peek().is_some() {
            let n = left.len() as f64;
            let least = left.iter().map(|(_, left)| *left).fold(f64::INFINITY, f64::min);
            let arrival = arrivals.peek().map_or(f64::INFINITY, |(_, job)| job.0 as f64);
            let until = if left.is_empty() { arrival } else { arrival.min(now + least * n) };
            left.iter_mut().for_each(|(_, rest)| *rest -= (until - now) / n);
            now = until;
            left.retain(|&(job, rest)| {
                if rest <= 1e-6 {
                    ends[job] = now;
                }
                rest > 1e-6
            });
            while let Some((job, (_, service))) = arrivals.next_if(|(_, job)| job.0 as f64 <= now) {
                left.push((job, *service as f64));
            }
        }
        ends
    }

    #[test]
    fn shares_by_hand() {
        // 30 alone for 10, then both at half speed: the second ends at 10 + 2·8, the first has 12 left, and ends at 38.
        assert_eq!(ends(&[(0, 30), (10, 8)]), [38, 26]);
        // Three alike that come together end together.
        assert_eq!(ends(&[(5, 7), (5, 7), (5, 7)]), [26, 26, 26]);
        assert_eq!(ends(&[(0, 0), (3, 1)]), [0, 4]);
    }

    #[test]
    fn enormous_services_end_beyond_the_clock() {
        let mut server = ProcessorSharing::default();
        (0..3).for_each(|job| server.enter(job, Nanos::MAX, 0, Time::ZERO));
        assert_eq!(server.due(), Some(Time::MAX));
        server.clear();
        assert_eq!(server.due(), None);
    }

    proptest! {
        /// Every completion is the fluid's, at the next whole nanosecond.
        #[test]
        fn it_is_the_fluid(jobs in prop::collection::vec((0u64..300, 1u64..500), 1..60)) {
            let mut at = 0;
            let jobs: Vec<(u64, u64)> = jobs.iter().map(|(gap, service)| { at += gap; (at, *service) }).collect();
            for (got, want) in ends(&jobs).iter().zip(fluid(&jobs)) {
                let late = *got as f64 - want;
                prop_assert!((-1e-3..1.001).contains(&late), "{got} {want}");
            }
        }
    }
}
