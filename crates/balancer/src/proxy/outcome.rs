//! What became of a request, and what was tried for it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_policy::BackendId;

use super::pass::{Answered, Failure};
use crate::backend::Backend;
use crate::dispatch::{Assignment, Reason};
use crate::handoff::Link;
use crate::http::Refusal;

/// The status that logs show where nobody was left to be answered, as nginx has it.
pub(crate) const CLIENT_GONE: u16 = 499;

/// What the client gets when no back-end answered, and whether the failure is the front-end's fault.
pub(super) enum Outcome {
    Answered(Answered),
    /// The back-end is to get the connection itself.
    HandOff(Assignment, Rc<Link>),
    Refused(Refusal, Option<u32>),
    Cut {
        status: u16,
        content_bytes: u64,
    },
}

/// What has been tried for a request.
#[derive(Default)]
pub(super) struct Tried {
    pub(super) attempts: u32,
    pub(super) waited: bool,
    pub(super) failed: Option<BackendId>,
    pub(super) backend: Option<Arc<Backend>>,
    pub(super) reason: Option<Reason>,
}

/// What the client gets after a failure that is not repeated elsewhere.
pub(super) fn failed(failure: Failure) -> Outcome {
    let refused = |status, why| Outcome::Refused(Refusal::of(status, why), None);
    match failure {
        Failure::Lost => refused(502, "the back-end closed the connection without an answer"),
        Failure::BackendDown => refused(502, "the back-end failed"),
        Failure::TimedOut => refused(504, "the back-end took too long"),
        Failure::BadResponse(why) => {
            tracing::warn!(why, "a response was not passed on");
            refused(502, "the back-end's answer cannot be passed on")
        }
        Failure::BadRequest(refusal) => Outcome::Refused(refusal, None),
        Failure::ClientGone => Outcome::Cut { status: CLIENT_GONE, content_bytes: 0 },
        Failure::Broken { status, content_bytes } => Outcome::Cut { status, content_bytes },
    }
}
