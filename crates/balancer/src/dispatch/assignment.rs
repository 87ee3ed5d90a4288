//! A request that a back-end has: ends exactly once, whatever happens.

use std::sync::Arc;

use plimsoll_policy::{BackendId, Ending};

use super::{Dispatch, Made, Reason};

/// A request assigned to a back-end. [`Assignment::complete`] reports its end; one that is dropped, because its client
/// or its back-end has gone, is reported as failed.
pub(crate) struct Assignment {
    dispatch: Arc<Dispatch>,
    made: Made,
    ended: bool,
}

impl Assignment {
    pub(super) fn new(dispatch: &Arc<Dispatch>, made: Made) -> Self {
        Self { dispatch: Arc::clone(dispatch), made, ended: false }
    }

    /// Who has the request.
    pub(crate) fn backend(&self) -> BackendId {
        self.made.assigned.backend
    }

    /// Why this back-end.
    pub(crate) fn reason(&self) -> Reason {
        self.made.reason
    }

    /// Bytes of the response, if one to this target has been seen before.
    pub(crate) fn expected_bytes(&self) -> Option<u64> {
        self.made.size_bytes
    }

    /// The request was answered. `size_bytes` is the size of the whole representation, where the response told: not of an answer
    /// without a body or with part of one.
    pub(crate) fn complete(mut self, size_bytes: Option<u64>) {
        self.ended = true;
        self.dispatch.end(&self.made, Ending::answered(size_bytes));
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        if !self.ended {
            self.dispatch.end(&self.made, Ending::FAILED);
        }
    }
}
