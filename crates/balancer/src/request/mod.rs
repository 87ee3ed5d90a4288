//! A request from its head to its record: chooses back-ends and tries them until one answers, independent of
//! the request's source and the mechanism.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use plimsoll_policy::BackendId;

use crate::account::{AdmissionResult, End};
use crate::backend_pool::BackendPool;
use crate::http::{Framing, RequestRefusal};
use crate::mechanism::carry::{Answered, Carried, ClientRequest, Failure, Mechanism};
use crate::net::halves::ClientIo;
use crate::net::unless_gone::unless_gone;
use crate::observe::CLIENT_GONE;
use crate::passed_content::PassedContent;
use crate::refusal_reason::RefusalReason;
use crate::sessions;

const NOT_PASSED_ON: &str = "the back-end's answer cannot be passed on";
pub(crate) const STOPPING: RequestRefusal =
    RequestRefusal::of(503, "the front-end stops").because(RefusalReason::Stopping);
const UNAVAILABLE: RequestRefusal = RequestRefusal::of(503, "no back-end can take the request now");

/// What the connection must do when a request has ended.
pub(crate) enum Ended<P> {
    /// Nothing: it got a response.
    Answered {
        /// Whether its connection stays usable.
        keep: bool,
    },
    /// It gets this answer, perhaps with the seconds after which to try again.
    Refused(RequestRefusal, Option<u32>),
    /// Its connection is cut, so that it does not take what came for a whole response.
    Cut,
    /// Its connection leaves, with this.
    Leaves(P),
}

/// Carries a request to a back-end, and to another one while that fails and the request may be repeated.
/// Records it.
pub(crate) async fn answer<M: Mechanism, C: ClientIo>(
    mechanism: &M,
    request: &mut ClientRequest<'_, C>,
) -> Ended<M::Parcel> {
    // A body cannot be read a second time.
    request.repeatable = request.head.is_safe && request.head.framing == Framing::None;
    match until_stopped(mechanism, request).await {
        Outcome::Leaves(parcel) => Ended::Leaves(parcel),
        Outcome::Answered(answered) => {
            let end = End {
                status: answered.head.status,
                content: answered.content,
                hit: answered.head.hit,
                complete: true,
                handed_off: false,
                refused: None,
            };
            close(request, end);
            Ended::Answered { keep: answered.keep_client }
        }
        Outcome::Refused(refusal, retry_after_s) => {
            close(request, End::refused(&refusal, request.head.is_head));
            Ended::Refused(refusal, retry_after_s)
        }
        Outcome::Cut { status, content, refused } => {
            close(request, End { content, refused, ..End::unanswered(status) });
            Ended::Cut
        }
    }
}

/// The result of a request.
enum Outcome<P> {
    Answered(Answered),
    Leaves(P),
    Refused(RequestRefusal, Option<u32>),
    Cut { status: u16, content: PassedContent, refused: Option<RefusalReason> },
}

fn close<C>(request: &mut ClientRequest<'_, C>, end: End) {
    let account = request.account.take();
    let line = request.head.line.of(&request.scratch.head);
    let of_answer = matches!(end.refused, Some(RefusalReason::BadResponse | RefusalReason::ResponseLimit));
    let fault = account.fault.filter(|_| of_answer);
    let fault = fault.and_then(|why| Some((&*account.backend.as_ref()?.name, why)));
    request.worker.count_fault(end.refused, &request.accepted.peer_text, Some(line), fault);
    account.end(request.worker, request.accepted, (request.head, &request.scratch.head), end);
}

/// Tries back-ends until one answers, or the front-end does not wait any longer: for room, a connection or an answer.
async fn until_stopped<M: Mechanism, C: ClientIo>(
    mechanism: &M,
    request: &mut ClientRequest<'_, C>,
) -> Outcome<M::Parcel> {
    let deadline = request.deadline;
    let mut trying = pin!(try_backends(mechanism, request));
    poll_fn(|cx| match trying.as_mut().poll(cx) {
        Poll::Pending if deadline.is_stopped(cx) => Poll::Ready(Outcome::Refused(STOPPING, None)),
        polled => polled,
    })
    .await
}

async fn try_backends<M: Mechanism, C: ClientIo>(
    mechanism: &M,
    request: &mut ClientRequest<'_, C>,
) -> Outcome<M::Parcel> {
    loop {
        let chosen = match choose(request).await {
            Ok(chosen) => chosen,
            Err(Some(reason)) => return unavailable(request, reason),
            Err(None) => return failed(&Failure::ClientGone),
        };
        request.more = request.account.attempts <= request.config.limits.retries;
        request.account.backend =
            request.worker.shared.in_pool(request.head.pool, |pool| pool.backend(chosen)).flatten();
        let failure = match mechanism.carry(request).await {
            Carried::Answered(answered) => return Outcome::Answered(answered),
            Carried::Leaves(parcel) => return Outcome::Leaves(parcel),
            Carried::Declined => return unavailable(request, RefusalReason::NotHandedOff),
            Carried::Failed(failure) => failure,
        };
        let account = &mut request.account;
        let again = account.failed == Some(chosen);
        let (on_trial, sent) = (account.is_on_trial(), account.began());
        account.lose(!matches!(failure, Failure::Stale), failure.trial_end());
        if let Some(backend) = &account.backend {
            if failure.is_by_backend() {
                request.worker.attempt_failed(backend, sent);
            }
            if let Failure::BadResponse(why) | Failure::OverLimit(why) = failure {
                // The log tells refusals at a bounded rate; whoever looks for a fault may want each of them.
                let line = request.head.line.of(&request.scratch.head).escape_ascii();
                tracing::debug!(backend = &*backend.name, request = %line, why, "a response was not passed on");
                account.fault = Some(why);
            }
        }
        if let (Failure::Unreachable(error), Some(backend)) = (&failure, &account.backend) {
            request.worker.connect_failed(backend, sent, error, again);
        }
        if !goes_on(request, &failure, on_trial) {
            return match failure {
                Failure::NoPlace | Failure::Unreachable(_) => unavailable(request, unplaced(&failure)),
                failure => failed(&failure),
            };
        }
        // It is chosen again if its connection was only stale, or if no other one takes requests. If it then refuses a
        // connection, it is taken for down.
        if !matches!(failure, Failure::NoPlace) {
            request.account.failed = Some(chosen);
        }
    }
}

