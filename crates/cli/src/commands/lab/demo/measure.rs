//! Load from the client's node, and what it costs the front-end.

use std::time::Duration;

use plimsoll_lab::{Counters, CpuMeter, CpuUse, Lab, Node, Traffic, cpu_time_of_others};
use plimsoll_testbed::load::{ClosedLoop, Expect, Req, Summary};

use super::Args;
use crate::error::CliError;
use crate::lab_cluster::{Cluster, Load, Mechanism, documents};

/// Time under load before anything is measured.
const WARMUP: Duration = Duration::from_secs(1);

/// What was measured of one mechanism.
pub(super) struct Measured {
    pub(super) mechanism: Mechanism,
    pub(super) summary: Summary,
    /// Of the front-end's CPU under load, if it has one to itself.
    pub(super) cpu: Option<CpuUse>,
    /// CPUs that programs used which have nothing to do with this.
    pub(super) other_programs_cpus: f64,
    /// What passed the front-end's interface.
    pub(super) front_end: Counters,
    /// What the client got, from whom.
    pub(super) to_client: Vec<Traffic>,
    /// Connections that agents took; `None` without the mechanism.
    pub(super) handoffs: Option<u64>,
    /// Further requests on them that stayed where the connection was; `None` without the mechanism.
    pub(super) stayed: Option<u64>,
}

impl Measured {
    /// CPU time of the front-end per request in seconds, the kernel's work included.
    pub(super) fn cpu_per_request_s(&self) -> Option<f64> {
        let requests = self.summary.succeeded;
        self.cpu.filter(|_| requests > 0).map(|cpu| cpu.busy.as_secs_f64() / requests as f64)
    }

    /// Packets that arrived at the front-end, by request; 0 without any.
    pub(super) fn packets_per_request(&self) -> f64 {
        self.front_end.received_packets as f64 / self.summary.succeeded.max(1) as f64
    }

    /// Share of the bytes to the client that came by the front-end.
    pub(super) fn share_through_front_end(&self) -> Option<f64> {
        let all: u64 = self.to_client.iter().map(|traffic| traffic.bytes).sum();
        let of_it = self.to_client.iter().filter(|t| t.from == Node::FrontEnd).map(|t| t.bytes).sum::<u64>();
        (all > 0).then(|| of_it as f64 / all as f64)
    }
}

/// What stands at one moment.
struct Reading {
    cpu: Option<CpuUse>,
    others: Duration,
    front_end: Counters,
    traffic: Vec<Traffic>,
    handoffs: Option<f64>,
    stayed: Option<f64>,
}

fn read(lab: &Lab, cluster: &Cluster<'_>, meter: Option<&CpuMeter>) -> Result<Reading, CliError> {
    Ok(Reading {
        cpu: meter.map(CpuMeter::read),
        others: cpu_time_of_others()?,
        front_end: lab.node(Node::FrontEnd)?.counters()?,
        traffic: lab.traffic()?,
        handoffs: cluster.metric("plimsoll_handoffs_total"),
        stayed: cluster.metric("plimsoll_requests_stayed_total"),
    })
}

/// Puts the load on the cluster and measures.
pub(super) async fn run(
    lab: &Lab,
    cluster: &Cluster<'_>,
    args: &Args,
    mechanism: Mechanism,
) -> Result<Measured, CliError> {
    let meter = lab.config().cpus.as_ref().map(|plan| CpuMeter::start(plan.front_end)).transpose()?;
    eprintln!("plimsoll: {mechanism}: {WARMUP:?} of warm-up, then {} s of load", args.seconds);
    let load = Load::start(lab, load(cluster, args))?;
    tokio::time::sleep(WARMUP).await;
    let start = read(lab, cluster, meter.as_ref())?;
    let measured = Duration::from_secs_f64(args.seconds);
    load.tell(measured).await;
    let end = read(lab, cluster, meter.as_ref())?;
    let summary = load.end()?;
    let count = |end: Option<f64>, start: Option<f64>| {
        // Counters are whole and do not fall.
        end.map(|end| (end - start.unwrap_or(0.0)).max(0.0) as u64)
    };
    Ok(Measured {
        mechanism,
        summary,
        cpu: end.cpu.zip(start.cpu).map(|(end, start)| end.since(start)),
        other_programs_cpus: (end.others.saturating_sub(start.others)).as_secs_f64() / args.seconds,
        front_end: end.front_end.since(start.front_end),
        to_client: since(&end.traffic, &start.traffic),
        handoffs: count(end.handoffs, start.handoffs),
        stayed: count(end.stayed, start.stayed),
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

/// By turns each document once, so that none is the favourite.
fn load(cluster: &Cluster<'_>, args: &Args) -> ClosedLoop<impl Fn(u64) -> Req + Send + Sync + use<>> {
    let (size_bytes, documents) = (args.size, documents(args.size));
    let request = move |number: u64| {
        let number = number % documents;
        Req::get(format!("/{number}")).expecting(Expect::Document { number, size_bytes })
    };
    ClosedLoop {
        connections: args.connections as usize,
        seconds: args.seconds + WARMUP.as_secs_f64(),
        warmup_s: WARMUP.as_secs_f64(),
        keep_alive: !args.new_connections,
        timeout: Duration::from_secs(10),
        ..ClosedLoop::new(cluster.target, request)
    }
}
