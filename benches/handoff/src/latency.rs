//! What a handoff adds to the latency of the first request on a connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use plimsoll_lab::{CpuMeter, CpuPlan, Node};

use crate::bed::{Bed, Kind};
use crate::configs::{BACKEND_PORT, PLIMSOLL_PORT};
use crate::cost::{Beds, met};
use crate::http::Client;

/// Connections of each kind, one after another.
const CONNECTIONS: usize = 1000;
const SIZE_BYTES: usize = 100;
const GOAL_US: f64 = 100.0;
/// Of Prism, see docs/benchmarks.md.
const GOAL_P99_US: f64 = 232.0;

/// Measures and prints, once with CPUs that fall asleep when nothing is to do, and once with CPUs that never do.
pub fn measure(beds: &Beds, plan: &CpuPlan) -> Result<()> {
    println!(
        "\nFirst response on a new connection after its request was sent, 100 B, one client, {CONNECTIONS} connections"
    );
    let before = beds.get(&Kind::Origin).context("no such lab")?.metrics(PLIMSOLL_PORT)?;
    run(beds, "CPUs sleep when idle")?;
    let between = beds.get(&Kind::Origin).context("no such lab")?.metrics(PLIMSOLL_PORT)?;
    {
        let _awake = [plan.front_end, plan.others[0]].map(CpuMeter::start);
        run(beds, "CPUs kept awake")?;
    }
    let after = beds.get(&Kind::Origin).context("no such lab")?.metrics(PLIMSOLL_PORT)?;
    println!("  take-over as the front-end counts it (plimsoll_take_over):");
    println!("    CPUs sleep when idle: {}", take_over(&before, &between));
    println!("    CPUs kept awake:      {}", take_over(&between, &after));
    Ok(())
}

/// The three ways to a response, and for each the time of every request.
const WAYS: [&str; 3] = ["straight to the back-end", "by proxy", "by handoff"];
pub type Times = [Vec<Duration>; 3];

fn run(beds: &Beds, what: &str) -> Result<()> {
    let mut times = times(beds, CONNECTIONS)?;
    println!("  {what}");
    let direct = times[0].clone();
    for (name, times) in WAYS.iter().zip(&mut times) {
        let (median, p99) = (quantile(times, 0.5), quantile(times, 0.99));
        print!("    {name:<26} median {:>7.1} us   p99 {:>7.1} us", us(median), us(p99));
        if *name == "by handoff" {
            let mut direct = direct.clone();
            let added = us(median) - us(quantile(&mut direct, 0.5));
            let added_p99 = us(p99) - us(quantile(&mut direct, 0.99));
            print!("   more than straight: {added:.1} us (goal {GOAL_US}: {})", met(added <= GOAL_US));
            print!(", p99 {added_p99:.1} us (goal {GOAL_P99_US}: {})", met(added_p99 < GOAL_P99_US));
        }
        println!();
    }
    Ok(())
}

/// Makes so many connections in each of the three ways.
pub fn times(beds: &Beds, connections: usize) -> Result<Times> {
    let (proxies, handing) = (beds.get(&Kind::Proxies), beds.get(&Kind::Origin));
    let (proxies, handing) = (proxies.context("no such lab")?, handing.context("no such lab")?);
    let [path, _] = handing.paths(SIZE_BYTES)?;
    // The back-end that the policy chooses for it.
    let ask = || Client::connect(handing.target(PLIMSOLL_PORT))?.get(&path);
    let chosen = handing.lab().node(Node::Client)?.run(ask)??.backend;
    let backend: Node = chosen.parse()?;
    let direct: SocketAddr = (handing.lab().node(backend)?.address(), BACKEND_PORT).into();
    let ways: [(&Bed, SocketAddr); 3] = [
        (handing, direct),
        (proxies, proxies.target(PLIMSOLL_PORT)),
        (handing, handing.target(PLIMSOLL_PORT)),
    ];
    let mut times = Times::default();
    // In batches, because entering a node takes a thread.
    for _ in 0..connections / 20 {
        for ((bed, to), times) in ways.iter().zip(&mut times) {
            let batch = || (0..20).map(|_| once(*to, &path)).collect::<Result<Vec<_>>>();
            times.extend(bed.lab().node(Node::Client)?.run(batch)??);
        }
    }
    Ok(times)
}

/// From sending the request to having the whole response.
fn once(to: SocketAddr, path: &str) -> Result<Duration> {
    let mut client = Client::connect(to)?;
    // The other side has accepted it by then.
    std::thread::sleep(Duration::from_micros(300));
    let start = Instant::now();
    let answer = client.get(path)?;
    let took = start.elapsed();
    if answer.body.len() != SIZE_BYTES {
        bail!("{to}: {} bytes instead of {SIZE_BYTES}", answer.body.len());
    }
    Ok(took)
}

pub fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let at = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len().max(1));
    times.get(at - 1).copied().unwrap_or_default()
}

/// Mean, and between which bounds median and 99th percentile of a histogram are that grew from one page to the next.
fn take_over(before: &str, after: &str) -> String {
    let buckets = |page: &str| -> Vec<(f64, f64)> {
        let lines =
            page.lines().filter_map(|line| line.strip_prefix("plimsoll_take_over_seconds_bucket{le=\""));
        let parts = lines.filter_map(|line| line.split_once("\"} "));
        parts.filter_map(|(end, n)| Some((end.parse().ok()?, n.parse().ok()?))).collect()
    };
    let grown: Vec<(f64, f64)> =
        buckets(after).iter().zip(buckets(before)).map(|(a, b)| (a.0, a.1 - b.1)).collect();
    let count = grown.last().map_or(0.0, |last| last.1);
    let total = |page| crate::http::sum(page, "plimsoll_take_over_seconds_sum", "");
    let within = |share: f64| {
        let end = grown.iter().position(|(_, n)| *n >= share * count).unwrap_or(0);
        let from = if end == 0 { 0.0 } else { grown[end - 1].0 };
        format!("{:.0} to {:.0} us", from * 1e6, grown.get(end).map_or(0.0, |b| b.0) * 1e6)
    };
    let mean = (total(after) - total(before)) / count * 1e6;
    format!("{count:.0} handoffs, mean {mean:.0} us, median {}, p99 {}", within(0.5), within(0.99))
}
