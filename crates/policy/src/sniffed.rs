//! What a layer-4 front-end sees pass on a connection whose back-end it has already chosen, and what it measures of back-ends.

use crate::cluster::BackendId;
use crate::request::TargetId;
use crate::time::Nanos;

/// What a packet of a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SniffedKind {
    /// A connection to be opened or closed: a packet with SYN, FIN or RST.
    Connection,
    /// A stored document.
    Static,
    /// Computed on demand; [`SniffedRequest::class`] says at which cost.
    Dynamic,
    /// A document that the client has already, unchanged: the answer is 304.
    Conditional,
    /// Something that is not there: the answer is an error.
    Invalid,
}

/// A request that passed a layer-4 front-end on its way to a back-end. Hyun et al., section 3.2, call it a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SniffedRequest {
    /// The back-end of its connection.
    pub backend: BackendId,
    /// What it asks for.
    pub kind: SniffedKind,
    /// The document; of meaning for [`SniffedKind::Static`] alone.
    pub target: TargetId,
    /// Class of content; 0 for none.
    pub class: u16,
    /// Size of the document in bytes, where it is known.
    pub size_bytes: Option<u64>,
    /// Round-trip time of the connection; zero where it is not known.
    pub round_trip: Nanos,
}

/// What is measured at a back-end, and from outside of it, once in a period.
///
/// Source: Hyun et al., section 4.1: the forward metric and the four host metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostMetrics {
    /// Whose they are.
    pub backend: BackendId,
    /// How long the back-end took to answer a small request. An outstanding one counts with its age. `None` where nobody asks.
    pub probe_time: Option<Nanos>,
    /// Connections that wait to be accepted.
    pub pending: u32,
    /// Processes that wait for the disk.
    pub at_disk: u32,
    /// Processes that answer requests for stored documents, without those that wait for the disk.
    pub serving_static: u32,
    /// Processes that compute answers.
    pub serving_dynamic: u32,
}
