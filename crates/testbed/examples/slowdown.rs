//! Slowdown by size class of several policies on live traffic: four origins with emulated disk and CPU behind the front-end,
//! and Poisson arrivals of a heavy-tailed workload.
//!
//! ```text
//! cargo run --release -p plimsoll-testbed --example slowdown -- [SECONDS [LOAD [POLICY,POLICY...]]]
//! ```
//!
//! The requests are the first 8,000 of the synthetic workload `worldcup`, again and again: once before the measurement, so that
//! sizes, boundaries and caches are there. Slowdown is the time from when a request was due over its time alone: that of the
//! emulated CPU for it, and what a small cached document takes here beyond that when nothing else runs. LOAD is the share of
//! their time for which the emulated CPUs would be busy if all had the same load.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_origin::{CpuModel, DiskModel};
use plimsoll_testbed::cluster::{LoopbackCluster, LoopbackConfig};
use plimsoll_testbed::load::{
    ArrivalPattern, CacheStatus, ClosedLoop, Expect, OpenLoop, Req, closed_loop, open_loop,
};
use plimsoll_testbed::workload::RequestSequence;

type Error = Box<dyn std::error::Error + Send + Sync>;

const BACKENDS: usize = 4;
const SEQUENCE: usize = 8000;
/// Slow enough that the machine's own CPUs are not what is measured.
const CPU_SPEED: f64 = 0.1;
/// Fast enough that misses delay requests without being all that does.
const DISK_SPEED: f64 = 10.0;
/// Share of the bytes of all documents asked for.
const CACHE_SHARE: f64 = 0.2;
/// What a connection costs the emulated CPU, in bytes that it sends in that time: (145 + 145) / 40 · 512.
const CONNECTION_BYTES: &str = "3712";
/// Upper ends of the size classes in bytes.
const CLASSES: [(u64, &str); 5] = [
    (1 << 10, "to 1 KiB"),
    (10 << 10, "to 10 KiB"),
    (100 << 10, "to 100 KiB"),
    (u64::MAX, "above"),
    (0, "all"),
];

/// A request that was measured: size, latency in seconds, whether the disk was read.
type Seen = (u64, f64, bool);

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds: f64 = args.first().map_or(Ok(60.0), |text| text.parse())?;
    let load: f64 = args.get(1).map_or(Ok(0.6), |text| text.parse())?;
    let policies = args.get(2).map_or("adaptload,jsq,round_robin,lard", String::as_str);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(seconds, load, policies))
}

async fn measure(seconds: f64, load: f64, policies: &str) -> Result<(), Error> {
    let workload = RequestSequence::synthesize("worldcup", &[("generator", "irm")], 1, SEQUENCE)?;
    let cpu = CpuModel::lard98().faster(CPU_SPEED).ok_or("the speed is a number above 0")?;
    let disk = DiskModel::lard98().faster(DISK_SPEED).ok_or("the speed is a number above 0")?;
    let alone = |size: u64| (cpu.connect + cpu.send_time(size)).as_secs_f64();
    let work_s: f64 = (0..SEQUENCE as u64).map(|n| alone(workload.size_bytes(n))).sum();
    let rate_rps = load * BACKENDS as f64 * SEQUENCE as f64 / work_s;
    let mut documents: Vec<(String, u64)> =
        (0..SEQUENCE as u64).map(|n| (workload.request(n).path, workload.size_bytes(n))).collect();
    documents.sort_unstable();
    documents.dedup();
    let bytes: u64 = documents.iter().map(|(_, size)| size).sum();
    let cache_bytes = (bytes as f64 * CACHE_SHARE) as u64;
    println!(
        "{} documents of {bytes} bytes, {cache_bytes} bytes of cache for each back-end, {rate_rps:.0} requests/s, load {load}",
        documents.len()
    );
    println!(
        "{:14} {:11} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "policy", "size", "requests", "mean", "p50", "p90", "p99", "misses"
    );
    for policy in policies.split(',') {
        let parameters = match policy {
            "adaptload" | "adaptload_queue" => [("batch", "2000"), ("connection_bytes", CONNECTION_BYTES)]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .to_vec(),
            _ => Vec::new(),
        };
        let cluster = LoopbackCluster::start(LoopbackConfig {
            backends: BACKENDS,
            parameters,
            cache_bytes,
            cache_policy: "lru".to_owned(),
            disk: Some(disk),
            cpu: Some(cpu),
            admission: "none".to_owned(),
            ..LoopbackConfig::new(policy, workload.contents())
        })
        .await?;
        let smallest = (0..SEQUENCE as u64).min_by_key(|&n| workload.size_bytes(n)).unwrap_or(0);
        let floor_s = floor(&cluster, workload.request(smallest), alone(workload.size_bytes(smallest))).await;
        let seen = run(&cluster, &workload, rate_rps, seconds).await;
        cluster.stop().await;
        print(policy, &seen, |size| alone(size) + floor_s);
    }
    Ok(())
}

