//! Who chooses back-ends for connections, and counts these.

use plimsoll_datapath::switch::SwitchConn;
use plimsoll_policy::{BackendId, Outcome};

/// Chooses back-ends for connections and counts them. Each assignment that it gives ends exactly once: by
/// [`Distributor::withdraw`] or by [`Distributor::complete`].
pub trait Distributor {
    /// A choice, and then the connection that took it.
    type Assignment;

    /// Chooses for a connection that has not come yet; `None` while nobody can be chosen. The choice counts as load.
    fn prepare(&mut self) -> Option<Self::Assignment>;

    /// Who was chosen.
    fn backend(&self, assignment: &Self::Assignment) -> BackendId;

    /// This connection has taken the choice.
    fn take(&mut self, assignment: &mut Self::Assignment, conn: &SwitchConn);

    /// No connection will take the choice any more.
    fn withdraw(&mut self, assignment: Self::Assignment);

    /// Counts a connection that this back-end got without being chosen.
    fn stay(&mut self, backend: BackendId, conn: &SwitchConn) -> Self::Assignment;

    /// The connection is over: its client has ended it, or it is lost.
    fn complete(&mut self, assignment: Self::Assignment, outcome: Outcome);
}
