//! A back-end as dispatch knows it.

use std::sync::Arc;

use plimsoll_config::{BackendConfig, BackendName};
use plimsoll_policy::{BackendId, Cluster, TargetId};

/// A back-end as dispatch knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) id: BackendId,
    pub(crate) name: BackendName,
    pub(crate) key: u64,
}

impl Member {
    /// Adds a configured back-end to a cluster that no policy has seen.
    pub(super) fn join(cluster: &mut Cluster, config: &BackendConfig) -> Self {
        let key = key_of(&config.name);
        Self { id: cluster.join(config.weight, key), name: Arc::clone(&config.name), key }
    }
}

/// The identity of a back-end for policies that hash: depends on its name alone.
pub(super) fn key_of(name: &str) -> u64 {
    TargetId::from_key(name.as_bytes()).0
}
