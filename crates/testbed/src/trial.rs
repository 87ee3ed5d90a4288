//! One policy under saturating load, measured by the client and by the origins.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_origin::{CpuModel, DiskModel, OriginStats};

use crate::cluster::{ClusterError, LoopbackCluster, LoopbackConfig};
use crate::load::{CacheStatus, ClosedLoop, LoadSummary, Req, RequestSample, closed_loop};
use crate::machine::CpuTime;
use crate::workload::RequestSequence;

mod visits;

pub use visits::BackendShare;
use visits::{Visit, Visits};

/// The configuration of a trial.
#[derive(Debug, Clone)]
pub struct TrialConfig {
    /// Policy, by its name in the registry.
    pub policy: String,
    /// Number of back-ends.
    pub backends: usize,
    /// Seed of the policy.
    pub seed: u64,
    /// Memory cache of each back-end in bytes; Greedy-Dual-Size.
    pub cache_bytes: u64,
    /// Speed of disks and CPUs as a multiple of the LARD study's.
    pub speed: f64,
    /// Connections of the client, each with one request under way; also the admission limit.
    pub connections: usize,
    /// Time before the measurement, in seconds.
    pub warmup_s: f64,
    /// Length of the measurement in seconds.
    pub measured_s: f64,
    /// A back-end with fewer requests under way than this counts as idle; 40 % of `t_low` in the LARD study.
    pub idle_below: f64,
}

/// The results of a trial.
#[derive(Debug, Clone)]
pub struct Trial {
    /// As the client saw it.
    pub summary: LoadSummary,
    /// Requests complete before the measurement.
    pub warmup_requests: u64,
    /// Disk reads per request as the origins count them, over about the same time; `None` without any request.
    pub origin_miss_ratio: Option<f64>,
    /// What each back-end did, in order.
    pub backends: Vec<BackendShare>,
    /// Mean number of requests under way at each back-end, per second of the measurement.
    pub load: Vec<Vec<f64>>,
    /// Share of the time that the CPUs of this machine were busy with any program; `None` if the system does
    /// not provide it.
    pub machine_busy: Option<f64>,
}

impl Trial {
    /// Share of the time that emulated disks were busy, averaged over back-ends.
    #[must_use]
    pub fn disk_busy(&self) -> f64 {
        mean(self.backends.iter().map(|b| b.disk_busy))
    }

    /// Share of the time that emulated CPUs were busy, averaged over back-ends.
    #[must_use]
    pub fn cpu_busy(&self) -> f64 {
        mean(self.backends.iter().map(|b| b.cpu_busy))
    }

    /// Share of the time that back-ends were idle, averaged over them.
    #[must_use]
    pub fn idle_ratio(&self) -> f64 {
        mean(self.backends.iter().map(|b| b.idle_ratio))
    }

    /// Whether this machine is more likely than the emulated hardware to have limited the throughput: its CPUs were busy
    /// for more than 90 % of the time.
    #[must_use]
    pub fn machine_was_bottleneck(&self) -> bool {
        self.machine_busy.is_some_and(|busy| busy > 0.9)
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1);
    values.sum::<f64>() / count as f64
}

/// Why a trial failed.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The cluster does not start.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The speed is not a number above 0.
    #[error("disks and CPUs cannot be {0} times as fast; give a number above 0")]
    Speed(f64),
    /// Another front-end does not start.
    #[error("{0}")]
    FrontEnd(String),
}

/// Runs a trial: a fresh cluster with empty caches, saturated by a closed loop. Calls `progress` once a
/// second with the measurements so far. Must be called within a tokio runtime with timers; dropping the
/// future ends everything.
///
/// # Errors
/// When the cluster does not start.
pub async fn run(
    config: &TrialConfig,
    workload: &RequestSequence,
    progress: impl FnMut(&LoadSummary),
) -> Result<Trial, TrialError> {
    run_through(config, workload, |_| Ok((None, ())), progress).await
}

