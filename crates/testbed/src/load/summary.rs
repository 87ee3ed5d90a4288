//! What a load measured.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::outcome::{CacheStatus, RequestFailure, RequestSample};

/// The longest time that the histograms resolve: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// The most seconds that are counted individually: a day.
const MOST_SECONDS: usize = 86_400;

/// One second of a load, warm-up included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Second {
    /// Requests with a complete, correct response of a status below 400.
    pub succeeded: u64,
    /// All others.
    pub failed: u64,
    /// Of those that succeeded, those that caused a disk read: `X-Cache` of `miss` or `bypass`.
    pub disk_reads: u64,
    /// Sum of the latencies of those that succeeded.
    pub latency_sum: Duration,
}

/// What a load measured. Counts are of the time after the warm-up; see [`LoadSummary::outside`].
#[derive(Debug, Clone)]
pub struct LoadSummary {
    /// Requests that are counted here.
    pub requests: u64,
    /// Requests with a complete, correct response of a status below 400.
    pub succeeded: u64,
    /// Requests without a complete, correct response.
    pub failures: BTreeMap<RequestFailure, u64>,
    /// Responses by status, with or without their body.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes of bodies received.
    pub bytes: u64,
    /// Responses by their `X-Cache`.
    pub cached: BTreeMap<CacheStatus, u64>,
    /// Responses by their `X-Backend`.
    pub backends: BTreeMap<String, u64>,
    /// Requests that went over a second connection because the kept one had ended before they were sent.
    pub reconnected: u64,
    /// Latencies of the requests that succeeded, in microseconds.
    pub latency_us: Histogram<u64>,
    /// How late requests were sent, in microseconds: the generator's own share of the latencies of an open loop. Timers
    /// have a resolution of one millisecond.
    pub lateness_us: Histogram<u64>,
    /// Requests during warm-up, or (closed loop) completed only after the end; otherwise counted only in
    /// [`LoadSummary::per_second`].
    pub outside: u64,
    /// Length of the measured time; zero while the load runs.
    pub measured: Duration,
    /// Each second since the start, warm-up included; by completion in a closed loop, by due time in an open one.
    pub per_second: Vec<Second>,
}

