//! Figure 17 of the LARD paper through connection handoff: the points of the figure by proxy, on a lab.

use std::time::Duration;

use plimsoll_config::MechanismKind;
use plimsoll_lab::CpuPlan;
use plimsoll_studies::lard::{self, Prototype, PrototypePoint};
use plimsoll_studies::scenario::Strategy;
use plimsoll_testbed::load::ClosedLoop;
use plimsoll_testbed::trial::{self, Sightings, TrialConfig};
use plimsoll_testbed::workload::{RequestSequence, scaled_rice};

use super::bench::Bench;
use super::cpu_watch::{CpuWatch, cpus_in_words};
use super::lab::{lab, start};
use super::prototype;
use super::stop::Stop;
use crate::lab_cluster::{ClientLoad, Contents, LabCluster, LabClusterConfig};
use crate::{ExperimentError, loopback};

/// Measures every point, one after another.
pub(super) async fn measure(bench: Bench<'_>, cpus: Option<&CpuPlan>) -> Result<Prototype, Stop> {
    let Bench { effort, tell, .. } = bench;
    let plan = prototype::plan(effort)?;
    loopback::allow_sockets(plan.iter().map(|(_, config)| config.connections).max().unwrap_or(0))?;
    let workload = loopback::workload(prototype::SEED)?;
    let (warmup_s, measured_s) = prototype::lengths_s(effort);
    let seconds = plan.len() as f64 * (warmup_s + measured_s + 1.5);
    tell(&format!("figure 17: real traffic through handoff for about {seconds:.0} s"));
    let mut points = Vec::new();
    for (strategy, config) in &plan {
        points.push(point(bench, *strategy, config, &workload, cpus).await?);
    }
    let told = format!("Every response, however small, is handed off; {}. ", cpus_in_words(cpus));
    Ok(prototype::prototype(effort, lard::PrototypeMechanism::Handoff, &told, points))
}

async fn point(
    bench: Bench<'_>,
    strategy: Strategy,
    config: &TrialConfig,
    workload: &RequestSequence,
    cpus: Option<&CpuPlan>,
) -> Result<PrototypePoint, Stop> {
    let lab = lab(config.backends, cpus, false)?;
    let cluster = start(&lab, &cluster(bench, config)).await?;
    let sightings = Sightings::new(config.backends);
    let load = trial::load(config, workload, &sightings);
    let watch = CpuWatch::start(cpus, bench.tell)?;
    let load = ClientLoad::start(&lab, ClosedLoop { target: cluster.target, keep_alive: false, ..load })?;
    tokio::time::sleep(Duration::from_secs_f64(config.warmup_s)).await;
    let before = watch.read()?;
    let handed_off = taken(&cluster);
    tokio::time::sleep(Duration::from_secs_f64(config.measured_s)).await;
    let after = watch.read()?;
    let handed_off = taken(&cluster) - handed_off;
    let in_use = watch.between(&before, &after, "figure 17", config.measured_s);
    let summary = tokio::task::block_in_place(|| load.end())?;
    let mut trial = sightings.trial(config, summary).map_err(ExperimentError::from)?;
    trial.machine_busy = in_use.others_busy;
    prototype::report(strategy, config, &trial, " through handoff", bench.tell);
    // At start and end of the measurement, at most one request per connection is under way.
    let wanted = trial.summary.succeeded.saturating_sub(2 * config.connections as u64);
    check_handed_off(handed_off, wanted)?;
    let mut run = loopback::to_run(strategy, config, &trial);
    run.params.insert("live.mechanism".to_owned(), "handoff".into());
    Ok(PrototypePoint {
        run,
        warmup_requests: trial.warmup_requests,
        machine_busy: trial.machine_busy,
        front_end_busy: in_use.front_end.map(|cpu| cpu.share()),
    })
}

/// Connections that agents have taken over.
pub(super) fn taken(cluster: &LabCluster<'_>) -> f64 {
    cluster.metric("plimsoll_handoffs_total{outcome=\"taken\"}").unwrap_or(0.0)
}

/// Fails unless nearly all of the requests were handed off. On a busy machine agents look dead and the
/// front-end proxies, so another mechanism would have been measured.
pub(super) fn check_handed_off(handed_off: f64, requests: u64) -> Result<(), Stop> {
    if handed_off > 0.0 && handed_off >= 0.95 * requests as f64 {
        return Ok(());
    }
    Err(Stop::NotHere(format!(
        "of {requests} requests only {handed_off} were handed off, as on a machine that has too much else to do"
    )))
}

/// Contents, caches, disks and CPUs of the points by proxy.
fn cluster(bench: Bench<'_>, config: &TrialConfig) -> LabClusterConfig {
    let mut what = "rice".to_owned();
    for (key, value) in scaled_rice(loopback::SCALE) {
        what += &format!(",{key}={value}");
    }
    let speed = config.speed.to_string();
    let (cache, seed) = (config.cache_bytes.to_string(), config.seed.to_string());
    let origin = [
        ["--cache", &cache],
        ["--seed", &seed],
        ["--disk-delay", "lard98"],
        ["--disk-speed", &speed],
        ["--cpu-delay", "lard98"],
        ["--cpu-speed", &speed],
    ];
    LabClusterConfig {
        seed: config.seed,
        admission: config.connections.to_string(),
        origin: origin.into_iter().flatten().map(str::to_owned).collect(),
        ..LabClusterConfig::new(
            bench.program,
            MechanismKind::Handoff,
            config.backends,
            &config.policy,
            Contents::Synthetic(what),
        )
    }
}
