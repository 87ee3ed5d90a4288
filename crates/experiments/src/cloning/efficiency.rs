//! Figure 8: normalized efficiency of clones, of fetches and of the front-end's handoff, by the size of the document.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use plimsoll_agent::daemon::CacheLocation;
use plimsoll_config::MechanismKind;
use plimsoll_lab::{Conditions, CpuLimit, Lab, LabConfig, Node, Rate};
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{OriginConfig, Source};
use plimsoll_studies::cloning::{Effort, LiveRound, LiveStartup, MicroMechanism};
use plimsoll_testbed::load::{CacheStatus, ClosedLoop, Expect, LoadSummary, Req};

use super::bed::{BedCaching, BedPlan, CloneBed, clients_reuse_ports};
use super::nodes::LINK_BITS_PER_S;
use super::plan::{lengths, sizes};
use crate::lab_cluster::{ClientLoad, Contents, LabCluster, LabClusterConfig, backend_address};
use crate::{ExperimentError, Tell, block_on};

/// Requests under way.
pub(super) const CONNECTIONS: usize = 16;
/// CPUs that a node may use.
pub(super) const NODE_CPUS: f64 = 0.25;
/// Documents that are asked for in turn: more than connections, so that no request waits for another's fetch.
const DOCUMENTS: usize = 24;
const WARMUP_S: f64 = 0.3;
/// Share of the requests that have to go by the mechanism.
const BY_MECHANISM: f64 = 0.98;

/// What all rounds have in common.
#[derive(Clone, Copy)]
pub(super) struct MicroBench<'a> {
    pub(super) effort: Effort,
    pub(super) program: &'a Path,
    /// Whether nodes have limits of CPU time.
    pub(super) limited: bool,
    pub(super) tell: Tell<'a>,
}

/// Measures all rounds.
pub(super) fn measure(bench: MicroBench<'_>) -> Result<Vec<LiveRound>, ExperimentError> {
    let mut rounds = on_nodes(bench, MicroMechanism::Cloning)?;
    rounds.extend(on_nodes(bench, MicroMechanism::Forwarding)?);
    rounds.extend(by_handoff(bench)?);
    Ok(rounds)
}

/// How long it takes until clones are there, on links as fast as the machine and without limits.
pub(super) fn startup(effort: Effort, tell: Tell<'_>) -> Result<LiveStartup, ExperimentError> {
    let bed = bed(None, &[])?;
    let mut times_us = bed.startups_us(lengths(effort).clones)?;
    bed.stop()?;
    times_us.sort_by(f64::total_cmp);
    let at = |share: f64| times_us[((times_us.len() as f64 * share) as usize).min(times_us.len() - 1)];
    let found = LiveStartup { clones: times_us.len(), median_us: at(0.5), p99_us: at(0.99) };
    tell(&format!(
        "a clone is there after {:.0} µs in the median, 99 % within {:.0} µs, of {}",
        found.median_us, found.p99_us, found.clones
    ));
    Ok(found)
}

fn limits(bench: MicroBench<'_>, count: usize) -> Result<Vec<CpuLimit>, ExperimentError> {
    (0..if bench.limited { count } else { 0 }).map(|_| Ok(CpuLimit::new()?)).collect()
}

fn bed(caching: Option<BedCaching>, limits: &[CpuLimit]) -> Result<CloneBed, ExperimentError> {
    let lab = Lab::build(&LabConfig { backends: 2, ..LabConfig::default() })?;
    let origin = || OriginConfig::new(Source::synthetic(Synthetic::fixed(1000)));
    let plan = BedPlan {
        clones: caching.is_none(),
        caching,
        limits,
        ..BedPlan::new(&[Node::Backend(0), Node::Backend(1)], &origin)
    };
    CloneBed::start(lab, &plan)
}

/// The links of the figure.
fn slow() -> Result<Conditions, ExperimentError> {
    Ok(Conditions { rate: Some(Rate::from_bits_per_s(LINK_BITS_PER_S)?), ..Conditions::default() })
}

/// Two nodes: clients connect to one of them, and the other one has the documents.
fn on_nodes(bench: MicroBench<'_>, mechanism: MicroMechanism) -> Result<Vec<LiveRound>, ExperimentError> {
    let fetches = mechanism == MicroMechanism::Forwarding;
    let limits = limits(bench, 2)?;
    let caching = fetches.then_some(BedCaching { location: CacheLocation::Hash, replicate: false });
    let bed = bed(caching, &limits)?;
    let mut found = Vec::new();
    for (size_bytes, half_s) in sizes(bench.effort) {
        set(&limits, None)?;
        bed.set_links(&Conditions::default())?;
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let documents = if fetches {
            bed.documents(size, DOCUMENTS, |head| head.contains("x-cache: peer"))?
        } else {
            bed.documents_at(1, size, DOCUMENTS)?
        };
        bed.set_links(&slow()?)?;
        set(&limits, Some(NODE_CPUS))?;
        for round in 1..=lengths(bench.effort).rounds {
            let cloned = || bed.counts(0).clones.clone_answers;
            let before = cloned();
            let with = load(&bed.lab, bed.vip(0), &documents, size_bytes, half_s)?;
            let by_mechanism = if fetches {
                with.cached.get(&CacheStatus::Peer).copied().unwrap_or(0)
            } else {
                cloned() - before
            };
            let alone = load(&bed.lab, bed.vip(1), &documents, size_bytes, half_s)?;
            found.extend(told(bench, mechanism, (size_bytes, round), [&with, &alone], by_mechanism));
        }
    }
    bed.stop()?;
    Ok(found)
}

