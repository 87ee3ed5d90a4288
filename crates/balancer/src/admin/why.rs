//! `/why`: the policy's state of one target, in numbers and in words.

use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;
use plimsoll_config::{Config, TargetKey};
use plimsoll_policy::{BackendId, Health, TargetId};
use serde::Serialize;

use super::of_pool::of_query;
use super::refused::{self, ShownRefusals};
use super::retries::{self, ShownRetries};
use super::snapshot::{BackendState, Snapshot, TargetState, health_name};
use super::why_route::{self, AskedRequest, ShownRoute};
use crate::backend_pool::{BackendPool, FIRST_POOL};
use crate::http::key;
use crate::http::route_path::without_query;
use crate::shared::FrontEndShared;
use plimsoll_observe::reply::{Refused, Reply, json};

#[derive(Serialize)]
struct Shown<'a> {
    target: Cow<'a, str>,
    target_id: String,
    target_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<ShownRoute>,
    policy: &'static str,
    keeps_assignments: bool,
    known_size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    server_set: Vec<&'a str>,
    load: u64,
    admission_limit: Option<u64>,
    waiting: usize,
    retries: ShownRetries,
    backends: Vec<ShownBackend<'a>>,
    refusals: Vec<ShownRefusals>,
    explanation: String,
}

#[derive(Serialize)]
struct ShownBackend<'a> {
    name: &'a str,
    in_server_set: bool,
    takes_requests: bool,
    full: bool,
    ejected: bool,
    health: &'static str,
    weight: f64,
    load: u32,
}

/// What is asked about.
struct Asked<'a> {
    pool: Arc<BackendPool>,
    target: Cow<'a, [u8]>,
    id: TargetId,
    partition: u16,
    /// The route that leads to it, and in words why.
    route: Option<ShownRoute>,
    led: String,
}

/// Answers the query of a request to `/why`.
pub(super) fn answer(shared: &FrontEndShared, query: Option<&str>) -> Result<Reply, Refused> {
    if let Some(rest) = query.and_then(|query| query.strip_prefix("host=")) {
        return match why_route::asked(shared, rest)? {
            AskedRequest::Answered(reply) => Ok(reply),
            AskedRequest::Passed { pool, host, path_query, route, led } => {
                let config = pool.config.load_full();
                let key = (&config.target.key, &pool.hash);
                let id = key::target(key, path_query, host, &[]);
                let partition = key::partition(key, path_query, host, &[]);
                let target = match &config.target.key {
                    TargetKey::Path => Cow::Borrowed(without_query(path_query)),
                    TargetKey::HostPath => Cow::Owned([&host.to_ascii_lowercase()[..], path_query].concat()),
                    _ => Cow::Borrowed(path_query),
                };
                Ok(tell(shared, Asked { pool, target, id, partition, route, led }))
            }
        };
    }
    let (pool, query) = of_query(shared, query)?;
    let config = pool.config.load_full();
    let target = target(&config.target.key, query)?;
    let id = key::of_text((&config.target.key, &pool.hash), &target);
    let Some(partition) = key::partition_of_text((&config.target.key, &pool.hash), &target) else {
        let remedy = "write `by = \"target\"` in [partitions], or look at `/backends`";
        let error = "the partition follows from the path, which is not in the target";
        return Err(Refused::new(StatusCode::BAD_REQUEST, error, remedy));
    };
    Ok(tell(shared, Asked { pool, target, id, partition, route: None, led: String::new() }))
}

