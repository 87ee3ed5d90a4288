//! What there is to see of a mapping.

use plimsoll_policy::{Health, PolicyTable, TargetId};

use super::{Mapping, MappingCounts, NodePlace};

/// A node as the mapping sees it.
#[derive(Debug)]
pub(in super::super) struct NodeLook {
    pub(in super::super) name: String,
    pub(in super::super) here: bool,
    pub(in super::super) health: Health,
    /// Requests that this node has given to it and that have not ended.
    pub(in super::super) own_load: u32,
    /// The load that the policy sees.
    pub(in super::super) load: u32,
}

/// What the policy holds about a target.
#[derive(Debug)]
pub(in super::super) struct TargetLook {
    /// The names of its nodes.
    pub(in super::super) server_set: Vec<String>,
    pub(in super::super) known_size_bytes: Option<u64>,
    /// Whether it is so small that it is answered where it is asked for.
    pub(in super::super) is_small: bool,
}

/// The cluster and the policy.
#[derive(Debug)]
pub(in super::super) struct MappingLook {
    pub(in super::super) policy: &'static str,
    pub(in super::super) nodes: Vec<NodeLook>,
    pub(in super::super) counts: MappingCounts,
    pub(in super::super) tracked_targets: usize,
    /// Of these the ones for which it keeps assignments.
    pub(in super::super) assigned_targets: usize,
    pub(in super::super) stats: Vec<(&'static str, f64)>,
    pub(in super::super) tables: Vec<PolicyTable>,
}

impl Mapping {
    /// All that there is to see now.
    pub(in super::super) fn look(&self) -> MappingLook {
        let (inner, _) = self.inner();
        let view = inner.core.view();
        let nodes = view.ids().zip(&inner.nodes).map(|(b, (name, place))| NodeLook {
            name: name.clone(),
            here: *place == NodePlace::Here,
            health: view.health(b),
            own_load: view.own_load(b),
            load: view.load(b),
        });
        let policy = inner.core.policy();
        MappingLook {
            policy: self.policy,
            nodes: nodes.collect(),
            counts: inner.counts,
            tracked_targets: policy.tracked_targets(),
            assigned_targets: policy.assigned_targets(),
            stats: policy.stats(),
            tables: policy.tables(),
        }
    }

    /// What is held about a target.
    pub(in super::super) fn look_at(&self, target: &[u8]) -> TargetLook {
        let target = TargetId::from_key(target);
        let (inner, _) = self.inner();
        let set = inner.core.policy().server_set(target);
        let named = |b: &plimsoll_policy::BackendId| inner.nodes.get(b.index()).map(|(name, _)| name.clone());
        let known_size_bytes = inner.sizes_bytes.peek(target).copied();
        TargetLook {
            server_set: set.iter().filter_map(named).collect(),
            known_size_bytes,
            is_small: known_size_bytes.is_some_and(|bytes| bytes < self.min_bytes),
        }
    }

    /// Failures of the decision log: chunks that were lost, failures of the disk, and the latest of these; `None` without a log.
    pub(in super::super) fn log_state(&self) -> Option<(u64, u64, Option<String>)> {
        let log = self.log.as_ref()?;
        Some((log.dropped_chunks(), log.errors(), log.last_error()))
    }
}