/// Whether a request that failed so is sent to another back-end: where it may be repeated, and there may be a retry.
fn goes_on<C>(request: &ClientRequest<'_, C>, failure: &Failure, on_trial: bool) -> bool {
    let may = match failure {
        Failure::NotSent => true,
        Failure::NoPlace | Failure::Unreachable(_) => request.more,
        Failure::Stale | Failure::Lost | Failure::BackendDown => request.repeatable && request.more,
        // Without the trial another back-end would have had it. The client has got nothing of these answers.
        Failure::TimedOut | Failure::BadResponse(_) | Failure::OverLimit(_) => {
            on_trial && request.repeatable && request.more
        }
        _ => false,
    };
    // What no back-end has begun with is no load, and a trial is of our own making.
    let is_free =
        matches!(failure, Failure::Stale | Failure::NotSent | Failure::NoPlace | Failure::Unreachable(_));
    let take = |pool: &Arc<BackendPool>| match (on_trial, is_free) {
        // A trial was not counted as an assignment.
        (true, _) => true,
        (false, true) => {
            pool.retries_free();
            true
        }
        (false, false) => pool.may_retry(),
    };
    may && request.worker.shared.in_pool(request.head.pool, take).unwrap_or(on_trial || is_free)
}

/// Why there is no connection to a back-end.
fn unplaced(failure: &Failure) -> RefusalReason {
    match failure {
        Failure::NoPlace => RefusalReason::BackendConnections,
        _ => RefusalReason::BackendUnreachable,
    }
}

fn unavailable<P, C>(request: &ClientRequest<'_, C>, reason: RefusalReason) -> Outcome<P> {
    Outcome::Refused(UNAVAILABLE.because(reason), Some(request.config.admission.retry_after_s))
}

/// The back-end that was chosen before, or one that is chosen now, after a wait where the admission limit asks for one.
///
/// # Errors
/// Why there is none; `None` when the client has gone.
async fn choose<C: ClientIo>(request: &mut ClientRequest<'_, C>) -> Result<BackendId, Option<RefusalReason>> {
    let account = &mut request.account;
    let sticky = request.config.sticky.as_ref();
    if let Some(sticky) = sticky
        && account.attempts == 0
    {
        account.session = request.head.session.or_else(|| sessions::told(&request.scratch.head, sticky));
    }
    // Neither a session is sent elsewhere to try whether a back-end answers, nor does one begin there: it would move at once.
    if request.repeatable && sticky.is_none() && account.attempts == 0 && request.config.limits.retries > 0 {
        account.try_ejected(request.worker, request.head);
    }
    if account.chosen().is_none() {
        match account.offer(request.worker, request.head, request.accepted, sticky) {
            AdmissionResult::Assigned => {}
            AdmissionResult::Refused(reason) => return Err(Some(reason)),
            AdmissionResult::Waits(ticket) => {
                // Not the deadline of the connection: that one may be late by more than this wait is long.
                let wait = account.wait(ticket, request.config.admission.queue_timeout);
                unless_gone(&mut *request.stream, wait).await.ok_or(None)??;
            }
        }
    }
    account.chosen().ok_or(Some(RefusalReason::Policy))
}

/// What the client gets after a failure that is not repeated elsewhere.
fn failed<P>(failure: &Failure) -> Outcome<P> {
    let refused =
        |status, reason, why| Outcome::Refused(RequestRefusal::of(status, why).because(reason), None);
    match *failure {
        Failure::NoPlace | Failure::Unreachable(_) | Failure::NotSent => {
            Outcome::Refused(UNAVAILABLE.because(unplaced(failure)), None)
        }
        Failure::Stale | Failure::Lost | Failure::NotProcessed | Failure::LostPatience => {
            refused(502, RefusalReason::BackendClosed, "the back-end closed the connection without an answer")
        }
        Failure::BackendDown => refused(502, RefusalReason::BackendDown, "the back-end failed"),
        Failure::TimedOut => refused(504, RefusalReason::BackendTimeout, "the back-end took too long"),
        Failure::BadResponse(_) => refused(502, RefusalReason::BadResponse, NOT_PASSED_ON),
        Failure::OverLimit(_) => refused(502, RefusalReason::ResponseLimit, NOT_PASSED_ON),
        Failure::BadRequest(refusal) => Outcome::Refused(refusal, None),
        Failure::Stopped => Outcome::Refused(STOPPING, None),
        Failure::StoppedAnswering { status, content } => {
            Outcome::Cut { status, content, refused: Some(RefusalReason::Stopping) }
        }
        Failure::ClientGone => {
            Outcome::Cut { status: CLIENT_GONE, content: PassedContent::default(), refused: None }
        }
        Failure::ClientLeft { content } => Outcome::Cut { status: CLIENT_GONE, content, refused: None },
        Failure::ClientTimeout { content } => {
            let refused = Some(RefusalReason::ClientTimeout);
            Outcome::Cut { status: CLIENT_GONE, content, refused }
        }
        Failure::Broken { status, content, .. } => {
            Outcome::Cut { status, content, refused: Some(RefusalReason::ResponseCut) }
        }
    }
}
