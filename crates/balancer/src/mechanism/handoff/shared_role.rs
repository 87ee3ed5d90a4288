//! The role of this front-end, which all workers share.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_config::FailoverConfig;
use tokio::sync::watch;

use super::role::{FailoverRole, RoleState};

/// The role, and what it depends on.
#[derive(Debug)]
pub(super) struct SharedRole {
    /// The virtual address that decides.
    pub(super) address: IpAddr,
    /// How long packets of unknown connections are held at most.
    pub(super) settle_timeout: Duration,
    state: Mutex<RoleState>,
    role: watch::Sender<FailoverRole>,
}

impl SharedRole {
    /// Of the process with this number: a standby, until it has the address.
    pub(super) fn new(config: &FailoverConfig, instance: u64) -> Self {
        Self {
            address: config.address,
            settle_timeout: config.settle_timeout,
            state: Mutex::new(RoleState::new(instance)),
            role: watch::Sender::new(FailoverRole::Standby),
        }
    }

    /// The role now.
    pub(super) fn role(&self) -> FailoverRole {
        *self.role.borrow()
    }

    /// Hears of all that follow the last one.
    pub(super) fn subscribe(&self) -> watch::Receiver<FailoverRole> {
        self.role.subscribe()
    }

    /// Changes the role, if `change` returns true. Before others hear of it, `prepare` is called with the last role and the new
    /// one.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&mut RoleState) -> bool,
        prepare: impl FnOnce(FailoverRole, FailoverRole),
    ) {
        // Locked until all can hear of it, so that they hear of changes in their order.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.role();
        if change(&mut state) {
            let role = state.role();
            prepare(before, role);
            self.role.send_replace(role);
        }
    }
}
