//! The way to the thread that asks other nodes for their loads.

use plimsoll_policy::Candidates;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// Whom to ask, and where to say who has told a load.
pub(super) struct PollAsked {
    pub(super) nodes: Candidates,
    pub(super) heard: Option<oneshot::Sender<Candidates>>,
}

/// The way to the thread that asks; none where nobody is asked.
#[derive(Default)]
pub(super) struct AsksNodes(Option<UnboundedSender<PollAsked>>);

impl AsksNodes {
    /// With the other end, for the thread that asks.
    pub(super) fn new() -> (Self, UnboundedReceiver<PollAsked>) {
        let (sender, asked) = unbounded_channel();
        (Self(Some(sender)), asked)
    }

    /// Whether nodes can be asked.
    pub(super) fn can_ask(&self) -> bool {
        self.0.is_some()
    }

    /// Asks these, and returns those of them that have told a load in time; the mapping knows it then.
    pub(super) async fn poll(&self, nodes: Candidates) -> Candidates {
        let (heard, hear) = oneshot::channel();
        if let Some(asks) = &self.0 {
            let _ = asks.send(PollAsked { nodes, heard: Some(heard) });
        }
        // Dropped unheard when the thread has ended.
        hear.await.unwrap_or(Candidates::NONE)
    }

    /// Asks these for nobody.
    pub(super) fn probe(&self, nodes: Candidates) {
        if let Some(asks) = &self.0
            && !nodes.as_slice().is_empty()
        {
            let _ = asks.send(PollAsked { nodes, heard: None });
        }
    }
}