/// What a small document takes beyond the emulated time when nothing else runs, in seconds.
async fn floor(cluster: &LoopbackCluster, request: Req, alone_s: f64) -> f64 {
    let request = request.expecting(Expect::Anything);
    let load = ClosedLoop {
        connections: 1,
        requests: 300,
        ..ClosedLoop::new(cluster.address(), move |_| request.clone())
    };
    let summary = closed_loop(load).await;
    (summary.quantile(0.5).as_secs_f64() - alone_s).max(0.0)
}

async fn run(
    cluster: &LoopbackCluster,
    workload: &RequestSequence,
    rate_rps: f64,
    seconds: f64,
) -> Vec<Seen> {
    let warmup_s = SEQUENCE as f64 / rate_rps;
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let (keep, sizes, requests) = (Arc::clone(&seen), workload.clone(), workload.clone());
    let summary = open_loop(OpenLoop {
        rate_rps,
        arrivals: ArrivalPattern::Poisson(1),
        seconds: warmup_s + seconds,
        warmup_s,
        connections: 4096,
        timeout: Duration::from_secs(60),
        observer: Some(Arc::new(move |number, outcome| {
            if outcome.succeeded() && outcome.due.as_secs_f64() >= warmup_s {
                let read = matches!(outcome.cached, Some(CacheStatus::Miss | CacheStatus::Bypass));
                let one = (sizes.size_bytes(number), outcome.latency.as_secs_f64(), read);
                keep.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(one);
            }
        })),
        ..OpenLoop::new(cluster.address(), move |number| requests.request(number))
    })
    .await;
    if summary.failed() > 0 {
        println!("{} requests failed", summary.failed());
    }
    std::mem::take(&mut *seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn print(policy: &str, seen: &[Seen], alone_s: impl Fn(u64) -> f64) {
    let mut least = 0;
    for (most, name) in CLASSES {
        let is_in = |size: u64| most == 0 || (size <= most && (size > least || least == 0));
        let class: Vec<&Seen> = seen.iter().filter(|(size, ..)| is_in(*size)).collect();
        let mut slowdowns: Vec<f64> =
            class.iter().map(|(size, latency_s, _)| latency_s / alone_s(*size)).collect();
        slowdowns.sort_unstable_by(f64::total_cmp);
        let count = slowdowns.len().max(1);
        let quantile =
            |q: f64| slowdowns.get(((count as f64 * q) as usize).min(count - 1)).copied().unwrap_or(f64::NAN);
        let mean = slowdowns.iter().sum::<f64>() / count as f64;
        let misses = class.iter().filter(|(.., read)| *read).count() as f64 / count as f64;
        println!(
            "{policy:14} {name:11} {:>8} {mean:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>6.1}%",
            class.len(),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            misses * 100.0
        );
        least = most;
    }
}
