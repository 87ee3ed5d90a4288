//! The end of a link, and what becomes of its connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::{Flow, now_ns};
use tokio::task::spawn_local;

use super::connection::{Connection, Cut};
use super::link::FrontEndLink;
use super::shared::AgentShared;

/// Why a link is lost.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkEnd {
    /// Nothing was heard, or could be sent: the front-end's machine may be gone, or the way to it.
    #[error("{0}")]
    Silent(String),
    /// The front-end ended it, or broke the protocol.
    #[error("{0}")]
    Ended(String),
}

impl From<String> for LinkEnd {
    fn from(why: String) -> Self {
        Self::Ended(why)
    }
}

impl From<io::Error> for LinkEnd {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The kernel found nobody to send to.
            io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                Self::Silent(error.to_string())
            }
            _ => Self::Ended(error.to_string()),
        }
    }
}

/// Takes connections, and flows that were given back, from the link that had them. Returns the connections that go on, oldest first.
pub(super) fn detach(
    shared: &AgentShared,
    link: &FrontEndLink<Connection>,
    (mut connections, returned): (Vec<Arc<Connection>>, Vec<Flow>),
) -> Vec<Arc<Connection>> {
    connections.sort_unstable_by_key(|connection| connection.number);
    // Nobody will release them: packets of their clients are strays.
    returned.iter().for_each(|flow| shared.flows.unreturned(*flow));
    let mut confirmed = Vec::new();
    for connection in connections {
        match connection.unlink(link.number) {
            Some(lease_until_ns) => drop(spawn_local(forget_after(lease_until_ns, connection))),
            None => confirmed.push(connection),
        }
    }
    confirmed
}

/// Ends a connection whose lease was never confirmed, because the front-end may have taken it back.
async fn forget_after(lease_until_ns: u64, connection: Arc<Connection>) {
    /// An upper bound, however far off the lease's end is.
    const LONGEST: Duration = Duration::from_secs(60);
    let left = Duration::from_nanos(lease_until_ns.saturating_sub(now_ns())).min(LONGEST);
    tokio::time::sleep(left).await;
    tracing::debug!(flow = ?connection.flow, "a connection whose lease was not confirmed is forgotten");
    connection.cut(Cut::Silent);
}

/// Resets clients that acknowledge nothing when no front-end has taken their connections up again: their packets come by the
/// front-end, whose machine is gone, or the way to it. (If only its process is gone, its links end and are not silent, and its
/// kernel sends packets on.)
pub(super) async fn reset_stalled(shared: Arc<AgentShared>, connections: Vec<Arc<Connection>>) {
    let grace = shared.config.lost_grace;
    tokio::time::sleep(grace).await;
    let stalled = |connection: &&Arc<Connection>| {
        connection.is_orphan()
            && shared
                .queues
                .stalled_for(&connection.flow)
                .is_ok_and(|stalled| stalled.is_some_and(|t| t >= grace))
    };
    let stalled: Vec<_> = connections.iter().filter(stalled).collect();
    if !stalled.is_empty() {
        tracing::warn!(
            connections = stalled.len(),
            "clients of a front-end that cannot be reached are reset"
        );
    }
    stalled.into_iter().for_each(|connection| connection.cut(Cut::Reset));
}
