//! Results in words, as a table and as JSON.

use std::time::Duration;

use plimsoll_experiments::lab_cluster::{LabMechanism, documents};
use plimsoll_experiments::lab_trial::LabMeasures;
use plimsoll_lab::CpuPlan;
use plimsoll_report::format::bytes;

use super::args::Args;

/// CPUs in use by other programs beyond which results are doubtful.
const OTHERS_CPUS: f64 = 0.05;

/// A mechanism with its measurements.
pub(super) type MeasuredMechanism = (LabMechanism, LabMeasures);

/// The setting, in words.
pub(super) fn setting(args: &Args, cpus: Option<&CpuPlan>) -> String {
    let connections =
        if args.new_connections { "a new connection for each request" } else { "connections are kept" };
    let cpus = cpus.map_or_else(String::new, |plan| {
        let others: Vec<String> = plan.others.iter().map(ToString::to_string).collect();
        let s = if others.len() == 1 { "" } else { "s" };
        format!("; CPU {} is the front-end's, all else runs on CPU{s} {}", plan.front_end, others.join(", "))
    });
    format!(
        "{} back-ends, policy {}, {} documents of {}, {} clients, {connections}{cpus}",
        args.backends,
        args.policy(),
        documents(args.size),
        bytes(args.size as f64),
        args.connections
    )
}

/// Reasons to doubt the results.
pub(super) fn warnings((name, measured): &MeasuredMechanism) -> Vec<String> {
    let mut warnings = Vec::new();
    if measured.other_programs_cpus > OTHERS_CPUS {
        warnings.push(format!(
            "{name}: other programs used {:.2} CPUs meanwhile: they made everything slower, and what they did on the \
             front-end's CPU counts as the front-end's work",
            measured.other_programs_cpus
        ));
    }
    if measured.summary.failed() > 0 {
        warnings.push(format!("{name}: requests failed: {}", measured.summary));
    }
    warnings
}

/// Rows of measures, a column for each mechanism.
pub(super) fn table(measured: &[MeasuredMechanism]) -> String {
    type Show = fn(&LabMeasures) -> String;
    let rows: [(&str, Show); 12] = [
        ("requests/s", |m| format!("{:.0}", m.summary.throughput_rps())),
        ("latency, median", |m| millis(m.summary.quantile(0.5))),
        ("latency, 99 %", |m| millis(m.summary.quantile(0.99))),
        ("front-end CPU per request", |m| or_dash(m.cpu_per_request_s(), |s| format!("{:.1} µs", 1e6 * s))),
        ("front-end CPU in use", |m| or_dash(m.cpu, |cpu| format!("{:.1} %", 100.0 * cpu.share()))),
        ("packets to it per request", |m| format!("{:.1}", m.packets_per_request())),
        ("to clients by the front-end", |m| {
            or_dash(m.share_through_front_end(), |share| format!("{:.2} %", 100.0 * share))
        }),
        ("connections handed off", |m| or_dash(m.handoffs, |n| n.to_string())),
        ("further requests that stayed", |m| or_dash(m.stayed, |n| n.to_string())),
        ("connections distributed", |m| or_dash(m.distributed, |n| n.to_string())),
        ("answered by clones", |m| {
            or_dash(m.clones, |n| format!("{:.1} %", 100.0 * n.by_clones as f64 / n.requests.max(1) as f64))
        }),
        ("requests failed", |m| m.summary.failed().to_string()),
    ];
    let mut text = format!("{:<28}", "");
    for (mechanism, _) in measured {
        text += &format!(" {mechanism:>12}");
    }
    for (name, show) in rows {
        text += &format!("\n{name:<28}");
        for (_, m) in measured {
            text += &format!(" {:>12}", show(m));
        }
    }
    text + "\n"
}

fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", 1e3 * time.as_secs_f64())
}

/// One mechanism in SI units; `null` where something does not apply.
pub(super) fn json(args: &Args, (mechanism, m): &MeasuredMechanism) -> String {
    let at = |share| m.summary.quantile(share).as_secs_f64();
    serde_json::json!({
        "mechanism": mechanism.to_string(),
        "policy": args.policy(),
        "backends": args.backends,
        "size_bytes": args.size,
        "connections": args.connections,
        "keep_alive": !args.new_connections,
        "measured_s": m.summary.measured.as_secs_f64(),
        "requests": m.summary.requests,
        "failed": m.summary.failed(),
        "throughput_rps": m.summary.throughput_rps(),
        "response_time_s": { "mean": m.summary.mean_latency().as_secs_f64(), "p50": at(0.5), "p99": at(0.99) },
        "front_end": {
            "cpu_per_request_s": m.cpu_per_request_s(),
            "cpu": m.cpu.map(|cpu| cpu.share()),
            "received_packets": m.front_end.received_packets,
            "received_bytes": m.front_end.received_bytes,
            "sent_bytes": m.front_end.sent_bytes,
            "share_of_bytes_to_clients": m.share_through_front_end(),
        },
        "other_programs_cpus": m.other_programs_cpus,
        "handoffs": m.handoffs,
        "stayed": m.stayed,
        "distributed": m.distributed,
        "clones": m.clones.map(|n| serde_json::json!({ "requests": n.requests, "by_clones": n.by_clones })),
    })
    .to_string()
}
