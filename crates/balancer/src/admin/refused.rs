//! `/refusals`: what the front-end has refused, for which reasons, and what to change.

use http::StatusCode;
use serde::Serialize;

use crate::refusal_reason::RefusalReason;
use crate::shared::FrontEndShared;
use plimsoll_observe::reply::{Reply, json};

/// The refusals for one reason as JSON.
#[derive(Serialize)]
pub(super) struct ShownRefusals {
    pub(super) reason: &'static str,
    pub(super) count: u64,
    pub(super) meaning: &'static str,
    pub(super) remedy: &'static str,
}

/// The reasons for which something was refused, the most frequent one first.
pub(super) fn so_far(shared: &FrontEndShared) -> Vec<ShownRefusals> {
    let shown = RefusalReason::ALL.iter().map(|&reason| ShownRefusals {
        reason: reason.name(),
        count: crate::metrics::refusals(&shared.counts, reason),
        meaning: reason.meaning(),
        remedy: reason.remedy(),
    });
    let mut shown: Vec<_> = shown.filter(|r| r.count > 0).collect();
    shown.sort_by_key(|r| std::cmp::Reverse(r.count));
    shown
}

/// All of them.
pub(super) fn list(shared: &FrontEndShared) -> Reply {
    json(StatusCode::OK, &so_far(shared))
}
