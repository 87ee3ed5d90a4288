//! Open loop: requests are due at a given rate, whatever becomes of earlier ones.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_policy::Rng;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::SampleObserver;
use super::closed::seconds;
use super::connection::{LoadClient, after};
use super::meter::Meter;
use super::outcome::{RequestFailure, RequestSample};
use super::request::Req;
use super::summary::LoadSummary;

/// When requests are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalPattern {
    /// At equal intervals.
    Fixed,
    /// As a Poisson process with this seed.
    Poisson(u64),
}

/// An open loop. All requests that are due within `seconds` are counted; it ends `timeout` later at the latest.
pub struct OpenLoop<F> {
    /// Address of the server.
    pub target: SocketAddr,
    /// Requests per second.
    pub rate_rps: f64,
    /// When they are due; at equal intervals by default.
    pub arrivals: ArrivalPattern,
    /// Time in which requests are due, in seconds, warm-up included; 10 by default.
    pub seconds: f64,
    /// Requests due in this time at the start are not counted, in seconds; 0 by default.
    pub warmup_s: f64,
    /// The most requests to send; unbounded by default.
    pub requests: u64,
    /// Number of connections, and so the most requests under way; 256 by default. When all are in use, a
    /// request waits for one, which counts as latency; after `timeout` it fails as
    /// [`RequestFailure::NotSent`].
    pub connections: usize,
    /// Whether to keep a connection for the next request; true by default.
    pub keep_alive: bool,
    /// Longest time for one request, from the moment it is due to its end; 10 s by default.
    pub timeout: Duration,
    /// The request of each number, from 0.
    pub request: F,
    /// Live counts while the load runs.
    pub meter: Meter,
    /// Called for every request.
    pub observer: Option<SampleObserver>,
}

impl<F: Fn(u64) -> Req> OpenLoop<F> {
    /// The defaults for this target: 100 requests per second.
    pub fn new(target: SocketAddr, request: F) -> Self {
        Self {
            target,
            rate_rps: 100.0,
            arrivals: ArrivalPattern::Fixed,
            seconds: 10.0,
            warmup_s: 0.0,
            requests: u64::MAX,
            connections: 256,
            keep_alive: true,
            timeout: Duration::from_secs(10),
            request,
            meter: Meter::default(),
            observer: None,
        }
    }
}

/// The times at which requests are due, in order.
struct Schedule {
    arrivals: ArrivalPattern,
    rng: Rng,
    gap_s: f64,
    next: u64,
    poisson_s: f64,
    most: u64,
    end_s: f64,
}

impl Schedule {
    fn new(arrivals: ArrivalPattern, rate_rps: f64, most: u64, end_s: f64) -> Self {
        let seed = if let ArrivalPattern::Poisson(seed) = arrivals { seed } else { 0 };
        // No arrivals unless rate and end are numbers above 0.
        let most = if rate_rps > 0.0 && end_s > 0.0 { most } else { 0 };
        let mut rng = Rng::new(seed, 0);
        let gap_s = 1.0 / rate_rps;
        let poisson_s = rng.exponential() * gap_s;
        Self { arrivals, rng, gap_s, next: 0, poisson_s, most, end_s }
    }
}

impl Iterator for Schedule {
    type Item = (u64, Duration);

    fn next(&mut self) -> Option<Self::Item> {
        let at_s = match self.arrivals {
            // A product, not a sum, so that rounding errors do not accumulate.
            ArrivalPattern::Fixed => self.next as f64 * self.gap_s,
            ArrivalPattern::Poisson(_) => self.poisson_s,
        };
        if self.next >= self.most || at_s.is_nan() || at_s >= self.end_s {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.poisson_s += self.rng.exponential() * self.gap_s;
        Some((number, seconds(at_s)))
    }
}

/// Runs an open loop to its end. Must be called within a tokio runtime. Dropping the future ends all connections.
pub async fn open_loop<F>(load: OpenLoop<F>) -> LoadSummary
where
    F: Fn(u64) -> Req + Send + Sync + 'static,
{
    let schedule = Schedule::new(load.arrivals, load.rate_rps, load.requests, load.seconds);
    let schedule = Arc::new(Mutex::new(schedule));
    let load = Arc::new(load);
    let start = Instant::now();
    let (warmup, end) = (seconds(load.warmup_s), seconds(load.seconds));
    let mut clients = JoinSet::new();
    for _ in 0..load.connections.max(1) {
        clients.spawn(client(Arc::clone(&load), Arc::clone(&schedule), start, warmup..end));
    }
    while clients.join_next().await.is_some() {}
    load.meter.finish(end.saturating_sub(warmup))
}

async fn client<F: Fn(u64) -> Req>(
    load: Arc<OpenLoop<F>>,
    schedule: Arc<Mutex<Schedule>>,
    start: Instant,
    window: std::ops::Range<Duration>,
) {
    let mut client = LoadClient::new(load.target, load.keep_alive);
    loop {
        let arrival = schedule.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((number, due)) = arrival else { return };
        let due_at = after(start, due);
        let deadline = after(due_at, load.timeout);
        sleep_until(due_at).await;
        let sent = Instant::now();
        let mut outcome = if sent < deadline {
            client.exchange(&(load.request)(number), deadline).await
        } else {
            RequestSample { failure: Some(RequestFailure::NotSent), ..RequestSample::default() }
        };
        outcome.due = due;
        outcome.lateness = sent - due_at;
        outcome.latency = due_at.elapsed();
        load.meter.record(due, &window, &outcome);
        if let Some(observer) = &load.observer {
            observer(number, &outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_arrivals_are_exact_and_bounded() {
        let due: Vec<_> = Schedule::new(ArrivalPattern::Fixed, 10.0, 100, 0.35).collect();
        let expected: Vec<_> = (0..4).map(|n| (n, Duration::from_millis(100 * n))).collect();
        assert_eq!(due, expected);
        assert_eq!(Schedule::new(ArrivalPattern::Fixed, 10.0, 3, 10.0).count(), 3);
        for rate in [0.0, -1.0, f64::NAN] {
            assert_eq!(Schedule::new(ArrivalPattern::Fixed, rate, 3, 10.0).count(), 0, "{rate}");
        }
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_follow_the_seed() {
        let due: Vec<_> = Schedule::new(ArrivalPattern::Poisson(1), 1000.0, u64::MAX, 10.0).collect();
        assert!((9_500..10_500).contains(&due.len()), "{}", due.len());
        assert!(due.is_sorted_by_key(|(_, at)| *at));
        let again: Vec<_> = Schedule::new(ArrivalPattern::Poisson(1), 1000.0, u64::MAX, 10.0).collect();
        assert_eq!(due, again);
        let other: Vec<_> = Schedule::new(ArrivalPattern::Poisson(2), 1000.0, u64::MAX, 10.0).collect();
        assert_ne!(due, other);
    }
}
