//! The columns of the result files, each declared once for CSV and Parquet.

use crate::{
    json::json_text,
    run::{ConnectionFigures, PerBackend, Run, Summary},
};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// UTF-8 text.
    Text,
    /// A count: an unsigned integer of 64 bits.
    Count,
    /// A number: IEEE 754 double.
    Number,
}

/// The shape of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One value in each row.
    Value(Type),
    /// A list of structs with these fields.
    Structs(&'static [(&'static str, Type)]),
    /// A map from texts to values of this type.
    Map(Type),
}

/// A value in a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ColumnValue {
    Null,
    Text(String),
    Count(u64),
    Number(f64),
    /// The structs of a list, each with the values of its fields; or the entries of a map, each with key and value.
    Nested(Vec<Vec<ColumnValue>>),
}

/// A column: its name, its shape, and its value in a row. `Null` is allowed for every value but that of a nested column and the key
/// of a map.
pub(super) struct DataColumn<T> {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) value: fn(&T) -> ColumnValue,
    /// The value of a nested column in a CSV, as JSON.
    pub(super) json: Option<fn(&T) -> String>,
}

const fn plain<T>(name: &'static str, kind: Type, value: fn(&T) -> ColumnValue) -> DataColumn<T> {
    DataColumn { name, shape: Shape::Value(kind), value, json: None }
}

const fn text<T>(name: &'static str, value: fn(&T) -> ColumnValue) -> DataColumn<T> {
    plain(name, Type::Text, value)
}

const fn count<T>(name: &'static str, value: fn(&T) -> ColumnValue) -> DataColumn<T> {
    plain(name, Type::Count, value)
}

const fn number<T>(name: &'static str, value: fn(&T) -> ColumnValue) -> DataColumn<T> {
    plain(name, Type::Number, value)
}

const fn nested<T>(
    name: &'static str,
    shape: Shape,
    value: fn(&T) -> ColumnValue,
    json: fn(&T) -> String,
) -> DataColumn<T> {
    DataColumn { name, shape, value, json: Some(json) }
}

/// A number; null unless finite, as in JSON.
fn finite(value: impl Into<Option<f64>>) -> ColumnValue {
    value.into().filter(|value| value.is_finite()).map_or(ColumnValue::Null, ColumnValue::Number)
}

fn delay(run: &Run, pick: fn(&Summary) -> f64) -> ColumnValue {
    finite(run.response_time_s.as_ref().map(pick))
}

fn slowdown(run: &Run, pick: fn(&Summary) -> f64) -> ColumnValue {
    finite(run.slowdown.as_ref().map(pick))
}

fn latency(run: &Run, pick: fn(&ConnectionFigures) -> Option<Summary>) -> ColumnValue {
    finite(run.connections.as_ref().and_then(pick).map(|summary| summary.mean))
}

fn connections(run: &Run, pick: fn(&ConnectionFigures) -> u64) -> ColumnValue {
    run.connections.as_ref().map_or(ColumnValue::Null, |of| ColumnValue::Count(pick(of)))
}

