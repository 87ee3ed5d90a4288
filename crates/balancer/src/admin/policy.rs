//! `/policy`: the policy, and what it does in numbers.

use std::collections::BTreeMap;

use http::StatusCode;
use plimsoll_decisions::Score;
use plimsoll_policy::params::ParamValue;
use serde::Serialize;

use super::of_pool::of_query;
use super::snapshot::Snapshot;
use crate::shared::FrontEndShared;
use plimsoll_observe::reply::{Refused, Reply, json};

#[derive(Serialize)]
struct Shown<'a> {
    name: &'static str,
    summary: &'static str,
    parameters: BTreeMap<&'static str, ParamValue>,
    seed: u64,
    target_key: String,
    stats: BTreeMap<String, f64>,
    tracked_targets: usize,
    load: u64,
    admission_limit: Option<u64>,
    waiting: usize,
    queue: usize,
    decisions: u64,
    waited: u64,
    refused: u64,
    shadow: Option<Shadow<'a>>,
}

#[derive(Serialize)]
struct Shadow<'a> {
    policy: &'static str,
    live: ShownScore<'a>,
    shadow: ShownScore<'a>,
}

#[derive(Serialize)]
struct ShownScore<'a> {
    requests: u64,
    per_backend: &'a [u64],
    miss_ratio: Option<f64>,
    imbalance: Option<f64>,
    load_imbalance: Option<f64>,
}

impl<'a> ShownScore<'a> {
    fn of(score: &'a Score) -> Self {
        Self {
            requests: score.requests,
            per_backend: &score.per_backend,
            miss_ratio: score.miss_ratio,
            imbalance: score.imbalance,
            load_imbalance: score.load_imbalance,
        }
    }
}

/// The policy's state.
pub(super) fn state(shared: &FrontEndShared, query: Option<&str>) -> Result<Reply, Refused> {
    let (pool, _) = of_query(shared, query)?;
    let config = pool.config.load_full();
    let snapshot = Snapshot::take(&pool);
    let shown = Shown {
        name: config.policy.spec.name,
        summary: config.policy.spec.summary,
        parameters: config.policy.params.iter().collect(),
        seed: config.policy.seed,
        target_key: config.target.key.to_string(),
        stats: snapshot.stats.iter().map(|stat| (stat.key(), stat.value)).collect(),
        tracked_targets: snapshot.tracked_targets,
        load: snapshot.total_load,
        admission_limit: snapshot.admission_limit,
        waiting: snapshot.waiting,
        queue: config.admission.queue,
        decisions: snapshot.counts.assigned,
        waited: snapshot.counts.waited,
        refused: snapshot.counts.refused,
        shadow: snapshot.shadow.as_ref().map(|s| Shadow {
            policy: s.policy,
            live: ShownScore::of(&s.live),
            shadow: ShownScore::of(&s.shadow),
        }),
    };
    Ok(json(StatusCode::OK, &shown))
}
