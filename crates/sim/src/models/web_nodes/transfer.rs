//! A request on its way through the nodes.

use plimsoll_policy::{Kind, Nanos};

use crate::model::JobId;
use crate::workload::SimRequest;

/// Where a document comes from that is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DocumentSource {
    #[default]
    FileServer,
    /// The memory of this node.
    Peer(u16),
}

/// A piece of work for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkStep {
    /// The request is read, and the socket sent away if another node is to answer.
    Parse,
    MakeClone,
    /// The messages to another node that has the document.
    AskPeer,
    /// The file server looks for a document, or sends a chunk of it.
    Read,
    /// The CPU of another node sends a chunk.
    PeerSend,
    /// Its interface does.
    PeerOut,
    /// A chunk comes in.
    FetchIn,
    /// The CPU sends a chunk to the client.
    Send,
    /// The interface does.
    Out,
    /// Acknowledgments of the client; nobody waits for this.
    Acks,
}

/// See [`WorkStep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) job: JobId,
    /// Of the request, see [`Transfer::life`].
    pub(super) life: u32,
    pub(super) step: WorkStep,
    pub(super) bytes: u64,
}

impl Work {
    /// Another piece of work for the same request.
    pub(super) fn next(self, step: WorkStep, bytes: u64) -> Self {
        Self { step, bytes, ..self }
    }
}

/// The state of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Transfer {
    /// Changes when the request ends, is lost, or another one has its number: work of an earlier one is void.
    pub(super) life: u32,
    pub(super) target: u32,
    /// It is computed and not in any memory.
    pub(super) dynamic: bool,
    /// CPU time before the first chunk.
    pub(super) service: Nanos,
    /// What is to be sent.
    pub(super) bytes: u64,
    /// What is to be fetched where the document is not in memory.
    pub(super) size_bytes: u64,
    pub(super) server: u16,
    pub(super) accepted_by: u16,
    pub(super) source: DocumentSource,
    pub(super) fetched_bytes: u64,
    pub(super) sent_bytes: u64,
    /// A chunk is being sent.
    pub(super) sending: bool,
}

impl Transfer {
    /// A log may contain a response larger than the document's size.
    pub(super) fn new(
        request: &SimRequest,
        (server, accepted_by): (u16, u16),
        size_bytes: u64,
        life: u32,
    ) -> Self {
        Self {
            life,
            target: request.target,
            dynamic: request.kind == Kind::Dynamic,
            service: request.service,
            bytes: request.size_bytes,
            size_bytes: size_bytes.max(request.size_bytes),
            server,
            accepted_by,
            ..Self::default()
        }
    }

    /// Everything has been fetched and sent.
    pub(super) fn is_over(&self) -> bool {
        self.sent_bytes == self.bytes && self.fetched_bytes >= self.size_bytes
    }
}
