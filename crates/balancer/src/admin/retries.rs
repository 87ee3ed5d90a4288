//! What the admin API and `/metrics` say of retries.

use std::fmt::Error;

use plimsoll_observe::exposition::Out;
use serde::Serialize;

use super::snapshot::{OtherPool, Snapshot};
use crate::retry_budget::RetryCounts;

/// The retries of a pool.
#[derive(Serialize)]
pub(super) struct ShownRetries {
    made: u64,
    denied: u64,
    /// None where there is no bound.
    left: Option<u64>,
}

impl ShownRetries {
    pub(super) fn of(RetryCounts { made, denied, left }: RetryCounts) -> Self {
        Self { made, denied, left: (left < u64::MAX).then_some(left) }
    }
}

/// What is to be said besides, in words.
pub(super) fn in_words(snapshot: &Snapshot) -> &'static str {
    if snapshot.retries.left > 0 {
        return "";
    }
    " The retry budget is used up: a request that fails now is not tried elsewhere."
}

/// The metrics of the first pool, and of the others.
pub(super) fn encode(first: &Snapshot, others: &[OtherPool], out: &mut Out<'_>) -> Result<(), Error> {
    let mut counter = |name, help, of: fn(RetryCounts) -> u64| {
        let others = others.iter().map(|o| ([("pool", o.name.as_str())], of(o.snapshot.retries)));
        out.counter_and(name, help, of(first.retries), others)
    };
    counter("plimsoll_retries", "Requests that were sent to a further back-end", |r| r.made)?;
    counter("plimsoll_retries_denied", "Retries that the budget did not allow", |r| r.denied)?;
    let left = |snapshot: &Snapshot| Some(snapshot.retries.left).filter(|left| *left < u64::MAX);
    let others = others.iter().filter_map(|o| Some(([("pool", o.name.as_str())], left(&o.snapshot)?)));
    out.gauge_and("plimsoll_retries_left", "Retries that the budget would allow now", left(first), others)
}
