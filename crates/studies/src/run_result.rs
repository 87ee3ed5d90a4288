//! Converts the simulator's results to a [`Run`].

use std::collections::BTreeMap;

use plimsoll_policy::params::{ParamSet, ParamValue};
use plimsoll_policy::{PolicyTable, Time};
use plimsoll_report::{
    ConnectionFigures, LoadSeries, LoadTraffic, PerBackend, Run, Summary, TraceInfo, Utilization,
};
use plimsoll_sim::hardware::has_hardware;
use plimsoll_sim::{
    Arrivals, ConnectionOutcome, Dealing, Distribution, LoadMessages, ModelSpec, PartitionPlan, RunOutcome,
};

use crate::scenario::{Admission, Scenario, Tables};
use crate::spec::values::{show_arrivals, show_partitions, show_service};

/// The most rows of a policy's table in results.
const MOST_TABLE_ROWS: usize = 4096;

pub(crate) type Json = BTreeMap<String, serde_json::Value>;

pub(crate) fn params_json(owner: &str, params: &ParamSet) -> Json {
    let number = |value: ParamValue| value.as_u64().map_or_else(|| value.as_f64().into(), Into::into);
    params.iter().map(|(key, value)| (format!("{owner}.{key}"), number(value))).collect()
}

pub(crate) fn common_params(s: &Scenario, model: &ModelSpec) -> Json {
    let arrivals = match s.arrivals {
        Arrivals::Trace { speed } => format!("trace, speed {speed}"),
        arrivals => show_arrivals(&arrivals),
    };
    let admission = match s.effective_admission() {
        Admission::Lard => "lard".into(),
        Admission::Fixed(n) => n.into(),
        Admission::Unlimited => "none".into(),
    };
    let mut out = Json::from([
        ("arrivals".to_owned(), arrivals.into()),
        ("admission".to_owned(), admission),
        ("warmup".to_owned(), s.warmup.into()),
    ]);
    if let Some(service) = &s.service {
        out.insert("service".to_owned(), show_service(service).into());
    }
    if s.has_load_information() || !s.hop.is_zero() {
        out.insert("hop_s".to_owned(), s.hop.as_secs_f64().into());
    }
    if s.has_load_information() {
        let dealing = if s.dealing == Dealing::ByClient { "client" } else { "random" };
        out.insert("dealing".to_owned(), dealing.into());
        out.insert("exchange_interval_s".to_owned(), s.exchange_interval.as_secs_f64().into());
        out.extend(params_json(s.load_information.name, &s.load_params));
    }
    if s.tables != Tables::Separate {
        out.insert("tables".to_owned(), s.tables.name().into());
    }
    if s.partitions != PartitionPlan::Whole {
        out.insert("partitions".to_owned(), show_partitions(&s.partitions).into());
    }
    if s.dynamic_share > 0.0 {
        out.insert("dynamic_share".to_owned(), s.dynamic_share.into());
    }
    if has_hardware(model) {
        out.insert("hardware".to_owned(), s.hardware.name.into());
    }
    if model.has_cache {
        out.insert("cache".to_owned(), s.cache.name.into());
        out.insert("cache_bytes".to_owned(), s.cache_bytes.into());
        if let Some(limit) = s.cache_object_limit_bytes {
            out.insert("cache_object_limit_bytes".to_owned(), limit.into());
        }
    }
    out
}

fn summary(distribution: &Distribution, scale: f64) -> Option<Summary> {
    let at = |q| distribution.quantile(q).map(|v| v as f64 / scale);
    Some(Summary {
        mean: distribution.mean()? / scale,
        p50: at(0.5)?,
        p90: at(0.9)?,
        p99: at(0.99)?,
        p999: at(0.999)?,
        max: distribution.max()? as f64 / scale,
    })
}

