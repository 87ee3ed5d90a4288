//! The flows of all workers: which worker has each, and which are leaving. One worker may lose a connection
//! that another adopts, and a client may reuse a port whose last connection another worker had.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_datapath::Flow;
use plimsoll_wire::message::Conn;

use super::leaving::Leaving;

/// A connection of one of the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    /// The worker.
    pub(super) worker: usize,
    /// Its number for the connection.
    pub(super) conn: Conn,
}

/// Flows that lead to back-ends.
#[derive(Default)]
pub(super) struct Registry {
    owners: HashMap<Flow, Owner, FixedState>,
    pub(super) leaving: Leaving,
}

impl Registry {
    /// Gives a flow to a connection.
    pub(super) fn own(&mut self, flow: Flow, owner: Owner) {
        self.owners.insert(flow, owner);
    }

    /// Takes a flow from a connection that has ended or is elsewhere, unless another connection has it by now.
    pub(super) fn disown(&mut self, flow: &Flow, owner: Owner) {
        if self.owners.get(flow) == Some(&owner) {
            self.owners.remove(flow);
        }
    }

    /// Whether a connection has the flow.
    pub(super) fn is_owned(&self, flow: &Flow) -> bool {
        self.owners.contains_key(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_that_of_its_latest_connection() {
        let flow = Flow::new(([10, 0, 0, 9], 1).into(), ([10, 0, 0, 1], 80).into());
        let (old, new) = (Owner { worker: 0, conn: Conn(7) }, Owner { worker: 1, conn: Conn(7) });
        let mut registry = Registry::default();
        registry.own(flow, old);
        registry.own(flow, new);
        registry.disown(&flow, old);
        assert!(registry.is_owned(&flow));
        registry.disown(&flow, new);
        assert!(!registry.is_owned(&flow));
    }
}