impl Default for LoadSummary {
    fn default() -> Self {
        let histogram = || {
            let histogram = Histogram::new_with_bounds(1, LONGEST_US, 3);
            histogram.expect("lower bound, upper bound and precision are ones that hdrhistogram takes")
        };
        Self {
            requests: 0,
            succeeded: 0,
            failures: BTreeMap::new(),
            statuses: BTreeMap::new(),
            bytes: 0,
            cached: BTreeMap::new(),
            backends: BTreeMap::new(),
            reconnected: 0,
            latency_us: histogram(),
            lateness_us: histogram(),
            outside: 0,
            measured: Duration::ZERO,
            per_second: Vec::new(),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl LoadSummary {
    /// Requests that did not succeed: failures, and statuses of 400 or more.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.requests - self.succeeded
    }

    /// Requests that succeeded per second.
    #[must_use]
    pub fn throughput_rps(&self) -> f64 {
        if self.measured.is_zero() { 0.0 } else { self.succeeded as f64 / self.measured.as_secs_f64() }
    }

    /// The latency within which this share (0 to 1) of the requests that succeeded was answered; zero if none was.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.latency_us.value_at_quantile(share))
    }

    /// Mean latency of the requests that succeeded.
    #[must_use]
    pub fn mean_latency(&self) -> Duration {
        Duration::from_secs_f64(self.latency_us.mean() / 1e6)
    }

    /// Largest latency of the requests that succeeded.
    #[must_use]
    pub fn max_latency(&self) -> Duration {
        Duration::from_micros(self.latency_us.max())
    }

    /// Disk reads per request, as the header `X-Cache` says: misses and bypasses over all responses that have it. `None`
    /// if none has.
    #[must_use]
    pub fn miss_ratio(&self) -> Option<f64> {
        let count = |cached| self.cached.get(&cached).copied().unwrap_or(0);
        let all: u64 = self.cached.values().sum();
        (all > 0).then(|| (count(CacheStatus::Miss) + count(CacheStatus::Bypass)) as f64 / all as f64)
    }

    /// Requests that succeeded at any time, inside and outside the measured time.
    #[must_use]
    pub fn succeeded_ever(&self) -> u64 {
        self.per_second.iter().map(|second| second.succeeded).sum()
    }

    /// Share of the requests that waited for another's disk read. `None` if no response has the header `X-Cache`.
    #[must_use]
    pub fn joined_ratio(&self) -> Option<f64> {
        let all: u64 = self.cached.values().sum();
        (all > 0).then(|| self.cached.get(&CacheStatus::Joined).copied().unwrap_or(0) as f64 / all as f64)
    }

    /// Counts one request, at `at` since the start.
    pub(super) fn record(&mut self, at: Duration, window: &Range<Duration>, outcome: &RequestSample) {
        self.record_second(at, outcome);
        if !window.contains(&at) {
            self.outside += 1;
            return;
        }
        self.requests += 1;
        self.bytes += outcome.bytes;
        self.reconnected += u64::from(outcome.reconnected);
        if let Some(status) = outcome.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        if let Some(cached) = outcome.cached {
            *self.cached.entry(cached).or_default() += 1;
        }
        if let Some(backend) = &outcome.backend {
            match self.backends.get_mut(backend) {
                Some(count) => *count += 1,
                None => drop(self.backends.insert(backend.clone(), 1)),
            }
        }
        if let Some(failure) = outcome.failure {
            *self.failures.entry(failure).or_default() += 1;
        }
        self.lateness_us.saturating_record(micros(outcome.lateness));
        if outcome.succeeded() {
            self.succeeded += 1;
            self.latency_us.saturating_record(micros(outcome.latency));
        }
    }

    fn record_second(&mut self, at: Duration, outcome: &RequestSample) {
        let index = usize::try_from(at.as_secs()).unwrap_or(usize::MAX);
        if index >= MOST_SECONDS {
            return;
        }
        if self.per_second.len() <= index {
            self.per_second.resize(index + 1, Second::default());
        }
        let second = &mut self.per_second[index];
        if outcome.succeeded() {
            second.succeeded += 1;
            let read = matches!(outcome.cached, Some(CacheStatus::Miss | CacheStatus::Bypass));
            second.disk_reads += u64::from(read);
            second.latency_sum += outcome.latency;
        } else {
            second.failed += 1;
        }
    }
}

impl fmt::Display for LoadSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests, {} succeeded ({:.0}/s), mean {:?}, 99 % within {:?}, longest {:?}",
            self.requests,
            self.succeeded,
            self.throughput_rps(),
            self.mean_latency(),
            self.quantile(0.99),
            self.max_latency()
        )?;
        for (status, count) in &self.statuses {
            write!(f, "; status {status}: {count}")?;
        }
        for (failure, count) in &self.failures {
            write!(f, "; {failure}: {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u16, cached: CacheStatus, latency_ms: u64) -> RequestSample {
        RequestSample {
            latency: Duration::from_millis(latency_ms),
            status: Some(status),
            cached: Some(cached),
            backend: Some("b1".to_owned()),
            bytes: 10,
            ..RequestSample::default()
        }
    }

    #[test]
    fn counts_what_is_in_the_window() {
        let mut summary = LoadSummary::default();
        let window = Duration::from_secs(1)..Duration::from_secs(3);
        let mut at =
            |ms, outcome: &RequestSample| summary.record(Duration::from_millis(ms), &window, outcome);
        at(999, &outcome(200, CacheStatus::Miss, 1));
        at(1000, &outcome(200, CacheStatus::Miss, 10));
        at(1500, &outcome(200, CacheStatus::Hit, 30));
        at(2000, &outcome(200, CacheStatus::Joined, 20));
        at(2100, &outcome(503, CacheStatus::Bypass, 1));
        at(2999, &RequestSample { failure: Some(RequestFailure::Timeout), ..RequestSample::default() });
        at(3000, &outcome(200, CacheStatus::Hit, 1));
        summary.measured = Duration::from_secs(2);
        assert_eq!((summary.requests, summary.succeeded, summary.failed(), summary.outside), (5, 3, 2, 2));
        assert_eq!(summary.miss_ratio(), Some(0.5));
        assert_eq!(summary.joined_ratio(), Some(0.25));
        assert_eq!(summary.statuses, BTreeMap::from([(200, 3), (503, 1)]));
        assert_eq!(summary.failures, BTreeMap::from([(RequestFailure::Timeout, 1)]));
        assert_eq!(summary.backends, BTreeMap::from([("b1".to_owned(), 4)]));
        assert!((summary.throughput_rps() - 1.5).abs() < 1e-9);
        assert!((summary.mean_latency().as_secs_f64() - 0.02).abs() < 1e-4);
        let seconds: Vec<_> = summary.per_second.iter().map(|s| (s.succeeded, s.failed)).collect();
        assert_eq!(seconds, [(1, 0), (2, 0), (1, 2), (1, 0)]);
        let text = summary.to_string();
        assert!(text.contains("status 503: 1") && text.contains("timed out: 1"), "{text}");
    }

    #[test]
    fn nothing_measured_is_no_error() {
        let summary = LoadSummary::default();
        assert_eq!(summary.miss_ratio(), None);
        assert!(summary.throughput_rps().abs() < 1e-9);
        assert_eq!(summary.quantile(0.5), Duration::ZERO);
    }
}
