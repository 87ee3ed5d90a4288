//! The account of a request until it ends: its back-end, attempts and times. Admission, completion and
//! records are here for all sources of requests and all mechanisms.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_config::StickyConfig;
use plimsoll_policy::{BackendId, Tried};

use crate::accepted::{Accepted, GivenRequest};
use crate::backend::Backend;
use crate::backend_pool::FIRST_POOL;
use crate::dispatch::{Assignment, Offer, OfferedRequest, Ticket};
use crate::ejection::TrialEnd;
use crate::http::RequestRefusal;
use crate::http::request::RequestHead;
use crate::observe::RequestRecord;
use crate::passed_content::PassedContent;
use crate::refusal_reason::RefusalReason;
use crate::stalling::Stalling;
use crate::trial::BackendTrial;
use crate::worker::Worker;
use plimsoll_observe::Reason;
use plimsoll_observe::line::Times;

/// The account of one request. [`Account::end`] ends it; a dropped one counts as failed and leaves no record.
pub(crate) struct Account {
    /// When the head was there.
    received: Instant,
    /// The name of the route that has taken it.
    route: Option<Arc<str>>,
    /// When the back-end was chosen.
    assigned: Option<Instant>,
    /// Back-ends that were tried.
    pub(crate) attempts: u32,
    /// Whether it waited for room under the admission limit.
    waited: bool,
    /// The back-end that failed last.
    pub(crate) failed: Option<BackendId>,
    /// The back-ends that failed it. None of them is chosen again while another one takes requests.
    tried: Tried,
    /// The back-end that is tried, or was last.
    pub(crate) backend: Option<Arc<Backend>>,
    reason: Option<Reason>,
    /// What was wrong with the last answer that could not be passed on.
    pub(crate) fault: Option<&'static str>,
    assignment: Option<Assignment>,
    /// What its cookie says of its session.
    pub(crate) session: Option<u64>,
    /// Set while it tries whether a back-end answers.
    trial: Option<BackendTrial>,
}

/// The result of asking for a back-end.
pub(crate) enum AdmissionResult {
    /// It has one.
    Assigned,
    /// It waits for room, or for answers of back-ends.
    Waits(Ticket),
    /// No back-end takes it.
    Refused(RefusalReason),
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// Status of the answer; 499 when the client did not wait for it.
    pub(crate) status: u16,
    /// What the client got of the content.
    pub(crate) content: PassedContent,
    /// Whether the back-end had the content in its cache, where it told.
    pub(crate) hit: Option<bool>,
    /// Whether the back-end answered to the end.
    pub(crate) complete: bool,
    /// Whether the back-end had the client's connection and answered itself.
    pub(crate) handed_off: bool,
    /// Why the front-end refused it, if it did.
    pub(crate) refused: Option<RefusalReason>,
}

impl End {
    /// Answered by the front-end itself.
    pub(crate) fn refused(refusal: &RequestRefusal, to_head: bool) -> Self {
        let client_bytes = refusal.content_bytes(to_head);
        let content = PassedContent { client_bytes, ..PassedContent::default() };
        Self { content, refused: refusal.reason, ..Self::unanswered(refusal.status) }
    }

    /// Without an answer of a back-end.
    pub(crate) fn unanswered(status: u16) -> Self {
        Self {
            status,
            content: PassedContent::default(),
            hit: None,
            complete: false,
            handed_off: false,
            refused: None,
        }
    }
}

impl Account {
    /// Of a request whose head was there at this time.
    pub(crate) fn new(received: Instant) -> Self {
        Self {
            received,
            route: None,
            assigned: None,
            attempts: 0,
            waited: false,
            failed: None,
            tried: Tried::NONE,
            backend: None,
            reason: None,
            fault: None,
            assignment: None,
            session: None,
            trial: None,
        }
    }

    /// Taken by a route that has this name.
    pub(crate) fn by_route(self, route: Option<Arc<str>>) -> Self {
        Self { route, ..self }
    }

    /// Sends a request that can be repeated elsewhere to a back-end on trial, where one is due for it.
    pub(crate) fn try_ejected(&mut self, worker: &Worker, head: &RequestHead) {
        let begun = worker.shared.in_pool(head.pool, |pool| {
            let trial = BackendTrial::begin(pool, head.partition)?;
            let assignment = pool.dispatch.assign_trial(head.partition, trial.backend.id, head.target);
            Some((trial, assignment))
        });
        if let Some((trial, assignment)) = begun.flatten() {
            self.assign(assignment);
            self.trial = Some(trial);
        }
    }

    /// Asks for a back-end.
    pub(crate) fn offer(
        &mut self,
        worker: &Worker,
        head: &RequestHead,
        accepted: &Accepted,
        sticky: Option<&StickyConfig>,
    ) -> AdmissionResult {
        let mut request = OfferedRequest {
            target: head.target,
            kind: head.kind,
            client: accepted.client,
            class: head.class.number,
            session: None,
        };
        // Agents tell loads of the first pool alone.
        let asks = worker.asks().filter(|_| head.pool == FIRST_POOL);
        let offered = worker.shared.in_pool(head.pool, |pool| {
            if let (Some(token), Some(sticky)) = (self.session, sticky) {
                request.session = pool.session_backend(token, sticky);
            }
            pool.dispatch.offer_again(head.partition, request, self.tried, asks)
        });
        // A reload has removed the pool.
        let Some(offered) = offered else { return AdmissionResult::Refused(RefusalReason::NoBackend) };
        match offered {
            Offer::Assigned(assignment) => {
                self.assign(assignment);
                AdmissionResult::Assigned
            }
            Offer::Waits(ticket) => {
                self.waited = true;
                AdmissionResult::Waits(ticket)
            }
            Offer::Polls(ticket) => AdmissionResult::Waits(ticket),
            Offer::Refused(reason) => AdmissionResult::Refused(reason),
        }
    }