/// The same through another front-end: `front_end` gets the addresses of the origins, and returns where it listens, or `None` for the
/// front-end of the cluster, with what keeps it up as long as it exists.
///
/// # Errors
/// When the cluster or the other front-end does not start.
pub async fn run_through<G>(
    config: &TrialConfig,
    workload: &RequestSequence,
    front_end: impl FnOnce(&[SocketAddr]) -> Result<(Option<SocketAddr>, G), TrialError>,
    mut progress: impl FnMut(&LoadSummary),
) -> Result<Trial, TrialError> {
    let (disk, cpu) = hardware(config)?;
    let cluster = LoopbackCluster::start(LoopbackConfig {
        backends: config.backends,
        seed: config.seed,
        cache_bytes: config.cache_bytes,
        disk: Some(disk),
        cpu: Some(cpu),
        admission: config.connections.to_string(),
        ..LoopbackConfig::new(&config.policy, workload.contents())
    })
    .await?;
    let sightings = Sightings::new(config.backends);
    let (other, _keeps_up) = front_end(&cluster.backend_addresses())?;
    let target = other.unwrap_or(cluster.address());
    let load = ClosedLoop { target, ..load(config, workload, &sightings) };
    let meter = load.meter.clone();
    let window = config.warmup_s..config.warmup_s + config.measured_s;
    let mut before = TrialCounts::take(&cluster);
    let warmup = tokio::time::sleep(Duration::from_secs_f64(config.warmup_s));
    let end = tokio::time::sleep(Duration::from_secs_f64(window.end));
    let mut after = None;
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut running = std::pin::pin!(closed_loop(load));
    let (mut warmup, mut end) = (std::pin::pin!(warmup), std::pin::pin!(end));
    let mut warm = false;
    let summary = loop {
        tokio::select! {
            summary = running.as_mut() => break summary,
            () = warmup.as_mut(), if !warm => {
                warm = true;
                before = TrialCounts::take(&cluster);
            }
            () = end.as_mut(), if after.is_none() => after = Some(TrialCounts::take(&cluster)),
            _ = second.tick() => progress(&meter.summary()),
        }
    };
    let after = after.unwrap_or_else(|| TrialCounts::take(&cluster));
    cluster.stop().await;
    let trial = sightings.trial(config, summary)?;
    Ok(Trial {
        origin_miss_ratio: after.miss_ratio_since(&before),
        machine_busy: after.cpu.zip(before.cpu).and_then(|(after, before)| after.busy_since(before)),
        ..trial
    })
}

/// What the client sees of the requests of a trial. Clones share it.
#[derive(Clone)]
pub struct Sightings(Arc<Mutex<Visits>>);

impl Sightings {
    /// Empty, for this many back-ends, called `b0`, `b1` and so on in the header `X-Backend`.
    #[must_use]
    pub fn new(backends: usize) -> Self {
        Self(Arc::new(Mutex::new(Visits::new(backends))))
    }

    /// The trial's results, from these and the client's summary of the same load.
    ///
    /// # Errors
    /// When the speed is not a number above 0.
    pub fn trial(&self, config: &TrialConfig, summary: LoadSummary) -> Result<Trial, TrialError> {
        let (disk, cpu) = hardware(config)?;
        let window = config.warmup_s..config.warmup_s + config.measured_s;
        let visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Trial {
            warmup_requests: visits.before(window.start),
            origin_miss_ratio: None,
            load: visits.load_per_second(&window),
            machine_busy: None,
            backends: visits.shares(&window, disk, cpu, config.idle_below),
            summary,
        })
    }
}

/// The load of a trial; the caller sets the target.
pub fn load(
    config: &TrialConfig,
    workload: &RequestSequence,
    sightings: &Sightings,
) -> ClosedLoop<impl Fn(u64) -> Req + Send + Sync + use<>> {
    let (asked, sizes, seen) = (workload.clone(), workload.clone(), sightings.clone());
    let observer = move |number: u64, outcome: &RequestSample| {
        let backend = outcome.backend.as_deref().and_then(|name| name.strip_prefix('b')?.parse().ok());
        let (Some(backend), true) = (backend, outcome.succeeded()) else { return };
        let visit = Visit {
            start_s: outcome.due.as_secs_f64(),
            end_s: (outcome.due + outcome.latency).as_secs_f64(),
            size_bytes: sizes.size_bytes(number),
            cached: outcome.cached.unwrap_or(CacheStatus::Hit),
        };
        seen.0.lock().unwrap_or_else(PoisonError::into_inner).add(backend, visit);
    };
    ClosedLoop {
        connections: config.connections,
        seconds: config.warmup_s + config.measured_s,
        warmup_s: config.warmup_s,
        observer: Some(Arc::new(observer)),
        ..ClosedLoop::new((Ipv4Addr::LOCALHOST, 0).into(), move |number| asked.request(number))
    }
}

/// The hardware that each back-end emulates.
fn hardware(config: &TrialConfig) -> Result<(DiskModel, CpuModel), TrialError> {
    let hardware = DiskModel::lard98().faster(config.speed).zip(CpuModel::lard98().faster(config.speed));
    hardware.ok_or(TrialError::Speed(config.speed))
}

/// The counts at one moment.
struct TrialCounts {
    origins: Vec<OriginStats>,
    cpu: Option<CpuTime>,
}

impl TrialCounts {
    fn take(cluster: &LoopbackCluster) -> Self {
        let origins = (0..).map_while(|number| cluster.origin(number)).map(|origin| origin.stats()).collect();
        Self { origins, cpu: CpuTime::now() }
    }

    fn miss_ratio_since(&self, earlier: &Self) -> Option<f64> {
        let sum = |of: fn(&OriginStats) -> u64| {
            let total = |s: &Self| s.origins.iter().map(of).sum::<u64>();
            total(self).saturating_sub(total(earlier))
        };
        let bodies = sum(|s| s.hits + s.misses + s.joined + s.bypassed);
        (bodies > 0).then(|| sum(|s| s.misses + s.bypassed) as f64 / bodies as f64)
    }
}
