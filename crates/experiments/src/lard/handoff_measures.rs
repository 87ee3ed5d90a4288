//! The measures of connection handoff in section 6.2 of the LARD paper, on a lab.

use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_config::MechanismKind;
use plimsoll_lab::{CpuPlan, Lab, Node};
use plimsoll_studies::lard::{Effort, Forwarding, HandoffMeasures, HandoffThroughput, LatencyRound};
use plimsoll_testbed::load::{ClosedLoop, Expect, LoadSummary, Req};

use super::bench::Bench;
use super::cpu_watch::{CpuWatch, Use, cpus_in_words};
use super::dispatch_cost::dispatch_s;
use super::handoff_figure::{check_handed_off, taken};
use super::lab::{lab, start};
use super::stop::Stop;
use crate::lab_cluster::{ClientLoad, Contents, LabCluster, LabClusterConfig, backend_address};
use crate::{ExperimentError, Tell};

const BACKENDS: usize = 2;
/// Size of the answers for latency and throughput, in bytes.
const SMALL: u64 = 1024;
/// Size of the transfers for which packets are forwarded, in bytes.
const LARGE: u64 = 16 << 20;
/// Documents of either size.
const SMALL_DOCUMENTS: u64 = 64;
const LARGE_DOCUMENTS: u64 = 4;
/// Requests under way under load.
const SMALL_CONNECTIONS: usize = 64;
const LARGE_CONNECTIONS: usize = 4;
const WARMUP_S: f64 = 0.5;

/// Lengths of the measurements in seconds.
struct Lengths {
    rounds: usize,
    round_s: f64,
    load_s: f64,
}

impl Lengths {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Full => Self { rounds: 7, round_s: 2.0, load_s: 10.0 },
            Effort::Quick => Self { rounds: 3, round_s: 0.5, load_s: 2.0 },
        }
    }
}

/// The test bed.
#[derive(Clone, Copy)]
struct Bed<'a> {
    lab: &'a Lab,
    cluster: &'a LabCluster<'a>,
    lengths: &'a Lengths,
    cpus: Option<&'a CpuPlan>,
    tell: Tell<'a>,
}

/// Measures everything, one after another.
pub(super) async fn measure(bench: Bench<'_>, cpus: Option<&CpuPlan>) -> Result<HandoffMeasures, Stop> {
    let lengths = Lengths::of(bench.effort);
    let seconds = 2.0 * (lengths.rounds as f64 * lengths.round_s + WARMUP_S + lengths.load_s) + 1.5;
    (bench.tell)(&format!("connection handoff: measures for about {seconds:.0} s"));
    // Packets as on a real network: whole segments of at most 1,500 bytes, each acknowledged as such.
    let lab = lab(BACKENDS, cpus, true)?;
    let contents = Contents::Synthetic(format!("fixed:{SMALL}"));
    let config = LabClusterConfig::new(bench.program, MechanismKind::Handoff, BACKENDS, "lard_r", contents);
    let cluster = start(&lab, &config).await?;
    let bed = Bed { lab: &lab, cluster: &cluster, lengths: &lengths, cpus, tell: bench.tell };
    let rounds = latency(bed)?;
    let throughput = throughput(bed).await?;
    let forwarding = forwarding(bed).await?;
    let dispatch_s = dispatch_s(BACKENDS);
    Ok(HandoffMeasures { setting: setting(&lengths, cpus), rounds, throughput, forwarding, dispatch_s })
}

fn setting(lengths: &Lengths, cpus: Option<&CpuPlan>) -> String {
    format!(
        "Client, front-end and {BACKENDS} back-ends are nodes of their own, but on one machine (network namespaces joined by \
         a switch, packets of at most 1,500 bytes): {}. Back-ends answer by the agent's own origin from memory, without \
         emulated disk or CPU; the policy is LARD/R; every request has a connection to itself. Latency: {SMALL} bytes, one \
         client, {} rounds of {} s straight and {} s by handoff. Throughput: {SMALL} bytes, {SMALL_CONNECTIONS} clients. \
         Forwarding: {} MiB, {LARGE_CONNECTIONS} clients. Each of these {} s after {WARMUP_S} s of warm-up",
        cpus_in_words(cpus),
        lengths.rounds,
        lengths.round_s,
        lengths.round_s,
        LARGE >> 20,
        lengths.load_s
    )
}

/// Requests the documents of a size in turn, each on its own connection.
fn load(
    target: SocketAddr,
    size_bytes: u64,
    documents: u64,
    connections: usize,
) -> ClosedLoop<impl Fn(u64) -> Req + Send + Sync> {
    let request = move |number: u64| {
        Req::get(format!("/size/{size_bytes}/{}", number % documents)).expecting(Expect::Length(size_bytes))
    };
    ClosedLoop { connections, keep_alive: false, ..ClosedLoop::new(target, request) }
}

