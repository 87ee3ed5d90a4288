//! When connections of a node are closed, and what becomes of them.

use std::cell::Cell;

use super::super::closing::Closing;
use super::shared::{CloneShared, NodePhase};

/// Closes connections once the node stops.
pub(super) struct NodeClosing<'a> {
    shared: &'a CloneShared,
    heard: Cell<bool>,
}

impl<'a> NodeClosing<'a> {
    pub(super) fn new(shared: &'a CloneShared) -> Self {
        Self { shared, heard: Cell::new(false) }
    }
}

impl Closing for NodeClosing<'_> {
    fn is_closing(&self) -> bool {
        self.shared.is_stopping()
    }

    /// Once.
    async fn woken(&self) {
        if self.heard.get() {
            std::future::pending::<()>().await;
        }
        let _ = self.shared.phase.subscribe().wait_for(|phase| *phase != NodePhase::Running).await;
        self.heard.set(true);
    }
}

/// What becomes of a connection.
pub(super) enum OriginalEnd {
    /// It is closed in good order.
    Close,
    /// It is reset.
    Abort,
    /// It is gone already.
    Gone,
}

/// The target of the request whose head begins `input`: the second word of its first line.
pub(super) fn target_of(input: &[u8]) -> &[u8] {
    let line = input.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::target_of;

    #[test]
    fn targets() {
        assert_eq!(target_of(b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n"), b"/a?b");
        assert_eq!(target_of(b"GET"), b"");
        assert_eq!(target_of(b""), b"");
    }
}