fn tell(shared: &FrontEndShared, asked: Asked<'_>) -> Reply {
    let Asked { pool, target, id, partition, route, led } = asked;
    let config = pool.config.load_full();
    let (mut snapshot, of_target) = Snapshot::with_target(&pool, partition, id);
    snapshot.backends.retain(|b| b.holds);
    let in_set = |b: &BackendState| of_target.server_set.contains(&b.backend.id);
    let there = snapshot.backends.iter().filter(|b| b.is_there() || in_set(b));
    let backends = there.map(|b| ShownBackend {
        name: &b.backend.name,
        in_server_set: in_set(b),
        takes_requests: b.eligible,
        full: b.full,
        ejected: b.ejected,
        health: health_name(b.health),
        weight: b.weight.as_f64(),
        load: b.load,
    });
    let refusals = refused::so_far(shared);
    let named =
        |id: &BackendId| snapshot.backends.iter().find(|b| b.backend.id == *id).map(|b| &*b.backend.name);
    let shown = Shown {
        target: String::from_utf8_lossy(&target),
        target_id: format!("{:016x}", id.0),
        target_key: config.target.key.to_string(),
        partition: pool.hash.partitioning().map(|_| partition),
        pool: (pool.number != FIRST_POOL).then(|| pool.name()),
        policy: config.policy.spec.name,
        keeps_assignments: keeps_assignments(&snapshot, &of_target),
        known_size_bytes: of_target.known_size_bytes,
        class: class(&config, &target),
        server_set: of_target.server_set.iter().filter_map(named).collect(),
        load: snapshot.total_load,
        admission_limit: snapshot.admission_limit,
        waiting: snapshot.waiting,
        retries: ShownRetries::of(snapshot.retries),
        backends: backends.collect(),
        explanation: led + &explain(&config, &snapshot, &of_target) + &in_words(&refusals),
        refusals,
        route,
    };
    json(StatusCode::OK, &shown)
}

/// The class of a GET for a target that is a path.
fn class<'a>(config: &'a Config, target: &[u8]) -> Option<&'a str> {
    let table = &config.classes.as_ref()?.file.table;
    let is_path = matches!(config.target.key, TargetKey::PathQuery | TargetKey::Path);
    let number = if is_path { table.class_of(b"GET", target) } else { 0 };
    table.class(number).map(|class| &*class.name)
}

/// As far as it shows from outside: a policy that has kept nothing yet may do so with the next request.
fn keeps_assignments(snapshot: &Snapshot, target: &TargetState) -> bool {
    snapshot.assigned_targets > 0 || !target.server_set.is_empty()
}

fn explain(config: &Config, snapshot: &Snapshot, target: &TargetState) -> String {
    let policy = config.policy.spec.name;
    let set: Vec<&BackendState> = target
        .server_set
        .iter()
        .filter_map(|id| snapshot.backends.iter().find(|b| b.backend.id == *id))
        .collect();
    let mut out = if !set.is_empty() {
        let members: Vec<String> =
            set.iter().map(|b| format!("{} ({})", b.backend.name, state_in_words(b))).collect();
        format!(
            "`{policy}` has assigned this target to {}, and prefers that for the next request. Its rules may still move \
             the assignment or add to it, when loads are high or back-ends take no requests.",
            members.join(", ")
        )
    } else if keeps_assignments(snapshot, target) {
        format!(
            "`{policy}` keeps assignments of {} targets, but none of this one: no request for it has come, or it was \
             forgotten since. The next request for it decides.",
            snapshot.assigned_targets
        )
    } else if snapshot.counts.assigned == 0 {
        format!("No request has been assigned yet, and `{policy}` holds nothing about this target.")
    } else {
        format!(
            "`{policy}` holds no assignment of targets. This is the state of the cluster, not a prediction of where a \
             request would go."
        )
    };
    out.push(' ');
    out.push_str(&now(snapshot));
    out.push_str(retries::in_words(snapshot));
    out
}

/// What has been refused so far, for the reason that was most frequent.
fn in_words(refusals: &[ShownRefusals]) -> String {
    let Some(most) = refusals.first() else { return String::new() };
    let more = if refusals.len() > 1 { " `refusals` has the other reasons." } else { "" };
    let ShownRefusals { reason, count, meaning, remedy } = most;
    format!(
        " Refused since the start, for whatever target: {count} for `{reason}`: {meaning}; {remedy}.{more}"
    )
}

