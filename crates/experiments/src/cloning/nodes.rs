//! Figure 9: a log replayed to nodes whose memories together are smaller than its documents, which are on a file server.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_agent::daemon::CacheLocation;
use plimsoll_lab::{Conditions, CpuLimit, Lab, LabConfig, Node, Rate};
use plimsoll_origin::{OriginConfig, PeerMemory, Source};
use plimsoll_studies::cloning::{LiveRun, LiveSetting, live_cache_bytes, scaled_berkeley};
use plimsoll_testbed::load::{ClosedLoop, LoadSummary};
use plimsoll_testbed::machine::CpuTime;
use plimsoll_testbed::workload::RequestSequence;

use super::bed::{BedCaching, BedPlan, CloneBed};
use super::file_server::{FileServer, MountedFiles};
use super::plan::LiveLengths;
use crate::lab_cluster::ClientLoad;
use crate::{ExperimentError, Tell};

/// Nineteen clients with two connections each.
pub(super) const CONNECTIONS: usize = 38;
/// CPUs that a node may use.
pub(super) const NODE_CPUS: f64 = 0.2;
/// The links of nodes, and that of the file server: 29 MB/s as in the simulated study.
pub(super) const LINK_BITS_PER_S: u64 = 100_000_000;
pub(super) const FILE_SERVER_BITS_PER_S: u64 = 232_000_000;
/// Requests after which the sequence begins anew; more than any run makes.
const SEQUENCE: usize = 120_000;
/// Fills caches in this time at most.
const WARMING_S: f64 = 60.0;

/// The requests of a seed, for all its runs.
pub(super) fn requests(seed: u64) -> Result<RequestSequence, ExperimentError> {
    let parameters = scaled_berkeley();
    let parameters: Vec<_> = parameters.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let made = RequestSequence::synthesize("berkeley", &parameters, seed, SEQUENCE);
    made.map_err(|error| ExperimentError::Failed(format!("the workload: {error}")))
}

/// The nodes of a run, with what they are limited by.
struct NodesRun {
    bed: CloneBed,
    server: FileServer,
    mounted: Vec<Arc<MountedFiles>>,
    limits: Vec<CpuLimit>,
}

/// Counts of a run so far.
#[derive(Debug, Clone, Default)]
struct RunReading {
    reads: u64,
    fetched: u64,
    failed_reads: u64,
    cloned: u64,
    server_bytes: u64,
    periods: Vec<(u64, u64)>,
}

impl NodesRun {
    fn start(
        setting: LiveSetting,
        requests: &RequestSequence,
        limited: bool,
    ) -> Result<Self, ExperimentError> {
        let lab = Lab::build(&LabConfig { backends: setting.nodes, ..LabConfig::default() })?;
        let server = FileServer::start(lab.node(Node::FrontEnd)?, requests.contents())?;
        let limits =
            if limited { (0..setting.nodes).map(|_| CpuLimit::new()).collect() } else { Ok(Vec::new()) };
        let limits = limits?;
        let mounted = Mutex::new(Vec::new());
        let places: Vec<Node> = (0..setting.nodes).map(Node::Backend).collect();
        let source = Source::synthetic(requests.contents());
        let origin = || OriginConfig {
            cache_policy: if setting.strategy.is_lfu() { "lfu" } else { "lru" }.to_owned(),
            cache_bytes: live_cache_bytes(),
            ..OriginConfig::new(source.clone())
        };
        let wrap = |_, peers| {
            let files = server.mount(peers);
            mounted.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&files));
            Some(files as Arc<dyn PeerMemory>)
        };
        let fetches = setting.strategy.fetches() || setting.fetches;
        let plan = BedPlan {
            clones: setting.strategy.clones(),
            caching: fetches.then_some(BedCaching { location: CacheLocation::Hints, replicate: true }),
            limits: &limits,
            wrap: &wrap,
            change: &|config| config.min_bytes = setting.min_bytes,
            ..BedPlan::new(&places, &origin)
        };
        let bed = CloneBed::start(lab, &plan)?;
        let mounted = mounted.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Self { bed, server, mounted, limits })
    }

    fn read(&self) -> Result<RunReading, ExperimentError> {
        let sum = |of: fn(&MountedFiles) -> u64| self.mounted.iter().map(|files| of(files)).sum();
        let nodes = 0..self.mounted.len();
        Ok(RunReading {
            reads: sum(|files| files.counts.reads.load(Ordering::Relaxed)),
            fetched: sum(|files| files.counts.fetched.load(Ordering::Relaxed)),
            failed_reads: sum(|files| files.counts.failed.load(Ordering::Relaxed)),
            cloned: nodes.map(|number| self.bed.counts(number).clones.clone_answers).sum(),
            server_bytes: self.server.sent_bytes(),
            periods: self.limits.iter().map(CpuLimit::periods).collect::<Result<_, _>>()?,
        })
    }

    /// Links, the file server and CPUs are fast until then.
    fn slow_down(&self) -> Result<(), ExperimentError> {
        let limited = |bits_per_s| -> Result<Conditions, ExperimentError> {
            Ok(Conditions { rate: Some(Rate::from_bits_per_s(bits_per_s)?), ..Conditions::default() })
        };
        self.bed.set_links(&limited(LINK_BITS_PER_S)?)?;
        self.bed.lab.link(Node::FrontEnd)?.set(&limited(FILE_SERVER_BITS_PER_S)?)?;
        self.server.slow_down();
        Ok(self.limits.iter().try_for_each(|limit| limit.set(Some(NODE_CPUS)))?)
    }

    /// A load whose first request is this one of the sequence, each over a connection of its own, to the nodes in turn.
    fn load(
        &self,
        requests: &RequestSequence,
        first: u64,
    ) -> ClosedLoop<impl Fn(u64) -> plimsoll_testbed::load::Req + Send + Sync + use<>> {
        let requests = requests.clone();
        let mut vips = self.bed.vips();
        let target = vips.remove(0);
        ClosedLoop {
            connections: CONNECTIONS,
            keep_alive: false,
            further_targets: vips,
            timeout: Duration::from_secs(20),
            ..ClosedLoop::new(target, move |number| requests.request(first + number))
        }
    }
}

