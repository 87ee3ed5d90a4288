//! A request that an agent answers.

use std::time::Duration;

use plimsoll_wire::message::Ended;

use crate::backend::Backend;
use crate::dispatch::Assignment;
use crate::http::request::RequestHead;
use crate::observe::{Record, Times};
use crate::proxy::outcome::CLIENT_GONE;
use crate::worker::{Accepted, Worker};

/// A request under way on a connection that has been handed off. Dropping it counts the request as failed.
pub(crate) struct Active {
    pub(crate) head: RequestHead,
    /// The rewritten head, into which `head` points.
    pub(crate) head_bytes: Vec<u8>,
    pub(crate) assignment: Assignment,
    pub(crate) times: Times,
    pub(crate) attempts: u32,
    pub(crate) waited: bool,
}

impl Active {
    /// The agent has reported how the request ended.
    pub(super) fn end(self, worker: &Worker, accepted: &Accepted, backend: &Backend, ended: &Ended) {
        let mut times = self.times;
        let first_byte = Duration::from_micros(ended.first_byte_us.into());
        let assigned = times.assigned.unwrap_or(times.received);
        let answered = ended.status > 0;
        times.first_byte = answered.then(|| assigned + first_byte);
        let status = if answered { ended.status } else { CLIENT_GONE };
        self.observe(worker, accepted, backend, (status, ended.content_bytes, times));
        if ended.complete {
            let whole = self.head.is_get && ended.status == 200;
            self.assignment.complete(whole.then_some(ended.content_bytes));
        }
    }

    /// The agent is gone, or has lost the connection.
    pub(super) fn lose(self, worker: &Worker, accepted: &Accepted, backend: &Backend) {
        self.observe(worker, accepted, backend, (502, 0, self.times));
    }

    fn observe(&self, worker: &Worker, accepted: &Accepted, backend: &Backend, end: (u16, u64, Times)) {
        let (status, content_bytes, times) = end;
        worker.observe(&Record {
            peer: &accepted.peer_text,
            head: Some(&self.head),
            head_bytes: &self.head_bytes,
            status,
            content_bytes,
            backend: Some(backend),
            reason: Some(self.assignment.reason()),
            handed_off: true,
            attempts: self.attempts,
            waited: self.waited,
            times,
        });
    }
}
