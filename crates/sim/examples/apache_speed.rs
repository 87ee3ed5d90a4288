//! Speed of the model `apache` on a case like those of Hyun et al., table 4: 16 back-ends, 4,000 requests a second, 5 % of them dynamic
//! of class 3. `apache_speed [REQUESTS] [RATE_RPS] [POLICY] [SEED] [KEY=VALUE]...` prints one JSON line with latencies and the requests
//! simulated per second of CPU time; KEY is a parameter of the model.

use plimsoll_policy::params::ParamSet;
use plimsoll_policy::{
    AdmissionControl, BuildContext, Cluster, Core, Kind, Nanos, PolicyChoice, Rng, TargetId, Time,
};
use plimsoll_sim::models::apache;
use plimsoll_sim::{
    AnswerKind, Arrivals, CacheConfig, Recording, RunConfig, SimRequest, Simulation, Targets,
    TimeDistribution, TimeShape,
};
use plimsoll_synth::TimeDraws;

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

const BACKENDS: usize = 16;
const FILES: usize = 17_332;
/// Mean size of a document.
const MEAN_BYTES: f64 = 3_300.0;
/// Of popularity by rank.
const ZIPF: f64 = 0.9;
/// Shares of table 1: documents, then answers 304; the rest are errors.
const DOCUMENTS: f64 = 0.7178;
const NOT_MODIFIED: f64 = 0.2787;

/// Sizes of documents, and how many requests of a million are for the first so many of them.
fn documents(seed: u64) -> (Vec<u64>, Vec<f64>) {
    let law = TimeDistribution { mean_ns: MEAN_BYTES, shape: TimeShape::Lognormal { cv: 1.5 } };
    let mut sizes = TimeDraws::new(law, Rng::new(seed, 1));
    let sizes = (0..FILES).map(|_| sizes.draw_ns().max(1)).collect();
    let mut sum = 0.0;
    let mut below: Vec<f64> = (1..=FILES)
        .map(|rank| {
            sum += (rank as f64).powf(-ZIPF);
            sum
        })
        .collect();
    below.iter_mut().for_each(|part| *part /= sum);
    (sizes, below)
}

/// So many requests with the mix of table 1.
fn requests_of<'a>(
    requests: usize,
    targets: &'a Targets,
    below: &'a [f64],
    seed: u64,
) -> impl Iterator<Item = SimRequest> + 'a {
    let mut rng = Rng::new(seed, 2);
    (0..requests).map(move |_| {
        let (place, kind) = (rng.unit(), rng.unit());
        let target = below.partition_point(|&part| part <= place).min(FILES - 1);
        let answer = match kind {
            kind if kind < DOCUMENTS => AnswerKind::Document,
            kind if kind < DOCUMENTS + NOT_MODIFIED => AnswerKind::NotModified,
            _ => AnswerKind::Invalid,
        };
        let size_bytes = if answer == AnswerKind::Document { targets.size_bytes[target] } else { 0 };
        SimRequest {
            time: Time::ZERO,
            target: target as u32,
            size_bytes,
            service: Nanos::ZERO,
            client: 0,
            class: 0,
            kind: Kind::Static,
            answer,
            http11: false,
        }
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let requests: usize = args.next().as_deref().unwrap_or("4000000").parse()?;
    let rate_rps: f64 = args.next().as_deref().unwrap_or("4000").parse()?;
    let policy = args.next().unwrap_or_else(|| "round_robin".to_owned());
    let seed: u64 = args.next().as_deref().unwrap_or("1").parse()?;
    let mut settings = vec![("dynamic_share".to_owned(), "0.05".to_owned())];
    for setting in args {
        let (key, value) = setting.split_once('=').ok_or("a parameter is KEY=VALUE")?;
        settings.retain(|(other, _)| other != key);
        settings.push((key.to_owned(), value.to_owned()));
    }
    let params = ParamSet::from_settings(apache::SPEC.params, &settings)?;

    let (sizes, below) = documents(seed);
    let targets = Targets::new((0..FILES as u64).map(TargetId).collect(), sizes, &[]);
    let config = RunConfig {
        seed,
        arrivals: Arrivals::Poisson { rate_rps },
        warmup: requests as u64 / 3,
        settles: false,
        idle_below: 1.0,
        poll_time: Nanos::ZERO,
        faults: &[],
        hot_spots: &[],
        targets: &targets,
    };
    let context = BuildContext { seed, cache_bytes: 64 << 20, ..BuildContext::default() };
    let core = Core::new(
        policy.parse::<PolicyChoice>()?.build(&context)?,
        Cluster::new(BACKENDS),
        AdmissionControl::UNLIMITED,
    );
    let mut source = requests_of(requests, &targets, &below, seed).map(Ok);
    let simulation = Simulation {
        config: &config,
        recording: Recording::default(),
        core,
        front_ends: None,
        cache: CacheConfig {
            spec: &plimsoll_cache::caches::lru::SPEC,
            capacity_bytes: 64 << 20,
            object_limit_bytes: None,
        },
        source: &mut source,
        observer: &mut (),
    };

    let before_s = cpu_time::cpu_s()?;
    let outcome = (apache::SPEC.run)(&params, simulation).map_err(|error| format!("{error:?}"))?;
    let cpu_s = cpu_time::cpu_s()? - before_s;
    let connections = outcome.connections.as_deref().ok_or("the model has connections")?;
    println!(
        r#"{{"policy":"{policy}","requests":{requests},"rate_rps":{rate_rps},"server_latency_s":{:.4},"user_latency_s":{:.4},"cpu":{:.3},"refusals":{:?},"given_up":{},"miss_ratio":{:.4},"cpu_s":{cpu_s:.3},"requests_per_cpu_s":{:.0}}}"#,
        connections.server_latency_ns.mean().unwrap_or(f64::NAN) / 1e9,
        connections.user_latency_ns.mean().unwrap_or(f64::NAN) / 1e9,
        outcome.cpu_utilization(),
        connections.refusals,
        connections.given_up,
        outcome.miss_ratio().unwrap_or(f64::NAN),
        requests as f64 / cpu_s
    );
    Ok(())
}
