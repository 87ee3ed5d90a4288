//! Measures a mechanism on a lab: load from the client's node, and its cost at the front-end.

use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_lab::{CpuMeter, CpuUse, InterfaceCounters, Lab, LabConfig, Node, Traffic, cpu_time_of_others};
use plimsoll_testbed::load::{ClosedLoop, Expect, LoadSummary, Req};

use crate::lab_cluster::{
    ClientLoad, CloneCounts, Contents, LabCluster, LabClusterConfig, LabMechanism, documents,
};
use crate::{ExperimentError, Tell};

/// Time under load before anything is measured.
const WARMUP: Duration = Duration::from_secs(1);

/// The configuration of a trial: a lab with a cluster, and the load on it.
#[derive(Debug, Clone)]
pub struct LabTrial<'a> {
    /// The `plimsoll` program, of which front-end, agents and origins are processes.
    pub program: &'a Path,
    /// The lab; its back-ends are all used.
    pub lab: LabConfig,
    /// Policy of the front-end, by name.
    pub policy: &'a str,
    /// The load.
    pub load: LabLoad,
}

/// The load on the cluster.
#[derive(Debug, Clone, Copy)]
pub struct LabLoad {
    /// Size of each document in bytes.
    pub size_bytes: u64,
    /// Length of the measurement in seconds; one second of warm-up comes before.
    pub measured_s: f64,
    /// Connections of the client, each with one request at a time.
    pub connections: usize,
    /// Whether connections are kept for the next request.
    pub keep_alive: bool,
}

/// The measurements of one mechanism.
#[derive(Debug)]
pub struct LabMeasures {
    /// As the client saw it.
    pub summary: LoadSummary,
    /// Use of the front-end's own CPU under load, if it has one.
    pub cpu: Option<CpuUse>,
    /// Number of CPUs used by unrelated programs.
    pub other_programs_cpus: f64,
    /// Counts of the front-end's interface.
    pub front_end: InterfaceCounters,
    /// Traffic to the client, by sender.
    pub to_client: Vec<Traffic>,
    /// Connections that agents took; `None` without the mechanism.
    pub handoffs: Option<u64>,
    /// Further requests on them that stayed with the connection's back-end; `None` without the mechanism.
    pub stayed: Option<u64>,
    /// Connections that were distributed at layer 4; `None` without the mechanism.
    pub distributed: Option<u64>,
    /// Requests from the start of the warm-up to the end, and those that clones have answered; `None` without the mechanism.
    pub clones: Option<CloneCounts>,
}

impl LabMeasures {
    /// CPU time of the front-end per request in seconds, the kernel's work included.
    #[must_use]
    pub fn cpu_per_request_s(&self) -> Option<f64> {
        let requests = self.summary.succeeded_ever();
        self.cpu.filter(|_| requests > 0).map(|cpu| cpu.busy.as_secs_f64() / requests as f64)
    }

    /// Packets that arrived at the front-end, by request; 0 without any.
    #[must_use]
    pub fn packets_per_request(&self) -> f64 {
        self.front_end.received_packets as f64 / self.summary.succeeded_ever().max(1) as f64
    }

    /// Share of the bytes to the client that came by the front-end.
    #[must_use]
    pub fn share_through_front_end(&self) -> Option<f64> {
        let all: u64 = self.to_client.iter().map(|traffic| traffic.bytes).sum();
        let of_it = self.to_client.iter().filter(|t| t.from == Node::FrontEnd).map(|t| t.bytes).sum::<u64>();
        (all > 0).then(|| of_it as f64 / all as f64)
    }
}

/// A reading of all counters.
struct LabReading {
    cpu: Option<CpuUse>,
    others: Duration,
    front_end: InterfaceCounters,
    traffic: Vec<Traffic>,
    handoffs: Option<f64>,
    stayed: Option<f64>,
    distributed: Option<f64>,
}

fn read(
    lab: &Lab,
    cluster: &LabCluster<'_>,
    meter: Option<&CpuMeter>,
) -> Result<LabReading, ExperimentError> {
    Ok(LabReading {
        cpu: meter.map(CpuMeter::read),
        others: cpu_time_of_others()?,
        front_end: lab.node(Node::FrontEnd)?.counters()?,
        traffic: lab.traffic()?,
        handoffs: cluster.metric("plimsoll_handoffs_total"),
        stayed: cluster.metric("plimsoll_requests_stayed_total"),
        distributed: cluster.metric("plimsoll_switch_connections_begun_total"),
    })
}

