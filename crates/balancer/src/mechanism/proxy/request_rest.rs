//! What is left of a request while its response is passed on.

use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::AsyncWrite;

use super::upload::{Upload, UploadFailed};
use crate::net::deadline::Deadline;
use crate::net::halves::Input;

/// What is left of the request, and goes on while the response is passed on.
pub(super) struct RequestRest<'a, 'u, I, O> {
    pub(super) upload: &'a mut Upload<'u, I, O>,
    /// Whether there is more to come.
    pub(super) open: bool,
    /// Whether what came is no body, so that no more is passed on.
    pub(super) spoilt: bool,
    pub(super) deadline: &'a Deadline,
    /// The time-out of one step.
    pub(super) step: Duration,
}

impl<I: Input, O: AsyncWrite + Unpin> RequestRest<'_, '_, I, O> {
    /// Moves it on; whether the client's side of it failed so that the exchange has to end. That a back-end takes no more of
    /// a request that it has answered is no failure.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.open {
            return false;
        }
        let before = self.upload.steps;
        let polled = self.upload.poll(cx);
        if self.upload.steps != before {
            self.deadline.set(self.step);
        }
        let Poll::Ready(result) = polled else { return false };
        self.open = false;
        self.spoilt = matches!(result, Err(UploadFailed::Refused(_)));
        matches!(result, Err(UploadFailed::ClientGone))
    }

    /// Whether the back-end may be waiting for more of the request, which does not come.
    pub(super) fn is_awaited(&self) -> bool {
        self.spoilt || (self.open && self.upload.waits_for_client)
    }
}