    /// Waits for a back-end for at most this long, and briefly where that is no use.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn wait(&mut self, mut ticket: Ticket, at_most: Duration) -> Result<(), RefusalReason> {
        let at_most = ticket.patience(at_most);
        let wait = std::future::poll_fn(|cx| ticket.poll(cx));
        match tokio::time::timeout(at_most, wait).await {
            Ok(Ok(assignment)) => {
                self.assign(assignment);
                Ok(())
            }
            Ok(Err(reason)) => Err(reason),
            Err(_) => Err(ticket.refusal()),
        }
    }

    /// A back-end has been chosen.
    pub(crate) fn assign(&mut self, assignment: Assignment) {
        self.attempts += 1;
        self.reason = Some(assignment.reason());
        self.assigned = Some(Instant::now());
        self.assignment = Some(assignment);
    }

    /// The back-end of its connection has it, chosen or not; at another one that was chosen it counts as failed. `None` where
    /// that back-end is gone and another one has its index, so that nothing counts its load.
    pub(crate) fn stays(&mut self, assignment: Option<Assignment>) {
        self.attempts = self.attempts.max(1);
        self.reason = Some(Reason::Stays);
        self.assigned.get_or_insert_with(Instant::now);
        self.assignment = assignment;
    }

    /// The back-end that has been chosen.
    pub(crate) fn chosen(&self) -> Option<BackendId> {
        self.assignment.as_ref().map(Assignment::backend)
    }

    /// Whether it tries an ejected back-end, and has not heard of it yet.
    pub(crate) fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// What tells dispatch when only the client is waited for, and the trial, which ends once the back-end has answered.
    pub(crate) fn stalling_and_trial(&mut self) -> (Stalling<'_>, &mut Option<BackendTrial>) {
        (Stalling::new(self.assignment.as_mut()), &mut self.trial)
    }

    /// When the back-end was chosen; before that, when the head was there.
    pub(crate) fn began(&self) -> Instant {
        self.assigned.unwrap_or(self.received)
    }

    /// Bytes of the response, if one to this target has been seen before.
    pub(crate) fn expected_bytes(&self) -> Option<u64> {
        self.assignment.as_ref()?.expected_bytes()
    }

    /// Takes the account and leaves a fresh one.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.received))
    }

    /// What a request takes with it that continues under another account; `None` where no back-end was chosen, and none has failed.
    pub(crate) fn give(self) -> Option<Box<GivenRequest>> {
        let Self { assignment, attempts, tried, .. } = self;
        let is_known = assignment.is_some() || tried != Tried::NONE;
        is_known.then(|| Box::new(GivenRequest { assignment, attempts, tried }))
    }

    /// Continues a request that began under another account.
    pub(crate) fn take_over(&mut self, given: GivenRequest) {
        if let Some(assignment) = given.assignment {
            self.assign(assignment);
        }
        (self.attempts, self.tried) = (given.attempts, given.tried);
    }

    /// The chosen back-end does not answer: the request counts as failed there. With `excluded`, it is not chosen again for
    /// this request while another one takes requests. If it was on trial, that has ended so.
    pub(crate) fn lose(&mut self, excluded: bool, trial_end: TrialEnd) {
        if let Some(trial) = self.trial.take() {
            trial.end(trial_end);
        }
        let lost = self.assignment.take();
        if let Some(lost) = lost.filter(|_| excluded) {
            self.tried.push(lost.backend());
        }
    }

    /// Completes the assignment and writes the request's record.
    pub(crate) fn end(
        self,
        worker: &Worker,
        accepted: &Accepted,
        (head, head_bytes): (&RequestHead, &[u8]),
        end: End,
    ) {
        // Answers without the document, such as errors, are no hits and no misses of it.
        let hit = end.hit.filter(|_| head.is_get && matches!(end.status, 200 | 206));
        if let Some(assignment) = self.assignment
            && end.complete
        {
            if let Some(trial) = self.trial {
                trial.end(TrialEnd::Answered);
            }
            let whole = head.is_get && end.status == 200;
            // What is compressed on the way is no smaller for a back-end.
            assignment.complete(whole.then_some(end.content.original_bytes), hit);
        }
        worker.observe(&RequestRecord {
            peer: &accepted.peer_text,
            head: Some(head),
            raw_line: None,
            route: self.route.as_deref(),
            head_bytes,
            status: end.status,
            content_bytes: end.content.client_bytes,
            coded: end.content.coding.map(|coding| (coding, end.content.original_bytes)),
            hit,
            backend: self.backend.as_deref(),
            reason: self.reason,
            refused: end.refused,
            handed_off: end.handed_off,
            attempts: self.attempts,
            waited: self.waited,
            times: Times {
                received: self.received,
                assigned: self.assigned,
                first_byte: end.content.first_byte,
            },
        });
    }
}
