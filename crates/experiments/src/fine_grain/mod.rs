//! The prototype of the fine-grain paper (sections 3 and 4), measured: servers and clients on nodes of a lab, polls and accesses over
//! its network, in real time.

use plimsoll_lab::{Lab, LabConfig, check_privileges};
use plimsoll_studies::fine_grain::{
    Effort, FullLoad, Grain, PROTOTYPE_FIGURE, ServicePoint, ServicePrototype, ServiceRuns,
};
use plimsoll_testbed::machine::CpuTime;
use plimsoll_wire::Key;

use crate::loopback::allow_files;
use crate::{ExperimentError, Tell};
use choosing::failed;
use node_cluster::{ChosenBy, NodeCluster};
use plan::{CLIENTS, PlannedPoint, PointLength, SERVERS};
use workload::{FULL_WITHIN_NS, Sequence, accesses_in};

mod access;
mod choosing;
mod client_node;
mod late;
mod node_cluster;
mod plan;
mod round_trip;
mod server_node;
mod statistics;
mod wire;
mod workload;

/// Accesses from which full load is computed.
const FULL_LOAD_ACCESSES: usize = 200_000;

/// Measures the prototype for a figure of the study, or all, for [`plimsoll_studies::fine_grain::reproduce`]. Leaves it out if
/// this machine allows no lab; the result says so.
///
/// # Errors
/// When the measurement failed after it had begun.
pub fn measure(
    effort: Effort,
    figure: Option<u32>,
    seed: Option<u64>,
    tell: Tell<'_>,
) -> Result<ServicePrototype, ExperimentError> {
    if figure.is_some_and(|figure| figure != PROTOTYPE_FIGURE) {
        return Ok(ServicePrototype::default());
    }
    let config = LabConfig { backends: SERVERS + CLIENTS, ..LabConfig::default() };
    let lab = match check_privileges().and_then(|()| Lab::build(&config)) {
        Ok(lab) => lab,
        Err(error) => {
            let why = error.to_string().lines().map(str::trim).collect::<Vec<_>>().join("; ");
            tell(&format!("plimsoll: the prototype is left out: {why}"));
            return Ok(ServicePrototype { left_out: Some(why), ..ServicePrototype::default() });
        }
    };
    let key = Key::generate().map_err(failed("there are no random numbers"))?;
    let cluster = NodeCluster { lab: &lab, servers: SERVERS, key: &key };
    let seeds = seed.map_or_else(|| plan::seeds(effort).to_vec(), |seed| vec![seed]);
    let points = plan::points(effort, &seeds);
    let largest = points.iter().map(Vec::len).chain([seeds.len() * plan::grains(effort).len()]).max();
    // For each pair of a server and a client two ends of a connection and a socket for polls, and some for the server.
    allow_files((4 * SERVERS * CLIENTS * largest.unwrap_or(1) + 256) as u64, "")?;
    tell(&format!(
        "figure 6: {SERVERS} servers and {CLIENTS} clients for about {:.0} s",
        plan::seconds(effort, &seeds)
    ));
    let round_trip_us = round_trip::measure(cluster)?;
    tell(&format!("figure 6: an inquiry takes {round_trip_us:.0} µs between idle nodes"));
    let mut measured = full_loads(cluster, effort, &seeds, tell)?;
    for set in points {
        let points = run_set(cluster, &set, effort, &measured, tell)?;
        for ((seed, _), point) in set.iter().zip(points) {
            measured
                .iter_mut()
                .filter(|runs| runs.seed == *seed)
                .for_each(|runs| runs.points.push(point.clone()));
        }
    }
    Ok(ServicePrototype { setting: setting(), round_trip_us, seeds: measured, left_out: None })
}

fn setting() -> String {
    format!(
        "{SERVERS} server nodes and {CLIENTS} client nodes, each in a network namespace of its own on one machine, joined by a \
         switch. A server has a queue in order of arrival and one worker, which sleeps for the service time, so that two cores suffice: \
         what services do to one another and to the answers to inquiries by using CPUs, caches and memory is left out. In its place a \
         busy server reads {:.1} % of its inquiries late, by an exponential time of {:.1} ms in the mean: calibrated to the paper's \
         profile, not found. Connections between clients and servers stay open. Loads are told by the datagrams of Plimsoll's agent, \
         choices made by the policies' core, and ideal is the agent that is the load index",
        100.0 * late::PAPER.share,
        late::PAPER.mean_ns / 1e6
    )
}