/// One row per run.
pub(super) const RUNS: &[DataColumn<Run>] = &[
    text("policy", |run| ColumnValue::Text(run.policy.clone())),
    text("model", |run| ColumnValue::Text(run.model.clone())),
    text("hardware", |run| {
        run.hardware().map_or(ColumnValue::Null, |name| ColumnValue::Text(name.to_owned()))
    }),
    text("load_information", |run| ColumnValue::Text(run.load_information.clone())),
    count("front_ends", |run| ColumnValue::Count(run.front_ends as u64)),
    number("load_messages_rps", |run| finite(run.load_traffic.as_ref().map(|of| of.messages_rps))),
    number("load_cpu", |run| finite(run.load_traffic.as_ref().map(|of| of.cpu))),
    number("load_receive_cpu", |run| finite(run.load_traffic.as_ref().map(|of| of.receive_cpu))),
    count("backends", |run| ColumnValue::Count(run.backends as u64)),
    count("seed", |run| ColumnValue::Count(run.seed)),
    count("requests", |run| ColumnValue::Count(run.requests)),
    count("completed", |run| ColumnValue::Count(run.completed)),
    count("rejected", |run| ColumnValue::Count(run.rejected)),
    count("lost", |run| ColumnValue::Count(run.lost)),
    count("sent_bytes", |run| ColumnValue::Count(run.sent_bytes)),
    number("simulated_s", |run| finite(run.simulated_s)),
    number("throughput_rps", |run| finite(run.throughput_rps)),
    number("miss_ratio", |run| finite(run.miss_ratio)),
    number("joined_ratio", |run| finite(run.joined_ratio)),
    number("idle_ratio", |run| finite(run.idle_ratio)),
    number("response_time_mean_s", |run| delay(run, |summary| summary.mean)),
    number("response_time_p50_s", |run| delay(run, |summary| summary.p50)),
    number("response_time_p90_s", |run| delay(run, |summary| summary.p90)),
    number("response_time_p99_s", |run| delay(run, |summary| summary.p99)),
    number("response_time_p999_s", |run| delay(run, |summary| summary.p999)),
    number("response_time_max_s", |run| delay(run, |summary| summary.max)),
    number("slowdown_mean", |run| slowdown(run, |summary| summary.mean)),
    number("slowdown_p50", |run| slowdown(run, |summary| summary.p50)),
    number("slowdown_p90", |run| slowdown(run, |summary| summary.p90)),
    number("slowdown_p99", |run| slowdown(run, |summary| summary.p99)),
    number("slowdown_p999", |run| slowdown(run, |summary| summary.p999)),
    number("slowdown_max", |run| slowdown(run, |summary| summary.max)),
    number("server_latency_mean_s", |run| latency(run, |of| of.server_latency_s)),
    number("user_latency_mean_s", |run| latency(run, |of| of.user_latency_s)),
    count("refusals", |run| connections(run, |of| of.refusals.iter().sum())),
    count("given_up", |run| connections(run, |of| of.given_up)),
    number("utilization_cpu", |run| finite(run.utilization.cpu)),
    number("utilization_disk", |run| finite(run.utilization.disk)),
    number("wall_s", |run| finite(run.wall_s)),
    number("requests_per_wall_s", |run| finite(run.requests_per_wall_s)),
    text("trace_path", |run| ColumnValue::Text(run.trace.path.clone())),
    text("trace_sha256", |run| run.trace.sha256.clone().map_or(ColumnValue::Null, ColumnValue::Text)),
    count("trace_lines_rejected", |run| ColumnValue::Count(run.trace.lines_rejected)),
    nested("params", Shape::Map(Type::Text), params, |run| json_text(&run.params)),
    nested("policy_stats", Shape::Map(Type::Number), policy_stats, |run| json_text(&run.policy_stats)),
    nested("per_backend", Shape::Structs(PER_BACKEND), per_backend, |run| json_text(&run.per_backend)),
];

/// Values of several types as texts: a text as it is, everything else as in JSON.
fn params(run: &Run) -> ColumnValue {
    let value = |value: &serde_json::Value| match value {
        serde_json::Value::Null => ColumnValue::Null,
        serde_json::Value::String(text) => ColumnValue::Text(text.clone()),
        other => ColumnValue::Text(other.to_string()),
    };
    let entry = |(key, of): (&String, _)| vec![ColumnValue::Text(key.clone()), value(of)];
    ColumnValue::Nested(run.params.iter().map(entry).collect())
}

fn policy_stats(run: &Run) -> ColumnValue {
    let entry = |(key, value): (&String, &f64)| vec![ColumnValue::Text(key.clone()), finite(*value)];
    ColumnValue::Nested(run.policy_stats.iter().map(entry).collect())
}

/// The fields of a back-end, in the order of [`per_backend`].
const PER_BACKEND: &[(&str, Type)] = &[
    ("requests", Type::Count),
    ("miss_ratio", Type::Number),
    ("idle_ratio", Type::Number),
    ("cpu", Type::Number),
    ("disk", Type::Number),
    ("mean_load", Type::Number),
];

fn per_backend(run: &Run) -> ColumnValue {
    let fields = |of: &PerBackend| {
        vec![
            ColumnValue::Count(of.requests),
            finite(of.miss_ratio),
            finite(of.idle_ratio),
            finite(of.cpu),
            finite(of.disk),
            finite(of.mean_load),
        ]
    };
    ColumnValue::Nested(run.per_backend.iter().map(fields).collect())
}

/// The load of one back-end in one time bucket of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadRow<'a> {
    run: &'a Run,
    backend: usize,
    time_s: f64,
    load: f64,
}

/// One row per back-end and time bucket.
pub(super) fn load_columns<'a>() -> [DataColumn<LoadRow<'a>>; 7] {
    [
        text("policy", |row| ColumnValue::Text(row.run.policy.clone())),
        text("load_information", |row| ColumnValue::Text(row.run.load_information.clone())),
        count("backends", |row| ColumnValue::Count(row.run.backends as u64)),
        count("seed", |row| ColumnValue::Count(row.run.seed)),
        count("backend", |row| ColumnValue::Count(row.backend as u64)),
        number("time_s", |row| finite(row.time_s)),
        number("load", |row| finite(row.load)),
    ]
}

/// The load of a run in long form: by back-end, then by time.
pub(super) fn load_rows(run: &Run) -> impl Iterator<Item = LoadRow<'_>> {
    run.load_series.load.iter().enumerate().flat_map(move |(backend, loads)| {
        loads.iter().enumerate().map(move |(bucket, &load)| LoadRow {
            run,
            backend,
            time_s: bucket as f64 * run.load_series.bucket_s,
            load,
        })
    })
}
