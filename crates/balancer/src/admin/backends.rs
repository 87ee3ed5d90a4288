//! `/backends`: list, drain and weight.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use plimsoll_policy::Weight;
use plimsoll_wire::message::AgentCounts;
use serde::{Deserialize, Serialize};

use super::snapshot::{BackendState, Snapshot, health_name};
use crate::backend::Backend;
use crate::backend_pool::BackendPool;
use crate::shared::FrontEndShared;
use plimsoll_observe::reply::{Refused, Reply, json};

/// A back-end as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'a str>,
    address: Option<String>,
    host: &'a str,
    unresolved: Option<String>,
    health: &'static str,
    drained: bool,
    ejected: bool,
    slow: bool,
    takes_requests: bool,
    full: bool,
    configured: bool,
    weight: f64,
    load: u32,
    shown_load: u32,
    max_requests: Option<u32>,
    max_connections: u32,
    max_waiting: u32,
    connections: u64,
    waiting_for_connection: u32,
    answers: BTreeMap<&'static str, u64>,
    failed: u64,
    attempts_failed: u64,
    ejections: u64,
    checks_failed: u64,
    mean_response_time_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentCounts>,
}

/// Names of the hundreds of a status.
pub(super) const CODES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

impl<'a> Shown<'a> {
    fn of(state: &'a BackendState) -> Self {
        let backend = &state.backend;
        let (buckets, sum_s) = state.histogram(|c| &c.response_time);
        let answered: u64 = buckets.iter().sum();
        Self {
            name: &backend.name,
            pool: state.pool.as_deref(),
            address: backend.address.as_ref().ok().map(ToString::to_string),
            host: &backend.authority,
            unresolved: backend.address.as_ref().err().map(|error| error.error.clone()),
            health: health_name(state.health),
            drained: backend.is_drained(),
            ejected: state.ejected,
            slow: state.slow,
            takes_requests: state.eligible,
            full: state.full,
            configured: !backend.is_retired(),
            weight: state.weight.as_f64(),
            load: state.load,
            shown_load: state.shown_load,
            max_requests: backend.max_requests,
            max_connections: backend.max_connections,
            max_waiting: backend.max_waiting,
            connections: state.connections(),
            waiting_for_connection: backend.waiting.load(std::sync::atomic::Ordering::Relaxed),
            answers: CODES
                .into_iter()
                .enumerate()
                .map(|(i, code)| (code, state.sum(|c| &c.answers[i])))
                .collect(),
            failed: state.sum(|c| &c.failed),
            attempts_failed: state.sum(|c| &c.attempts_failed),
            ejections: state.sum(|c| &c.ejections),
            checks_failed: state.sum(|c| &c.checks_failed),
            mean_response_time_s: (answered > 0).then(|| sum_s / answered as f64),
            agent: backend.agent_counts(),
        }
    }
}

/// All back-ends.
pub(super) fn list(shared: &FrontEndShared) -> Reply {
    let snapshots: Vec<Snapshot> = shared.pools().iter().map(|pool| Snapshot::take(pool)).collect();
    let states = snapshots.iter().flat_map(|snapshot| &snapshot.backends);
    let shown: Vec<Shown<'_>> = states.filter(|b| b.is_there()).map(Shown::of).collect();
    json(StatusCode::OK, &shown)
}

/// The back-end that a path names.
pub(super) fn one(shared: &FrontEndShared, name: &str) -> Result<Reply, Refused> {
    let (pool, backend) = find(shared, name)?;
    let snapshot = Snapshot::take(&pool);
    let state = snapshot.backends.iter().find(|state| state.backend.id == backend.id);
    state.map(|state| json(StatusCode::OK, &Shown::of(state))).ok_or_else(|| unknown(shared, name))
}

/// Starts or ends draining.
pub(super) fn set_drained(shared: &FrontEndShared, name: &str, drained: bool) -> Result<Reply, Refused> {
    let (pool, backend) = find(shared, name)?;
    pool.set_drained(&backend, drained, Instant::now());
    let what = if drained { "drained" } else { "no longer drained" };
    tracing::info!(backend = &*backend.name, "back-end is {what}, by the admin API");
    one(shared, name)
}

/// Sets the weight.
pub(super) fn set_weight(shared: &FrontEndShared, name: &str, body: &[u8]) -> Result<Reply, Refused> {
    let (pool, backend) = find(shared, name)?;
    let weight = parse_weight(body)?;
    pool.set_weight(&backend, weight, Instant::now());
    pool.look_after_ejected(Instant::now());
    tracing::info!(backend = &*backend.name, weight = weight.as_f64(), "weight is set, by the admin API");
    one(shared, name)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum GivenWeight {
    Plain(f64),
    Named(NamedWeight),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedWeight {
    weight: f64,
}

fn parse_weight(body: &[u8]) -> Result<Weight, Refused> {
    let refused = |error: &str| {
        let remedy = "send a number from 0 to 65536, or {\"weight\": 0.5}; 0 takes nothing new";
        Refused::new(StatusCode::BAD_REQUEST, error, remedy)
    };
    let Ok(given) = serde_json::from_slice(body) else { return Err(refused("the body is not a weight")) };
    let (GivenWeight::Plain(weight) | GivenWeight::Named(NamedWeight { weight })) = given;
    Weight::new(weight).ok_or_else(|| refused("the weight is out of range"))
}

/// The configured back-end of this name, which dispatch knows as well, and its pool.
fn find(shared: &FrontEndShared, name: &str) -> Result<(Arc<BackendPool>, Arc<Backend>), Refused> {
    let decoded = super::why::percent_decoded(name.as_bytes());
    let is_it = |b: &&Arc<Backend>| b.name.as_bytes() == decoded && !b.is_retired();
    let of_pool = |pool: Arc<BackendPool>| {
        let found = pool.backends.load().iter().find(is_it).cloned()?;
        let known = pool.dispatch.inspect_members(|i| i.members.len());
        (found.id.index() < known).then_some((pool, found))
    };
    shared.pools().into_iter().find_map(of_pool).ok_or_else(|| unknown(shared, name))
}

fn unknown(shared: &FrontEndShared, name: &str) -> Refused {
    let backends: Vec<Arc<Backend>> =
        shared.pools().iter().flat_map(|pool| pool.backends.load().to_vec()).collect();
    let names: Vec<&str> = backends.iter().filter(|b| !b.is_retired()).map(|b| &*b.name).take(20).collect();
    let remedy = format!("GET /backends lists them; among them are {}", names.join(", "));
    Refused::new(StatusCode::NOT_FOUND, format!("no back-end is called `{name}`"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights() {
        let steps = |body: &str| parse_weight(body.as_bytes()).map(Weight::steps).ok();
        assert_eq!(steps("{\"weight\": 0.5}"), Some(128));
        assert_eq!(steps(" 2 "), Some(512));
        assert_eq!(steps("0"), Some(0));
        for bad in
            ["", "-1", "1e9", "\"1\"", "{}", "{\"weight\":1,\"x\":2}", "{\"weight\":null}", "NaN", "1 2"]
        {
            assert_eq!(steps(bad), None, "{bad}");
        }
    }
}
