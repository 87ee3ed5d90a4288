//! Runs that look like those of the simulator, made by arithmetic alone.

use std::collections::BTreeMap;

use plimsoll_report::{
    LoadSeries, PerBackend, Run, RunsContext, StateTable, Summary, TraceInfo, Utilization,
};
use serde_json::json;

/// Name, miss ratio on one back-end, how it falls with more of them, and idle ratio.
const POLICIES: [(&str, f64, f64, f64); 4] = [
    ("weighted_round_robin", 0.48, 0.0, 0.004),
    ("uri_hash", 0.48, 1.05, 0.21),
    ("lard", 0.48, 1.25, 0.06),
    ("lard_r", 0.48, 1.32, 0.02),
];

/// Values in `0..1` that look random and are the same everywhere.
pub(crate) fn wobble(index: usize) -> f64 {
    let mixed = (index as u32).wrapping_add(1).wrapping_mul(2_654_435_769);
    f64::from((mixed ^ (mixed >> 15)).wrapping_mul(2_246_822_519) >> 8) / f64::from(1 << 24)
}

fn summary(mean: f64, tail: f64) -> Summary {
    Summary {
        mean,
        p50: mean * 0.6,
        p90: mean * tail,
        p99: mean * tail * 3.1,
        p999: mean * tail * 6.4,
        max: mean * tail * 11.0,
    }
}

/// One run of a policy, by its index.
pub(crate) fn run(policy: usize, backends: usize, seed: u64) -> Run {
    let (name, miss_alone, falling, idle_ratio) = POLICIES[policy];
    let nodes = backends as f64;
    let jitter = 1.0 + 0.04 * (wobble((seed % 1000) as usize * 31 + policy * 7 + backends) - 0.5);
    let miss_ratio = miss_alone * nodes.powf(-falling) * jitter;
    // About 0.9 ms of CPU per request, 29 ms of disk per miss; the slower one limits.
    let throughput_rps = nodes * (1.0 - idle_ratio) / (0.000_9_f64).max(miss_ratio * 0.029);
    let requests = 500_000;
    let delay_s = (64.0 * nodes) / throughput_rps;
    Run {
        policy: name.to_owned(),
        model: "lard".to_owned(),
        backends,
        load_information: "exact".to_owned(),
        front_ends: 1,
        load_traffic: None,
        connections: None,
        seed,
        params: BTreeMap::from([
            ("hardware".to_owned(), json!("1998")),
            ("model.cache_bytes".to_owned(), json!(33_554_432)),
            ("model.disks".to_owned(), json!(1)),
            (format!("{name}.t_low"), json!(25)),
            (format!("{name}.t_high"), json!(65)),
        ]),
        requests,
        completed: requests,
        rejected: 0,
        lost: 0,
        sent_bytes: requests * 8_192,
        simulated_s: requests as f64 / throughput_rps,
        ended_s: 0.0,
        throughput_rps,
        miss_ratio: Some(miss_ratio),
        joined_ratio: Some(miss_ratio * 0.11),
        idle_ratio,
        response_time_s: Some(summary(delay_s, 1.9 + idle_ratio * 9.0)),
        slowdown: Some(summary(delay_s / 0.001_1, 2.4)),
        utilization: Utilization {
            cpu: (throughput_rps * 0.000_9 / nodes).min(1.0),
            disk: Some((throughput_rps * miss_ratio * 0.029 / nodes).min(1.0)),
        },
        per_backend: (0..backends)
            .map(|backend| per_backend(backend, backends, requests, miss_ratio))
            .collect(),
        policy_stats: BTreeMap::from([
            ("reassignments".to_owned(), (policy * 1_713) as f64),
            ("replicas_mean".to_owned(), 1.0 + policy as f64 * 0.012),
        ]),
        policy_tables: vec![StateTable {
            name: "boundaries".to_owned(),
            columns: vec!["backend".to_owned(), "size_bytes".to_owned()],
            rows: vec![vec![Some(0.0), Some(4096.0)], vec![Some(1.0), None]],
        }],
        wall_s: None,
        requests_per_wall_s: None,
        trace: TraceInfo {
            path: "rice_like.csv.gz".to_owned(),
            sha256: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned()),
            lines_rejected: 12,
        },
        load_series: load_series(backends, idle_ratio),
    }
}

fn per_backend(backend: usize, backends: usize, requests: u64, miss_ratio: f64) -> PerBackend {
    let share = (0.9 + 0.2 * wobble(backend)) / backends as f64;
    PerBackend {
        requests: (requests as f64 * share) as u64,
        miss_ratio: Some(miss_ratio * (0.8 + 0.4 * wobble(backend + 50))),
        idle_ratio: 0.03 * wobble(backend + 100),
        cpu: 0.9 + 0.08 * wobble(backend + 150),
        disk: Some(0.5 + 0.3 * wobble(backend + 200)),
        mean_load: 55.0 + 12.0 * wobble(backend + 250),
    }
}

fn load_series(backends: usize, unrest: f64) -> LoadSeries {
    let load = |backend: usize| {
        let mut level = 64.0;
        let step = move |bucket: usize| {
            level += (wobble(backend * 1009 + bucket) - 0.5) * (4.0 + 60.0 * unrest) + (64.0 - level) * 0.06;
            level = f64::max(level, 0.0);
            level
        };
        (0..500).map(step).collect()
    };
    LoadSeries { bucket_s: 0.5, load: (0..backends).map(load).collect() }
}

/// Four policies on these numbers of back-ends.
pub(crate) fn runs(backends: &[usize]) -> Vec<Run> {
    (0..POLICIES.len()).flat_map(|policy| backends.iter().map(move |&count| run(policy, count, 1))).collect()
}

/// What the simulator would say about them.
pub(crate) fn context() -> RunsContext {
    RunsContext {
        trace: "rice_like.csv.gz".to_owned(),
        command: "plimsoll simulate rice_like.csv.gz --policy wrr,lb,lard,lard_r --backends 1,2,4,8,16"
            .to_owned(),
        version: "plimsoll 0.1.0".to_owned(),
        load_notes: vec![
            "Time stamps in whole seconds were spread within their second with the seed.".to_owned(),
        ],
        warnings: vec!["12 lines of the trace could not be used (0.002 %).".to_owned()],
        saturated: true,
        policies: POLICIES.map(|policy| policy.0.to_owned()).to_vec(),
    }
}