/// A table of a policy, its last rows where there are many.
fn table(of: &PolicyTable) -> plimsoll_report::StateTable {
    let rows = &of.rows[of.rows.len().saturating_sub(MOST_TABLE_ROWS)..];
    plimsoll_report::StateTable {
        name: of.name.to_owned(),
        columns: of.columns.iter().map(|&column| column.to_owned()).collect(),
        // The largest size stands for "no upper end".
        rows: rows
            .iter()
            .map(|row| row.iter().map(|&x| (x.is_finite() && x < u64::MAX as f64).then_some(x)).collect())
            .collect(),
    }
}

fn load_traffic(of: &LoadMessages, outcome: &RunOutcome, front_ends: u16) -> LoadTraffic {
    let simulated_s = outcome.simulated.as_secs_f64().max(1e-9);
    LoadTraffic {
        messages: of.messages,
        messages_rps: of.messages as f64 / simulated_s,
        cpu: of.cpu.as_secs_f64() / simulated_s / outcome.backends.len().max(1) as f64,
        receive_cpu: of.receive_cpu.as_secs_f64() / simulated_s / f64::from(front_ends.max(1)),
        inquiries: of.inquiries,
        discarded: of.discarded,
        polls: of.polls,
        polls_cut_short: of.polls_cut_short,
        poll_time_s: summary(&of.poll_ns, 1e9),
    }
}

fn connections(of: &ConnectionOutcome) -> ConnectionFigures {
    ConnectionFigures {
        server_latency_s: summary(&of.server_latency_ns, 1e9),
        user_latency_s: summary(&of.user_latency_ns, 1e9),
        opened: of.opened,
        refusals: of.refusals,
        given_up: of.given_up,
        forks: of.forks,
        predictions: of.predictions,
    }
}

pub(crate) fn to_run(s: &Scenario, model: &str, params: Json, outcome: &RunOutcome, trace: TraceInfo) -> Run {
    let per_backend = outcome
        .backends
        .iter()
        .map(|b| PerBackend {
            requests: b.requests,
            miss_ratio: (outcome.disks > 0 && b.requests > 0)
                .then(|| b.usage.reads as f64 / b.requests as f64),
            idle_ratio: b.idle_ratio,
            cpu: outcome.busy(b.usage.cpu, 1),
            disk: (outcome.disks > 0).then(|| outcome.busy(b.usage.disk, outcome.disks)),
            mean_load: b.mean_load,
        })
        .collect();
    Run {
        policy: s.strategy.name.to_owned(),
        model: model.to_owned(),
        backends: s.backends,
        load_information: s.load_information.name.to_owned(),
        front_ends: usize::from(s.front_ends),
        load_traffic: Some(load_traffic(&outcome.load_messages, outcome, s.front_ends)),
        connections: outcome.connections.as_deref().map(connections),
        seed: s.seed,
        params,
        requests: outcome.requests,
        completed: outcome.completed,
        rejected: outcome.rejected,
        lost: outcome.lost,
        sent_bytes: outcome.sent_bytes,
        simulated_s: outcome.simulated.as_secs_f64(),
        ended_s: outcome.ended.since(Time::ZERO).as_secs_f64(),
        throughput_rps: outcome.throughput_rps(),
        miss_ratio: outcome.miss_ratio(),
        joined_ratio: outcome.joined_ratio(),
        idle_ratio: outcome.idle_ratio(),
        response_time_s: summary(&outcome.response_ns, 1e9),
        slowdown: summary(&outcome.slowdown_permille, 1e3),
        utilization: Utilization { cpu: outcome.cpu_utilization(), disk: outcome.disk_utilization() },
        per_backend,
        policy_stats: outcome.policy_stats.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
        policy_tables: outcome.policy_tables.iter().map(table).collect(),
        wall_s: None,
        requests_per_wall_s: None,
        trace,
        load_series: LoadSeries {
            bucket_s: outcome.load_series.bucket_s,
            load: outcome.load_series.load.clone(),
        },
    }
}
