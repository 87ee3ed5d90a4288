//! Runs made up for the tests of claims.

use std::collections::BTreeMap;

use plimsoll_report::{LoadSeries, PerBackend, Run, Summary, TraceInfo, Utilization};

/// A run of one request on one back-end, idle all the time.
pub(crate) fn run() -> Run {
    Run {
        policy: "lard".to_owned(),
        model: "lard".to_owned(),
        backends: 1,
        load_information: "exact".to_owned(),
        front_ends: 1,
        load_traffic: None,
        connections: None,
        seed: 1,
        params: BTreeMap::new(),
        requests: 1,
        completed: 1,
        rejected: 0,
        sent_bytes: 0,
        lost: 0,
        simulated_s: 1.0,
        ended_s: 1.0,
        throughput_rps: 1.0,
        miss_ratio: None,
        joined_ratio: None,
        idle_ratio: 0.0,
        response_time_s: None,
        slowdown: None,
        utilization: Utilization { cpu: 0.0, disk: None },
        per_backend: Vec::new(),
        policy_stats: BTreeMap::new(),
        policy_tables: Vec::new(),
        wall_s: None,
        requests_per_wall_s: None,
        trace: TraceInfo { path: String::new(), sha256: None, lines_rejected: 0 },
        load_series: LoadSeries::default(),
    }
}

/// A distribution that is all in one place.
pub(crate) fn summary(value: f64) -> Summary {
    Summary { mean: value, p50: value, p90: value, p99: value, p999: value, max: value }
}

/// A back-end with this load that completed so many requests.
pub(crate) fn backend(mean_load: f64, requests: u64) -> PerBackend {
    PerBackend { requests, miss_ratio: None, idle_ratio: 0.0, cpu: 0.0, disk: None, mean_load }
}
