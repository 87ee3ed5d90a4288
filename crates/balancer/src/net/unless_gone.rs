//! Waiting on behalf of a client that may go meanwhile.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::halves::{Halves, Input as _};

/// What was waited for; `None` when the client has gone first: its connection was reset, or its stream cancelled. One that only ended
/// its side still waits for the answer, and one that has sent more is looked at no further.
pub(crate) async fn unless_gone<C: Halves, T>(client: &mut C, awaited: impl Future<Output = T>) -> Option<T> {
    let Ok((mut input, _)) = client.halves() else { return None };
    let mut awaited = pin!(awaited);
    let mut watched = true;
    poll_fn(|cx| {
        if let Poll::Ready(done) = awaited.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        if input.poll_cancelled(cx).is_ready() || watched && input.is_reset(cx, &mut watched) {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}