/// Builds a fresh lab with a cluster, measures a mechanism, and tears everything down.
///
/// # Errors
/// When there is no lab, the cluster does not start, or no request is answered.
pub async fn run(
    trial: &LabTrial<'_>,
    mechanism: LabMechanism,
    tell: Tell<'_>,
) -> Result<LabMeasures, ExperimentError> {
    tell(&format!("plimsoll: {mechanism}: building the lab"));
    let lab = Lab::build(&trial.lab)?;
    lab.count_traffic()?;
    let contents = Contents::Files(trial.load.size_bytes);
    let config = LabClusterConfig::new(trial.program, mechanism, trial.lab.backends, trial.policy, contents);
    let cluster = LabCluster::start(&lab, &config).await?;
    let seconds = trial.load.measured_s;
    tell(&format!("plimsoll: {mechanism}: {WARMUP:?} of warm-up, then {seconds} s of load"));
    let mut measured = measure(&lab, &cluster, &trial.load, tell).await?;
    if measured.summary.succeeded == 0 {
        return Err(ExperimentError::Failed(format!(
            "no request was answered by {mechanism}: {}\n{}",
            measured.summary,
            cluster.last_words()
        )));
    }
    let counts = cluster.stop()?;
    measured.clones = (mechanism == LabMechanism::Clone).then_some(counts);
    Ok(measured)
}

/// Puts the load on the cluster and measures.
async fn measure(
    lab: &Lab,
    cluster: &LabCluster<'_>,
    wanted: &LabLoad,
    tell: Tell<'_>,
) -> Result<LabMeasures, ExperimentError> {
    let meter = lab.config().cpus.as_ref().map(|plan| CpuMeter::start(plan.front_end)).transpose()?;
    // A load of its own: all requests of the measured one lie between the two readings, those too that end after its time.
    let warmup = ClientLoad::start(lab, load(cluster, wanted, WARMUP))?;
    tokio::time::sleep(WARMUP).await;
    warmup.end()?;
    let (start, began) = (read(lab, cluster, meter.as_ref())?, Instant::now());
    let measured = Duration::from_secs_f64(wanted.measured_s);
    let load = ClientLoad::start(lab, load(cluster, wanted, measured))?;
    load.tell(measured, tell).await;
    let summary = load.end()?;
    let (end, elapsed) = (read(lab, cluster, meter.as_ref())?, began.elapsed());
    let count = |end: Option<f64>, start: Option<f64>| {
        // Counters are whole and do not fall.
        end.map(|end| (end - start.unwrap_or(0.0)).max(0.0) as u64)
    };
    Ok(LabMeasures {
        summary,
        cpu: end.cpu.zip(start.cpu).map(|(end, start)| end.since(start)),
        other_programs_cpus: (end.others.saturating_sub(start.others)).as_secs_f64() / elapsed.as_secs_f64(),
        front_end: end.front_end.since(start.front_end),
        to_client: since(&end.traffic, &start.traffic),
        handoffs: count(end.handoffs, start.handoffs),
        stayed: count(end.stayed, start.stayed),
        distributed: count(end.distributed, start.distributed),
        clones: None,
    })
}

/// What went to the client between two readings.
fn since(end: &[Traffic], start: &[Traffic]) -> Vec<Traffic> {
    let before = |traffic: &Traffic| start.iter().find(|t| (t.from, t.to) == (traffic.from, traffic.to));
    end.iter()
        .filter(|traffic| traffic.to == Node::Client)
        .map(|traffic| {
            let (packets, bytes) = before(traffic).map_or((0, 0), |t| (t.packets, t.bytes));
            Traffic {
                packets: traffic.packets.saturating_sub(packets),
                bytes: traffic.bytes.saturating_sub(bytes),
                ..*traffic
            }
        })
        .collect()
}

/// Requests the documents in turn, so that all are equally popular.
fn load(
    cluster: &LabCluster<'_>,
    wanted: &LabLoad,
    time: Duration,
) -> ClosedLoop<impl Fn(u64) -> Req + Send + Sync + use<>> {
    let (size_bytes, documents) = (wanted.size_bytes, documents(wanted.size_bytes));
    let request = move |number: u64| {
        let number = number % documents;
        Req::get(format!("/{number}")).expecting(Expect::Document { number, size_bytes })
    };
    ClosedLoop {
        connections: wanted.connections,
        seconds: time.as_secs_f64(),
        keep_alive: wanted.keep_alive,
        timeout: Duration::from_secs(10),
        ..ClosedLoop::new(cluster.target, request)
    }
}
