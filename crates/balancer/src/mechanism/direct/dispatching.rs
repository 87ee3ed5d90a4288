//! Dispatch as who decides about connections.

use std::sync::Arc;

use plimsoll_datapath::switch::SwitchConn;
use plimsoll_policy::{Assigned, BackendId, Outcome};
use plimsoll_switch::Distributor;

use crate::dispatch::Dispatch;
use crate::http::target_hash::TargetHash;

/// Chooses and counts by dispatch.
pub(super) struct Dispatching {
    pub(super) dispatch: Arc<Dispatch>,
    pub(super) hash: TargetHash,
}

impl Dispatching {
    /// The identity of the connection's client for policies.
    fn client(&self, conn: &SwitchConn) -> u64 {
        match conn.flow.client.ip() {
            std::net::IpAddr::V4(v4) => self.hash.target(&v4.octets()).0,
            std::net::IpAddr::V6(v6) => self.hash.target(&v6.octets()).0,
        }
    }
}

impl Distributor for Dispatching {
    type Assignment = Assigned;

    fn prepare(&mut self) -> Option<Assigned> {
        self.dispatch.choose_ahead()
    }

    fn backend(&self, assignment: &Assigned) -> BackendId {
        assignment.backend
    }

    fn take(&mut self, assignment: &mut Assigned, conn: &SwitchConn) {
        let client = self.client(conn);
        self.dispatch.take_ahead(assignment, client);
    }

    fn withdraw(&mut self, assignment: Assigned) {
        self.dispatch.withdraw_ahead(assignment);
    }

    fn stay(&mut self, backend: BackendId, _: &SwitchConn) -> Assigned {
        self.dispatch.count_ahead(backend)
    }

    fn complete(&mut self, assignment: Assigned, outcome: Outcome) {
        self.dispatch.end_ahead(&assignment, outcome);
    }
}
