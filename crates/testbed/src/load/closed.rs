//! Closed loop: every connection sends its next request when the response to the last is complete.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::SampleObserver;
use super::connection::{LoadClient, after};
use super::meter::Meter;
use super::request::Req;
use super::summary::LoadSummary;

/// A closed loop. Ends after `requests` or `seconds`, whichever comes first, and lets requests under way end within
/// `timeout`.
pub struct ClosedLoop<F> {
    /// Address of the server.
    pub target: SocketAddr,
    /// Addresses of further servers, none by default: requests go to all in turn, by their number. Where connections are kept,
    /// each stays with one of them.
    pub further_targets: Vec<SocketAddr>,
    /// Number of connections, and so the most requests under way; 16 by default.
    pub connections: usize,
    /// The most requests to send; unbounded by default.
    pub requests: u64,
    /// Time from the start to the end in seconds, warm-up included; 10 by default.
    pub seconds: f64,
    /// Time at the start that is not measured, in seconds; 0 by default.
    pub warmup_s: f64,
    /// Whether to keep a connection for the next request; true by default.
    pub keep_alive: bool,
    /// Longest time for one request, from its sending to its end; 30 s by default.
    pub timeout: Duration,
    /// The request of each number, from 0.
    pub request: F,
    /// Live counts while the load runs.
    pub meter: Meter,
    /// Called for every request.
    pub observer: Option<SampleObserver>,
}

impl<F: Fn(u64) -> Req> ClosedLoop<F> {
    /// The defaults for this target.
    pub fn new(target: SocketAddr, request: F) -> Self {
        Self {
            target,
            further_targets: Vec::new(),
            connections: 16,
            requests: u64::MAX,
            seconds: 10.0,
            warmup_s: 0.0,
            keep_alive: true,
            timeout: Duration::from_secs(30),
            request,
            meter: Meter::default(),
            observer: None,
        }
    }
}

impl<F> ClosedLoop<F> {
    /// The server of a request, or of a kept connection, with this number.
    fn target_of(&self, number: u64) -> SocketAddr {
        let servers = 1 + self.further_targets.len() as u64;
        match usize::try_from(number % servers).unwrap_or(0) {
            0 => self.target,
            further => self.further_targets[further - 1],
        }
    }
}

/// Runs a closed loop to its end. Must be called within a tokio runtime. Dropping the future ends all connections.
pub async fn closed_loop<F>(load: ClosedLoop<F>) -> LoadSummary
where
    F: Fn(u64) -> Req + Send + Sync + 'static,
{
    let load = Arc::new(load);
    let next = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let (warmup, end) = (seconds(load.warmup_s), seconds(load.seconds));
    let mut clients = JoinSet::new();
    for number in 0..load.connections as u64 {
        let one = LoadClient::new(load.target_of(number), load.keep_alive);
        clients.spawn(client(Arc::clone(&load), one, Arc::clone(&next), start, warmup..end));
    }
    while clients.join_next().await.is_some() {}
    // Earlier than the end if the requests ran out.
    load.meter.finish(start.elapsed().min(end).saturating_sub(warmup))
}

async fn client<F: Fn(u64) -> Req>(
    load: Arc<ClosedLoop<F>>,
    mut client: LoadClient,
    next: Arc<AtomicU64>,
    start: Instant,
    window: std::ops::Range<Duration>,
) {
    while start.elapsed() < window.end {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= load.requests {
            return;
        }
        if !load.keep_alive {
            client = LoadClient::new(load.target_of(number), false);
        }
        let request = (load.request)(number);
        let sent = Instant::now();
        let mut outcome = client.exchange(&request, after(sent, load.timeout)).await;
        outcome.due = sent - start;
        outcome.latency = sent.elapsed();
        load.meter.record(start.elapsed(), &window, &outcome);
        if let Some(observer) = &load.observer {
            observer(number, &outcome);
        }
        if outcome.failure.is_some() {
            // Otherwise a server that refuses at once would be asked in a busy loop.
            tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
}

/// How long a client waits after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);

/// A duration; zero unless `seconds` is a number not below 0.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}
