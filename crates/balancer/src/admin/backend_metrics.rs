//! What `/metrics` says of back-ends.

use std::fmt::Error;

use plimsoll_observe::exposition::Out;
use plimsoll_policy::Health;

use super::backends::CODES;
use super::snapshot::{BackendState, health_name};
use crate::metrics::{BUCKETS_US, BackendCounts, SharedCounter};

/// The metrics of all back-ends.
pub(super) fn encode(backends: &[&BackendState], out: &mut Out<'_>) -> Result<(), Error> {
    const STATES: [Health; 3] = [Health::Up, Health::Draining, Health::Down];
    let all = || backends.iter().copied();
    let there = || all().filter(|b| b.is_there());
    out.gauges("plimsoll_backend_load", "Requests assigned and not completed", || {
        there().map(|b| (named(b), u64::from(b.load)))
    })?;
    out.gauges("plimsoll_backend_shown_load", "The load that the policy sees", || {
        there().map(|b| (named(b), u64::from(b.shown_load)))
    })?;
    out.gauges(
        "plimsoll_backend_state",
        "1 for the state that the back-end is in, 0 for the others",
        || {
            there().flat_map(|b| {
                STATES.map(|state| {
                    let labels = b.labels(Some(("state", health_name(state))));
                    (labels, u64::from(b.health == state))
                })
            })
        },
    )?;
    out.gauges(
        "plimsoll_backend_ejected",
        "1 while it takes only trials, because it failed requests",
        || there().map(|b| (named(b), u64::from(b.ejected))),
    )?;
    out.gauges(
        "plimsoll_backend_unresolved",
        "1 while it is down because its name leads to no address",
        || there().map(|b| (named(b), u64::from(b.backend.address.is_err()))),
    )?;
    out.gauges("plimsoll_backend_slow", "1 while it takes only trials, because it was slow", || {
        there().map(|b| (named(b), u64::from(b.slow)))
    })?;
    out.gauges("plimsoll_backend_full", "1 while it has as many requests as it may", || {
        there().map(|b| (named(b), u64::from(b.full)))
    })?;
    out.gauges("plimsoll_backend_requests_limit", "Requests that may be under way at it", || {
        there().filter_map(|b| Some((named(b), u64::from(b.backend.max_requests?))))
    })?;
    out.gauges("plimsoll_backend_weight", "Weight", || there().map(|b| (named(b), b.weight.as_f64())))?;
    out.gauges("plimsoll_backend_connections_open", "Connections open to the back-end", || {
        there().map(|b| (named(b), b.connections()))
    })?;
    out.gauges("plimsoll_backend_connections_limit", "Connections that may be open to it", || {
        there().map(|b| (named(b), u64::from(b.backend.max_connections)))
    })?;
    out.counters("plimsoll_backend_responses", "Responses passed on, by the class of their status", || {
        all().flat_map(|b| {
            let code = |i: usize| b.labels(Some(("code", CODES[i])));
            (0..CODES.len()).map(move |i| (code(i), b.sum(|c| &c.answers[i])))
        })
    })?;
    counters(backends, out)?;
    out.histograms(
        "plimsoll_backend_response_time",
        "From request head to response end",
        &BUCKETS_US,
        || all().map(|b| (named(b), b.histogram(|c| &c.response_time))),
    )?;
    out.histograms(
        "plimsoll_backend_first_byte",
        "From the choice of the back-end to its response head",
        &BUCKETS_US,
        || all().map(|b| (named(b), b.histogram(|c| &c.first_byte))),
    )
}

fn counters(backends: &[&BackendState], out: &mut Out<'_>) -> Result<(), Error> {
    let mut sums = |name, help, of: fn(&BackendCounts) -> &SharedCounter| {
        out.counters(name, help, || backends.iter().copied().map(|b| (named(b), b.sum(of))))
    };
    sums("plimsoll_backend_failures", "Requests that ended without a whole answer of it", |c| &c.failed)?;
    sums("plimsoll_backend_attempts_failed", "Requests that failed there, repeated ones included", |c| {
        &c.attempts_failed
    })?;
    sums("plimsoll_backend_ejections", "Times that it was ejected", |c| &c.ejections)?;
    sums("plimsoll_backend_content_bytes", "Content passed on to clients", |c| &c.content_bytes)?;
    sums("plimsoll_backend_told_hits", "Responses whose content was in its cache, as it told", |c| {
        &c.told_hits
    })?;
    sums("plimsoll_backend_told_misses", "Responses whose content was not in its cache, as it told", |c| {
        &c.told_misses
    })?;
    sums("plimsoll_backend_connections_opened", "Connections opened to it", |c| &c.connections)?;
    sums("plimsoll_backend_connections_failed", "Connections that could not be opened", |c| {
        &c.connect_failures
    })?;
    sums("plimsoll_backend_health_checks_failed", "Health checks that failed", |c| &c.checks_failed)
}

fn named(b: &BackendState) -> Vec<(&'static str, &str)> {
    b.labels(None)
}