/// Makes one run.
pub(super) fn run(
    setting: LiveSetting,
    seed: u64,
    requests: &RequestSequence,
    lengths: LiveLengths,
    limited: bool,
    tell: Tell<'_>,
) -> Result<LiveRun, ExperimentError> {
    let run = NodesRun::start(setting, requests, limited)?;
    let warming = ClosedLoop { requests: lengths.warm_requests, seconds: WARMING_S, ..run.load(requests, 0) };
    let warmed = ClientLoad::start(&run.bed.lab, warming)?.end()?;
    if warmed.succeeded < lengths.warm_requests - lengths.warm_requests / 100 {
        return Err(ExperimentError::Failed(format!("caches were not filled: {warmed}")));
    }
    run.slow_down()?;
    let seconds = lengths.settle_s + lengths.nodes_s;
    let (before, cpu_before, began) = (run.read()?, CpuTime::now(), Instant::now());
    let load =
        ClosedLoop { seconds, warmup_s: lengths.settle_s, ..run.load(requests, lengths.warm_requests) };
    let summary = ClientLoad::start(&run.bed.lab, load)?.end()?;
    let (after, cpu_after, took_s) = (run.read()?, CpuTime::now(), began.elapsed().as_secs_f64());
    let found = LiveRun {
        machine_busy: cpu_before.zip(cpu_after).and_then(|(before, after)| after.busy_since(before)),
        ..compare(setting, seed, &summary, (&before, &after, took_s))
    };
    let NodesRun { bed, server, .. } = run;
    bed.stop()?;
    drop(server);
    let mut told = format!("figure 9, seed {seed}: {}", in_words(&found));
    for (why, count) in &summary.failures {
        told += &format!("; {why}: {count}");
    }
    for (status, count) in summary.statuses.range(400..) {
        told += &format!("; status {status}: {count}");
    }
    tell(&told);
    if found.failed * 100 > found.answers || after.failed_reads > before.failed_reads {
        return Err(ExperimentError::Failed(format!("requests of figure 9 failed: {summary}")));
    }
    Ok(found)
}

fn compare(
    setting: LiveSetting,
    seed: u64,
    summary: &LoadSummary,
    (before, after, took_s): (&RunReading, &RunReading, f64),
) -> LiveRun {
    let all = summary.succeeded_ever().max(1) as f64;
    let bytes_per_s = |bits_per_s: u64| bits_per_s as f64 / 8.0;
    let sent_bytes = summary.bytes as f64 / summary.measured.as_secs_f64().max(1e-9);
    let throttled = before
        .periods
        .iter()
        .zip(&after.periods)
        .map(|(before, after)| (after.1 - before.1) as f64 / ((after.0 - before.0) as f64).max(1.0));
    LiveRun {
        setting,
        seed,
        throughput_rps: summary.throughput_rps(),
        answers: summary.succeeded,
        failed: summary.failed(),
        read_share: (after.reads - before.reads) as f64 / all,
        fetched_share: (after.fetched - before.fetched) as f64 / all,
        cloned_share: (after.cloned - before.cloned) as f64 / all,
        file_server_busy: (after.server_bytes - before.server_bytes) as f64
            / bytes_per_s(FILE_SERVER_BITS_PER_S)
            / took_s,
        sending: sent_bytes / bytes_per_s(LINK_BITS_PER_S) / setting.nodes as f64,
        throttled: throttled.fold(0.0, f64::max),
        machine_busy: None,
    }
}

fn in_words(run: &LiveRun) -> String {
    let LiveSetting { strategy, nodes, min_bytes, fetches } = run.setting;
    let mut how = String::new();
    if min_bytes > 0 {
        how += &format!(" from {} KB on", min_bytes / 1024);
    }
    if fetches {
        how += " with fetches";
    }
    format!(
        "{}{how}, {nodes} nodes: {:.0} requests/s; read {:.0} %, fetched {:.0} %, cloned {:.0} %; file server {:.0} %, sending {:.0} %, \
         out of CPU {:.0} %, machine {:.0} %",
        strategy.title(),
        run.throughput_rps,
        100.0 * run.read_share,
        100.0 * run.fetched_share,
        100.0 * run.cloned_share,
        100.0 * run.file_server_busy,
        100.0 * run.sending,
        100.0 * run.throttled,
        run.machine_busy.map_or(f64::NAN, |busy| 100.0 * busy)
    )
}
