//! Membership: back-ends that join and leave, their health and weight.

use std::fmt;

use super::{Core, Witness};
use crate::cluster::{BackendId, Change, Cluster, Health};
use crate::time::Time;
use crate::weight::Weight;

/// No back-end can join: there are 65,535.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterFull;

impl fmt::Display for ClusterFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a cluster holds at most {} back-ends at once", Cluster::MOST)
    }
}

impl std::error::Error for ClusterFull {}

impl<W: Witness> Core<W> {
    /// Sets the health of a back-end and tells the policy. Changes nothing for one that has left.
    pub fn set_health(&mut self, b: BackendId, health: Health, now: Time) {
        if self.cluster.has_left(b) {
            return;
        }
        self.cluster.set_health(b, health);
        self.changed(b, Change::Health(health), now);
        self.witness.health(b, health, now);
    }

    /// Sets the weight of a back-end and tells the policy. Changes nothing for one that has left.
    pub fn set_weight(&mut self, b: BackendId, weight: Weight, now: Time) {
        if self.cluster.has_left(b) {
            return;
        }
        self.cluster.set_weight(b, weight);
        self.changed(b, Change::Weight(weight), now);
        self.witness.weight(b, weight, now);
    }

    /// Sets how many requests a back-end may have at once, `None` for as many as come. The policy is not told. Changes nothing for
    /// one that has left.
    pub fn set_most_requests(&mut self, b: BackendId, most: Option<u32>, now: Time) {
        if self.cluster.has_left(b) {
            return;
        }
        self.advance(now);
        self.cluster.set_most_requests(b, most);
        self.witness.most_requests(b, most, now);
    }

    /// Adds a back-end and tells the policy. The back-end reuses the index that has been free longest, or
    /// gets the next one. `key` identifies it to policies that hash; `name` is for the witness only.
    ///
    /// # Errors
    /// When there are 65,535 back-ends.
    pub fn join(
        &mut self,
        name: &str,
        key: u64,
        weight: Weight,
        now: Time,
    ) -> Result<BackendId, ClusterFull> {
        let b = self.cluster.try_join(weight, key).ok_or(ClusterFull)?;
        if let Some(growth) = &mut self.growth {
            growth.joined(b);
        }
        self.changed(b, Change::Joined, now);
        self.witness.joined(b, name, key, weight, now);
        Ok(b)
    }

    /// Removes a back-end that has no load and tells the policy, which forgets it. Returns whether it did.
    /// Another back-end may now get its index.
    pub fn leave(&mut self, b: BackendId, now: Time) -> bool {
        if self.cluster.has_left(b) || self.cluster.own_load(b) > 0 {
            return false;
        }
        if self.cluster.health(b) != Health::Down {
            self.set_health(b, Health::Down, now);
        }
        self.cluster.leave(b);
        self.changed(b, Change::Left, now);
        self.witness.left(b, now);
        true
    }

    fn changed(&mut self, b: BackendId, change: Change, now: Time) {
        self.advance(now);
        self.limit = self.admission.limit.requests(&self.cluster);
        self.policy.on_membership(b, change, &self.cluster, now);
    }
}
