//! Faults of back-ends.

use plimsoll_policy::{Ending, Health};

use super::ApacheCluster;
use crate::config::{Fault, FaultAction};
use crate::models::apache::connections::{ConnectionRole, ConnectionStage};

impl ApacheCluster<'_> {
    pub(super) fn fault(&mut self, fault: Fault) {
        self.faults_left -= 1;
        let b = fault.backend;
        match fault.action {
            FaultAction::Speed(speed) => self.nodes[b.index()].slowness = 1.0 / speed,
            FaultAction::MemoryBytes(_) => {}
            FaultAction::Weight(weight) => self.core.set_weight(b, weight, self.now),
            FaultAction::Health(health) => {
                if health == Health::Down {
                    self.fail(b.0);
                }
                self.nodes[b.index()].down = health == Health::Down;
                self.core.set_health(b, health, self.now);
            }
        }
        self.start_waiting();
    }

    /// Back-end `b` fails: its connections are lost.
    fn fail(&mut self, b: u16) {
        self.connections.leave(b);
        for id in self.connections.of_backend(b) {
            let connection = *self.connections.get(id);
            if let ConnectionRole::Fetch(owner, generation) = connection.role {
                self.fetch_fails(owner, generation);
            }
            if let Some(assigned) = &connection.assigned {
                self.core.complete(assigned, Ending::FAILED, self.now);
                let answered = matches!(connection.stage, ConnectionStage::Kept | ConnectionStage::Closing);
                self.tally.lost += u64::from(!answered);
            }
            self.forget(id);
        }
        self.load_changed(b);
        self.nodes[usize::from(b)].fail(&self.params, self.now);
    }
}