/// Finds full load for each workload, and has every server serve it alone.
fn full_loads(
    cluster: NodeCluster<'_>,
    effort: Effort,
    seeds: &[u64],
    tell: Tell<'_>,
) -> Result<Vec<ServiceRuns>, ExperimentError> {
    let every: Vec<(u64, Grain)> =
        seeds.iter().flat_map(|&seed| plan::grains(effort).iter().map(move |&grain| (seed, grain))).collect();
    let one = |&(seed, grain): &(u64, Grain)| full_load(cluster, grain, seed, plan::full_load_length(effort));
    let found = side_by_side(&every, one)?;
    for ((seed, _), FullLoad { grain, utilization, completed, completed_by_theory }) in
        every.iter().zip(&found)
    {
        tell(&format!(
            "figure 6, seed {seed}: {}: full load is {:.1} % of a server's time; there {:.1} % were completed within 2 s ({:.1} % by theory)",
            grain.title(),
            100.0 * utilization,
            100.0 * completed,
            100.0 * completed_by_theory
        ));
    }
    let of_seed = |&seed: &u64| {
        let full_loads = every.iter().zip(&found).filter(|((of, _), _)| *of == seed).map(|(_, full)| *full);
        ServiceRuns { seed, full_loads: full_loads.collect(), points: Vec::new() }
    };
    Ok(seeds.iter().map(of_seed).collect())
}

fn full_load(
    cluster: NodeCluster<'_>,
    grain: Grain,
    seed: u64,
    length: PointLength,
) -> Result<FullLoad, ExperimentError> {
    let utilization = Sequence::new(grain, FULL_LOAD_ACCESSES, seed)?.full_utilization();
    let from_ns = (length.warmup_s * 1e9) as u64;
    let mut plans = vec![Vec::new(); CLIENTS];
    let mut theory = 0.0;
    for server in 0..cluster.servers {
        let accesses = accesses_in(grain, length.warmup_s + length.measured_s, utilization, 1);
        let alone =
            Sequence::new(grain, accesses, seed * 1000 + 1 + server as u64)?.stretched(utilization, 1);
        theory += alone.share_completed(from_ns) / cluster.servers as f64;
        plans[server % CLIENTS].extend(alone.told(server));
    }
    plans.iter_mut().for_each(|plan| plan.sort_by_key(|access| access.due_ns));
    let (tally, _) = cluster.run(&ChosenBy::Told, plans, None, seed)?;
    let measured: Vec<_> = tally.answered.iter().filter(|access| access.due_ns >= from_ns).collect();
    let within = measured.iter().filter(|access| access.response_ns <= FULL_WITHIN_NS).count();
    let completed = within as f64 / measured.len().max(1) as f64;
    Ok(FullLoad { grain, utilization, completed, completed_by_theory: theory })
}

/// Makes runs side by side.
fn run_set(
    cluster: NodeCluster<'_>,
    set: &[(u64, PlannedPoint)],
    effort: Effort,
    measured: &[ServiceRuns],
    tell: Tell<'_>,
) -> Result<Vec<ServicePoint>, ExperimentError> {
    let run = |(seed, planned): &(u64, PlannedPoint)| {
        let full_loads = measured.iter().filter(|runs| runs.seed == *seed).flat_map(|runs| &runs.full_loads);
        let full = full_loads.filter(|full| full.grain == planned.grain).map(|full| full.utilization).next();
        let utilization = full.unwrap_or(1.0) * f64::from(planned.load_percent) / 100.0;
        run_point(cluster, *planned, *seed, planned.length(effort), utilization)
    };
    let points = side_by_side(set, run)?;
    for ((seed, _), point) in set.iter().zip(&points) {
        tell(&format!(
            "figure 6, seed {seed}: {} at {} %, {}: response {:.1} ms ± {:.1}, choice {:.2} ms, {} accesses{}",
            point.grain.title(),
            point.load_percent,
            point.choice.words(),
            1e3 * point.response_s,
            1e3 * point.response_error_s,
            1e3 * point.asking_s,
            point.accesses,
            if point.unanswered > 0 { format!(", {} unanswered", point.unanswered) } else { String::new() }
        ));
    }
    Ok(points)
}

fn run_point(
    cluster: NodeCluster<'_>,
    planned: PlannedPoint,
    seed: u64,
    length: PointLength,
    utilization: f64,
) -> Result<ServicePoint, ExperimentError> {
    let seconds = length.warmup_s + length.measured_s;
    let accesses = accesses_in(planned.grain, seconds, utilization, cluster.servers);
    // The same accesses for every way of choosing.
    let sequence = Sequence::new(planned.grain, accesses, seed)?.stretched(utilization, cluster.servers);
    let before = CpuTime::now();
    let (tally, _) = cluster.run(&planned.by(), sequence.dealt(CLIENTS, seed), Some(late::PAPER), seed)?;
    let busy = CpuTime::now().zip(before).and_then(|(now, before)| now.busy_since(before));
    Ok(statistics::point(planned, length, &tally, busy))
}

/// Does this work for each item, all at a time.
fn side_by_side<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T, ExperimentError> + Sync,
) -> Result<Vec<T>, ExperimentError> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(move || work(item))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}