/// What would happen to any request now.
fn now(snapshot: &Snapshot) -> String {
    let relative = |b: &BackendState| f64::from(b.shown_load) / b.weight.as_f64();
    let eligible = snapshot.backends.iter().filter(|b| b.eligible);
    let Some(least) = eligible.min_by(|a, b| relative(a).total_cmp(&relative(b))) else {
        return "No back-end takes requests now: a request waits, or is refused with 503.".to_owned();
    };
    match snapshot.admission_limit {
        Some(limit) if snapshot.total_load >= limit => format!(
            "The admission limit of {limit} requests is reached: a request waits first; {} wait already.",
            snapshot.waiting
        ),
        _ => format!(
            "Least loaded for its weight now: {} with {} of {} requests under way.",
            least.backend.name, least.load, snapshot.total_load
        ),
    }
}

fn state_in_words(b: &BackendState) -> String {
    let state = match b.health {
        Health::Up if b.eligible => "",
        Health::Up if b.full => ", full",
        Health::Up => ", of weight 0",
        Health::Draining if b.slow => ", ejected because it was slow",
        Health::Draining if b.ejected => ", ejected because it failed requests",
        Health::Draining => ", draining",
        Health::Down => ", down",
    };
    format!("load {}{state}", b.load)
}

/// What `target=` gives: the rest of the query, so that a target with `&` in it can be written as it is. Where targets
/// are paths it stands for itself when it looks like one; otherwise its percent-encoding is undone once.
pub(super) fn target<'a>(key: &TargetKey, query: Option<&'a str>) -> Result<Cow<'a, [u8]>, Refused> {
    let example = match key {
        TargetKey::Path => "/path",
        TargetKey::PathQuery => "/path?query",
        TargetKey::HostPath => "host/path?query",
        TargetKey::Header(_) | TargetKey::Cookie(_) => "VALUE",
    };
    let refused = |error: String| {
        let remedy = format!("ask GET /why?target={example}; targets are told apart by `{key}` here");
        Err(Refused::new(StatusCode::BAD_REQUEST, error, remedy))
    };
    let Some(given) = query.and_then(|q| q.strip_prefix("target=")).filter(|given| !given.is_empty()) else {
        return refused("the query does not say which target".to_owned());
    };
    let bytes = given.as_bytes();
    let is_path = |bytes: &[u8]| match key {
        TargetKey::Path | TargetKey::PathQuery => bytes.first() == Some(&b'/'),
        TargetKey::HostPath => memchr::memchr(b'/', bytes).is_some_and(|slash| slash > 0),
        TargetKey::Header(_) | TargetKey::Cookie(_) => false,
    };
    if is_path(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let decoded = percent_decoded(bytes);
    match key {
        TargetKey::Header(_) | TargetKey::Cookie(_) => Ok(Cow::Owned(decoded)),
        _ if is_path(&decoded) => Ok(Cow::Owned(decoded)),
        _ => refused(format!("`{given}` is not a target")),
    }
}

/// Undoes percent-encoding; what is not encoded properly stays as it is.
pub(super) fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_the_rest_of_the_query() {
        let of = |key: &TargetKey, query: &str| target(key, Some(query)).map(|t| t.to_vec()).ok();
        let paths = TargetKey::PathQuery;
        assert_eq!(of(&paths, "target=/a%20b?c=d&e=f").unwrap(), b"/a%20b?c=d&e=f");
        assert_eq!(of(&paths, "target=%2Fa%2520b%3Fc").unwrap(), b"/a%20b?c");
        assert_eq!(of(&TargetKey::HostPath, "target=h:8/a").unwrap(), b"h:8/a");
        assert_eq!(of(&TargetKey::HostPath, "target=h%2Fa").unwrap(), b"h/a");
        assert_eq!(of(&TargetKey::Cookie("c".into()), "target=a%20b%zz%4").unwrap(), b"a b%zz%4");
        for bad in ["", "target=", "target=a", "x=/a", "target=%61"] {
            assert_eq!(of(&paths, bad), None, "{bad}");
        }
        assert!(target(&paths, None).is_err());
    }
}
