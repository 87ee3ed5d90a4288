//! Trials of policies on a whole cluster in this process, in the setting of the LARD study.

use std::collections::BTreeMap;

use plimsoll_report::{LoadSeries, PerBackend, Run, Summary, TraceInfo, Utilization};
use plimsoll_studies::scenario::Strategy;
use plimsoll_testbed::load;
use plimsoll_testbed::trial::{Trial, TrialConfig};
use plimsoll_testbed::workload::{RequestSequence, scaled_rice};

use crate::ExperimentError;

/// Contents and caches are those of the LARD study divided by this.
pub const SCALE: u32 = 20;

/// Memory cache of one back-end: the study's 32 MiB, scaled.
pub const CACHE_BYTES: u64 = (32 << 20) / SCALE as u64;

/// Requests of a workload, which then repeats.
pub(crate) const REQUESTS: usize = 2_300_000 / SCALE as usize;

/// The most back-ends; with more, this machine would limit the result.
pub const MOST_BACKENDS: usize = 64;

/// The model name of these runs.
pub const MODEL: &str = "live";

/// The emulated hardware, in words.
#[must_use]
pub fn hardware(speed: f64) -> String {
    let speed =
        if (speed - 1.0).abs() < 1e-9 { String::new() } else { format!(", all {speed} times as fast") };
    format!(
        "each back-end has one emulated disk (28 ms per read, 410 µs per 4 KiB, 14 ms more per further 44 KiB) and one \
         emulated CPU (145 µs per connection and as much at its end, 40 µs per 512 bytes), the times of the LARD \
         paper{speed}; no real disk is read"
    )
}

/// The requests of all trials with this seed.
///
/// # Errors
/// When the workload cannot be made.
pub fn workload(seed: u64) -> Result<RequestSequence, ExperimentError> {
    requests("rice", seed)
}

/// The requests of this synthetic workload, scaled as far as it has the parameters of `rice`.
///
/// # Errors
/// When the workload cannot be made.
pub(crate) fn requests(workload: &str, seed: u64) -> Result<RequestSequence, ExperimentError> {
    with_overrides(workload, |overrides| RequestSequence::synthesize(workload, overrides, seed, REQUESTS))
        .map_err(|e| ExperimentError::Failed(e.to_string()))
}

/// Makes something with the parameters by which this synthetic workload is scaled.
pub(crate) fn with_overrides<T>(workload: &str, make: impl FnOnce(&[(&str, &str)]) -> T) -> T {
    let spec = plimsoll_synth::SPECS.iter().find(|spec| spec.name == workload);
    let takes =
        |key: &str| spec.is_some_and(|spec| spec.parameters.iter().any(|parameter| parameter.name == key));
    let of_rice = scaled_rice(SCALE);
    let own = of_rice.iter().filter(|(key, _)| *key == "generator" || takes(key));
    make(&own.map(|(key, value)| (*key, value.as_str())).collect::<Vec<_>>())
}

/// A trial in the setting of the LARD study: as many requests under way as its admission limit S.
#[must_use]
pub fn config(policy: &str, backends: usize, seed: u64, speed: f64) -> TrialConfig {
    let thresholds = plimsoll_policy::Thresholds::default();
    TrialConfig {
        policy: policy.to_owned(),
        backends,
        seed,
        cache_bytes: CACHE_BYTES,
        speed,
        connections: thresholds.admission_limit_of(backends) as usize,
        warmup_s: 0.0,
        measured_s: 1.0,
        idle_below: 0.4 * f64::from(thresholds.t_low),
    }
}

/// Raises the limit of open files for a trial with this many connections. Each connection needs four sockets:
/// client, front-end twice, and origin.
///
/// # Errors
/// When the system allows fewer.
pub fn allow_sockets(connections: usize) -> Result<(), ExperimentError> {
    allow_files(4 * connections as u64 + 256, ", or take fewer back-ends")
}

/// Raises the limit of open files so that there may be this many; `or` is what else helps.
///
/// # Errors
/// When the system allows fewer.
pub(crate) fn allow_files(wanted: u64, or: &str) -> Result<(), ExperimentError> {
    if plimsoll_balancer::raise_open_file_limit().is_some_and(|most| most < wanted) {
        return Err(ExperimentError::Failed(format!(
            "this needs {wanted} open files at once, more than the system allows; raise the limit with `ulimit -n \
             {wanted}`{or}"
        )));
    }
    Ok(())
}

/// A trial as a [`Run`], comparable with simulated ones.
#[must_use]
pub fn to_run(strategy: Strategy, config: &TrialConfig, trial: &Trial) -> Run {
    let s = &trial.summary;
    let per_backend = trial.backends.iter().map(|b| PerBackend {
        requests: b.requests,
        miss_ratio: b.miss_ratio,
        idle_ratio: b.idle_ratio,
        cpu: b.cpu_busy,
        disk: Some(b.disk_busy),
        mean_load: b.mean_load,
    });
    Run {
        // One front-end counts all loads there are.
        load_information: "exact".to_owned(),
        front_ends: 1,
        load_traffic: None,
        connections: None,
        policy: strategy.name.to_owned(),
        model: MODEL.to_owned(),
        backends: config.backends,
        seed: config.seed,
        params: params(strategy, config),
        requests: s.requests,
        completed: s.succeeded,
        rejected: s.failed(),
        lost: 0,
        sent_bytes: s.bytes,
        simulated_s: s.measured.as_secs_f64(),
        ended_s: 0.0,
        throughput_rps: s.throughput_rps(),
        miss_ratio: s.miss_ratio(),
        joined_ratio: s.joined_ratio(),
        idle_ratio: trial.idle_ratio(),
        response_time_s: response_time(s),
        slowdown: None,
        utilization: Utilization { cpu: trial.cpu_busy(), disk: Some(trial.disk_busy()) },
        per_backend: per_backend.collect(),
        policy_stats: BTreeMap::new(),
        policy_tables: Vec::new(),
        wall_s: Some(config.warmup_s + config.measured_s),
        requests_per_wall_s: None,
        trace: TraceInfo { path: format!("rice, 1/{SCALE}"), sha256: None, lines_rejected: 0 },
        load_series: LoadSeries { bucket_s: 1.0, load: trial.load.clone() },
    }
}

fn response_time(summary: &load::LoadSummary) -> Option<Summary> {
    let at = |share| summary.quantile(share).as_secs_f64();
    (summary.succeeded > 0).then(|| Summary {
        mean: summary.mean_latency().as_secs_f64(),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: summary.max_latency().as_secs_f64(),
    })
}

fn params(strategy: Strategy, config: &TrialConfig) -> BTreeMap<String, serde_json::Value> {
    let of_policy = strategy.policy.params.iter().map(|param| {
        (format!("{}.{}", strategy.policy.name, param.name), serde_json::Value::from(param.default.as_f64()))
    });
    let own: [(&str, serde_json::Value); 7] = [
        ("arrivals", "closed".into()),
        ("admission", config.connections.into()),
        ("cache", "gds".into()),
        ("cache_bytes", config.cache_bytes.into()),
        ("live.emulated", "lard98".into()),
        ("live.speed", config.speed.into()),
        ("live.warmup_s", config.warmup_s.into()),
    ];
    of_policy.chain(own.map(|(key, value)| (key.to_owned(), value))).collect()
}
