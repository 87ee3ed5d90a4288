//! Flows of the forwarder that this front-end has not led itself, or not since it became active.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_datapath::{Flow, FlowEntry};

use super::numbers::Questions;
use super::registry::Registry;
use super::system::{System, new_instance};

impl System {
    /// This front-end becomes active: nothing that it knew of flows counts, until agents offer them.
    pub(super) fn begin_anew(&self) {
        match new_instance(&self.forwarder) {
            // What an earlier active time left is treated as what an earlier process left.
            Ok(mark) => self.mark.store(mark as u32 & 0xffff, Ordering::Relaxed),
            Err(error) => tracing::warn!(error, "the flows cannot be listed"),
        }
        self.let_go();
    }

    /// This front-end is active no longer: no client is to be reset for what it had.
    pub(super) fn let_go(&self) {
        self.offers.begin();
        *self.registry() = Registry::default();
        self.flows.store(0, Ordering::Relaxed);
    }

    /// A worker lets go of this flow. If the worker led it in the moment when a new active time began, nothing of that time has it: it
    /// is treated as what was left from before.
    pub(super) fn disclaim(&self, flow: &Flow) {
        let registry = self.registry();
        let ours = |entry: &FlowEntry| self.is_ours(entry.agent) && !registry.is_owned(flow);
        if !self.is_active() {
            return;
        }
        if let Some(entry) = self.entry(flow).filter(ours)
            && let Err(error) = self.forwarder.redirect(flow, &entry.next_hop, !entry.agent)
        {
            tracing::warn!(%error, client = %flow.client, "a connection cannot be forwarded");
        }
    }

    /// As a standby: forgets the flows whose clients have been quiet, as their packets come to another machine now. Returns whether
    /// none is left.
    pub(super) fn forget_quiet(&self, quiet: Duration) -> bool {
        let mut flows = Vec::new();
        let listed = self.forwarder.for_each(|flow, _| flows.push(flow));
        if let Err(error) = listed {
            tracing::warn!(%error, "the flows cannot be listed");
        }
        flows.retain(|flow| {
            // The address may come back meanwhile, and agents offer the connections again.
            let registry = self.registry();
            self.is_active() || registry.is_owned(flow) || !self.forget(flow, quiet)
        });
        flows.is_empty()
    }

    /// Flows that another process of this front-end left and that no agent has claimed yet.
    pub(super) fn left_over(&self) -> BTreeMap<Flow, FlowEntry> {
        let mut left = BTreeMap::new();
        let listed = self.forwarder.for_each(|flow, entry| {
            if !self.is_ours(entry.agent) {
                left.insert(flow, entry);
            }
        });
        if let Err(error) = listed {
            tracing::warn!(%error, "the flows cannot be listed");
        }
        left
    }

    /// Resets the client of a flow that another process left, and forgets the flow. While the client is asked for its numbers,
    /// the flow stays.
    pub(super) fn reset_left_over(&self, flow: &Flow, questions: &mut Questions) {
        // Locked until the end, so that no agent's offer comes in between.
        let registry = self.registry();
        let left = self.entry(flow).is_some_and(|entry| !self.is_ours(entry.agent));
        if !left || registry.is_owned(flow) {
            return;
        }
        if questions.go_on(self.reset(flow, None)) {
            return;
        }
        tracing::debug!(client = %flow.client, "a connection that an earlier process left is nobody's");
        self.unlead(flow);
    }
}
