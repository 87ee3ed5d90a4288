//! What a source of membership says.

use std::net::SocketAddr;

use plimsoll_config::{BackendName, HostPort, ProxyProtocol};
use plimsoll_policy::Weight;

use crate::backend::LoadAt;
use crate::backend_address::BackendAddress;
use crate::host_names::UnresolvedHost;
use crate::net::backend_tls::BackendTls;
use crate::partitioning::PartitionSet;

/// A back-end as a source knows it, found by its name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemberSpec {
    pub(crate) name: BackendName,
    pub(crate) weight: Weight,
    /// Where it answers, or why that is not known: then it is down.
    pub(crate) address: Result<BackendAddress, UnresolvedHost>,
    /// How TLS is spoken to it, if it is.
    pub(crate) tls: Option<BackendTls>,
    /// Whether HTTP/2 is spoken to it.
    pub(crate) http2: bool,
    /// Whether it is told whose connections requests come on.
    pub(crate) proxy_protocol: ProxyProtocol,
    /// Where its agent takes handoffs.
    pub(crate) agent: Option<SocketAddr>,
    /// The name of its agent.
    pub(crate) agent_at: Option<HostPort>,
    /// Where its agent tells its load.
    pub(crate) load_at: LoadAt,
    /// `Host` of health checks, and the name of its address.
    pub(crate) authority: String,
    /// The parts of the data that it holds.
    pub(crate) partitions: PartitionSet,
    /// Connections that may be open to it at once.
    pub(crate) max_connections: u32,
    /// Requests that may wait for one of them at once.
    pub(crate) max_waiting: u32,
    /// Requests that may be under way at it at once, if there is a limit.
    pub(crate) max_requests: Option<u32>,
}

/// A change of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MembershipChange {
    /// A back-end joins, or comes back.
    Join(MemberSpec),
    /// A back-end is still there; what differs from what is known of it has changed.
    Change {
        /// As it is now.
        spec: MemberSpec,
        /// Whether the source has changed the weight: one that an operator has set stays otherwise.
        reweighted: bool,
    },
    /// A back-end takes nothing new, and leaves once it has finished what it has.
    Leave(BackendName),
}

/// Something that says who is in the cluster.
pub(crate) trait MembershipSource {
    /// What has changed since the last call, in the order in which it is to be carried out: nothing where nothing has.
    fn changes(&mut self) -> Vec<MembershipChange>;
}
