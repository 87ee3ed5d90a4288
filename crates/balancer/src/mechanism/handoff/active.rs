//! A request that an agent answers.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_wire::message::AnswerReport;

use super::link::AgentLink;
use crate::accepted::Accepted;
use crate::account::{Account, End};
use crate::backend::Backend;
use crate::http::request::RequestHead;
use crate::observe::CLIENT_GONE;
use crate::passed_content::PassedContent;
use crate::refusal_reason::RefusalReason;
use crate::worker::Worker;

/// A request under way on a connection that has been handed off. Dropping it counts the request as failed.
pub(super) struct Active {
    pub(super) head: RequestHead,
    /// The rewritten head, into which `head` points.
    pub(super) head_bytes: Vec<u8>,
    pub(super) account: Account,
}

impl Active {
    /// Counts the request at the back-end that answers it, not where it was to go: there it has failed.
    pub(super) fn stay_at(&mut self, worker: &Worker, link: &AgentLink) {
        let counted = link.has_index(worker);
        let head = &self.head;
        let stay = || worker.shared.dispatch.stay(head.partition, link.id, head.target);
        self.account.stays(counted.then(stay));
    }

    /// Ends the request as its agent reports.
    pub(super) fn end(
        self,
        worker: &Worker,
        accepted: &Accepted,
        backend: &Arc<Backend>,
        ended: &AnswerReport,
    ) {
        let began = self.account.began();
        let answered = ended.status > 0;
        let first_byte = answered.then(|| began + Duration::from_micros(ended.first_byte_us.into()));
        let end = End {
            status: if answered { ended.status } else { CLIENT_GONE },
            content: PassedContent { first_byte, ..PassedContent::plain(ended.content_bytes) },
            hit: None,
            complete: ended.complete,
            handed_off: true,
            refused: None,
        };
        self.close(worker, accepted, backend, end);
    }

    /// Ends the request as failed: the agent is gone, or has lost the connection. `refused` says why, unless the client may
    /// still get its answer.
    pub(super) fn lose(
        self,
        worker: &Worker,
        accepted: &Accepted,
        backend: &Arc<Backend>,
        refused: Option<RefusalReason>,
    ) {
        worker.count_refusal(refused, &accepted.peer_text, Some(self.head.line.of(&self.head_bytes)));
        self.close(worker, accepted, backend, End { handed_off: true, refused, ..End::unanswered(502) });
    }

    fn close(mut self, worker: &Worker, accepted: &Accepted, backend: &Arc<Backend>, end: End) {
        self.account.backend = Some(Arc::clone(backend));
        self.account.end(worker, accepted, (&self.head, &self.head_bytes), end);
    }
}
