//! Reports each answer; and how a connection ended.

use std::time::{Duration, Instant};

use plimsoll_wire::load::ActiveAccess;
use plimsoll_wire::message::{AnswerReport, FromAgent};

use super::client::ClientConnection;
use super::connection::Connection;
use super::serve::Answer;
use super::shared::{AgentShared, count};

/// How a connection ended.
pub(super) enum ConnectionEnd {
    /// Gracefully.
    Close(ClientConnection),
    /// By a failure.
    Abort(ClientConnection),
    /// The front-end has it back.
    Returned,
    /// The kernel lost it.
    Lost,
}

/// A request is being answered, unless what answers counts that itself.
pub(super) fn begin(shared: &AgentShared) -> Option<ActiveAccess> {
    (!shared.serve.counts_load()).then(|| shared.config.gauge.begin())
}

/// A request that began so is answered.
pub(super) fn finish(access: Option<ActiveAccess>, began_at: Instant) {
    if let Some(access) = access {
        access.answered(u32::try_from(began_at.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
}

/// Counts and reports the answer to the request under way.
pub(super) fn report(shared: &AgentShared, connection: &Connection, answer: Answer, began_at: Instant) {
    connection.answered();
    count(&shared.counters.requests, 1);
    count(&shared.counters.content_bytes, answer.content_bytes);
    let ended = ended_of(connection.request(), answer, began_at);
    connection.tell_later(|conn| FromAgent::Ended { conn, ended });
}

fn ended_of(request: u32, answer: Answer, began_at: Instant) -> AnswerReport {
    let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let total_us = micros(began_at.elapsed());
    let first_byte_us =
        answer.first_byte_at.map_or(total_us, |at| micros(at.saturating_duration_since(began_at)));
    AnswerReport {
        request,
        status: answer.status,
        complete: answer.complete,
        content_bytes: answer.content_bytes,
        first_byte_us,
        total_us,
    }
}