fn latency(bed: Bed<'_>) -> Result<Vec<LatencyRound>, Stop> {
    let Bed { lab, cluster, lengths, tell, .. } = bed;
    let origin = backend_address(lab, 0)?;
    let ask = |target, seconds| {
        let load = load(target, SMALL, SMALL_DOCUMENTS, 1);
        let load = ClientLoad::start(lab, ClosedLoop { seconds, ..load })?;
        let summary = tokio::task::block_in_place(|| load.end())?;
        good(&summary, cluster, tell).map(|()| summary)
    };
    // Fills caches and tables first, unmeasured.
    ask(origin, 0.2)?;
    ask(cluster.target, 0.2)?;
    let mut rounds = Vec::new();
    for number in 1..=lengths.rounds {
        let before = taken(cluster);
        let (direct, handed_off) = (ask(origin, lengths.round_s)?, ask(cluster.target, lengths.round_s)?);
        check_handed_off(taken(cluster) - before, handed_off.succeeded)?;
        let median_s = |summary: &LoadSummary| summary.quantile(0.5).as_secs_f64();
        let round = LatencyRound {
            direct_s: median_s(&direct),
            handed_off_s: median_s(&handed_off),
            requests: direct.succeeded.min(handed_off.succeeded),
        };
        tell(&format!(
            "handoff latency, round {number}: straight {:.0} µs, by handoff {:.0} µs, medians of {} requests or more",
            1e6 * round.direct_s,
            1e6 * round.handed_off_s,
            round.requests
        ));
        rounds.push(round);
    }
    Ok(rounds)
}

/// Measures under load: length of the measurement, the growth of `count`, and the use of CPUs.
async fn under_load(
    bed: Bed<'_>,
    what: &str,
    load: ClosedLoop<impl Fn(u64) -> Req + Send + Sync + 'static>,
    count: impl Fn() -> Result<[f64; 2], Stop>,
) -> Result<(f64, [f64; 2], Use), Stop> {
    let Bed { lab, cluster, lengths, cpus, tell } = bed;
    let (watch, taken_before) = (CpuWatch::start(cpus, tell)?, taken(cluster));
    // A little longer than the measurement, so that it does not include the end of the load.
    let seconds = WARMUP_S + lengths.load_s + 0.1;
    let load = ClientLoad::start(lab, ClosedLoop { seconds, ..load })?;
    tokio::time::sleep(Duration::from_secs_f64(WARMUP_S)).await;
    let (start, before, first) = (std::time::Instant::now(), watch.read()?, count()?);
    tokio::time::sleep(Duration::from_secs_f64(lengths.load_s)).await;
    let (after, last) = (watch.read()?, count()?);
    let elapsed_s = start.elapsed().as_secs_f64();
    let in_use = watch.between(&before, &after, what, elapsed_s);
    let summary = tokio::task::block_in_place(|| load.end())?;
    good(&summary, cluster, tell)?;
    tell(&format!("{what}: {summary}"));
    check_handed_off(taken(cluster) - taken_before, summary.succeeded)?;
    Ok((elapsed_s, [last[0] - first[0], last[1] - first[1]], in_use))
}

async fn throughput(bed: Bed<'_>) -> Result<HandoffThroughput, Stop> {
    let cluster = bed.cluster;
    let load = load(cluster.target, SMALL, SMALL_DOCUMENTS, SMALL_CONNECTIONS);
    let count = || Ok([taken(cluster), 0.0]);
    let (elapsed_s, [handoffs, _], in_use) = under_load(bed, "handoff throughput", load, count).await?;
    Ok(HandoffThroughput {
        elapsed_s,
        // Counters are whole and do not fall.
        handoffs: handoffs.max(0.0) as u64,
        front_end_cpu_s: in_use.front_end.map(|cpu| cpu.busy.as_secs_f64()),
        others_busy: in_use.others_busy,
        strangers_cpus: in_use.strangers_cpus,
    })
}

async fn forwarding(bed: Bed<'_>) -> Result<Forwarding, Stop> {
    let Bed { lab, cluster, .. } = bed;
    let load = load(cluster.target, LARGE, LARGE_DOCUMENTS, LARGE_CONNECTIONS);
    let count = || {
        let packets = cluster.metric("plimsoll_packets_total{action=\"forwarded\"}").unwrap_or(0.0);
        Ok([packets, lab.node(Node::Client)?.counters()?.received_bytes as f64])
    };
    let (elapsed_s, [packets, bytes], in_use) = under_load(bed, "forwarding", load, count).await?;
    Ok(Forwarding {
        elapsed_s,
        packets: packets.max(0.0) as u64,
        bytes: bytes.max(0.0) as u64,
        front_end_cpu_s: in_use.front_end.map(|cpu| cpu.busy.as_secs_f64()),
        others_busy: in_use.others_busy,
        strangers_cpus: in_use.strangers_cpus,
    })
}

/// Fails if many requests failed, because the load then measured something else.
fn good(summary: &LoadSummary, cluster: &LabCluster<'_>, tell: Tell<'_>) -> Result<(), Stop> {
    if summary.failed() > 0 {
        tell(&format!("plimsoll: warning: requests failed on the lab: {summary}"));
    }
    if summary.succeeded > 0 && summary.failed() * 100 <= summary.requests {
        return Ok(());
    }
    let why = format!("requests on the lab failed: {summary}\n{}", cluster.last_words());
    Err(Stop::Failed(ExperimentError::Failed(why)))
}