/// A front-end that hands each connection to a back-end, beside that back-end alone.
fn by_handoff(bench: MicroBench<'_>) -> Result<Vec<LiveRound>, ExperimentError> {
    let mechanism = MicroMechanism::Handoff;
    block_on(async {
        let lab = Lab::build(&LabConfig { backends: 1, ..LabConfig::default() })?;
        let contents = Contents::Synthetic("fixed:1000".to_owned());
        let config = LabClusterConfig::new(bench.program, MechanismKind::Handoff, 1, "round_robin", contents);
        let config = LabClusterConfig { origin: vec!["--threads".to_owned(), "1".to_owned()], ..config };
        let cluster = LabCluster::start(&lab, &config).await?;
        clients_reuse_ports(&lab)?;
        let limits = limits(bench, 2)?;
        cluster.limit_cpus(&limits)?;
        let alone_at = backend_address(&lab, 0)?;
        let taken = || cluster.metric("plimsoll_handoffs_total{outcome=\"taken\"}").unwrap_or(0.0) as u64;
        set(&limits, Some(NODE_CPUS))?;
        for node in [Node::FrontEnd, Node::Backend(0)] {
            lab.link(node)?.set(&slow()?)?;
        }
        let mut found = Vec::new();
        for (size_bytes, half_s) in sizes(bench.effort) {
            let documents: Vec<String> =
                (0..DOCUMENTS).map(|at| format!("/size/{size_bytes}/s{at}")).collect();
            for round in 1..=lengths(bench.effort).rounds {
                let before = taken();
                let with = tokio::task::block_in_place(|| {
                    load(&lab, cluster.target, &documents, size_bytes, half_s)
                })?;
                let by_mechanism = taken() - before;
                let alone =
                    tokio::task::block_in_place(|| load(&lab, alone_at, &documents, size_bytes, half_s))?;
                found.extend(told(bench, mechanism, (size_bytes, round), [&with, &alone], by_mechanism));
            }
        }
        Ok::<_, ExperimentError>(found)
    })
}

fn set(limits: &[CpuLimit], cpus: Option<f64>) -> Result<(), ExperimentError> {
    Ok(limits.iter().try_for_each(|limit| limit.set(cpus))?)
}

/// Asks for the documents in turn, each over a connection of its own.
fn load(
    lab: &Lab,
    target: SocketAddr,
    documents: &[String],
    size_bytes: u64,
    seconds: f64,
) -> Result<LoadSummary, ExperimentError> {
    let documents = documents.to_vec();
    let request = move |number: u64| {
        let at = usize::try_from(number).unwrap_or(0) % documents.len();
        Req::get(documents[at].as_str()).expecting(Expect::Length(size_bytes))
    };
    let load = ClosedLoop {
        connections: CONNECTIONS,
        seconds: WARMUP_S + seconds,
        warmup_s: WARMUP_S,
        keep_alive: false,
        timeout: Duration::from_secs(20),
        ..ClosedLoop::new(target, request)
    };
    let summary = ClientLoad::start(lab, load)?.end()?;
    if summary.succeeded == 0 || summary.failed() * 100 > summary.requests {
        return Err(ExperimentError::Failed(format!("requests of figure 8 failed: {summary}")));
    }
    Ok(summary)
}

/// A round; none if not nearly all requests went by the mechanism, as on a machine that has too much else to do: then nodes hold one another
/// for dead. Counts may lag behind by what is under way.
fn told(
    bench: MicroBench<'_>,
    mechanism: MicroMechanism,
    (size_bytes, round): (u64, u64),
    [with, alone]: [&LoadSummary; 2],
    by_mechanism: u64,
) -> Option<LiveRound> {
    let (with_rps, alone_rps) = (with.throughput_rps(), alone.throughput_rps());
    let is_measured = by_mechanism as f64 >= BY_MECHANISM * with.succeeded as f64 - 2.0 * CONNECTIONS as f64;
    let ending = if is_measured {
        format!("{:.2}", with_rps / alone_rps)
    } else {
        format!("not counted, as only {by_mechanism} of {} went by the mechanism", with.succeeded)
    };
    (bench.tell)(&format!(
        "figure 8, round {round}: {}, {size_bytes} B: {with_rps:.0} requests/s, alone {alone_rps:.0}: {ending}",
        mechanism.title()
    ));
    is_measured.then_some(LiveRound { mechanism, size_bytes, round, with_rps, alone_rps })
}
