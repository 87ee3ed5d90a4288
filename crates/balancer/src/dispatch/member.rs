//! A back-end as dispatch knows it.

use std::sync::Arc;

use plimsoll_config::BackendName;
use plimsoll_policy::{BackendId, Cluster, TargetId};

use crate::membership::source::MemberSpec;

/// A back-end as dispatch knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) id: BackendId,
    pub(crate) name: BackendName,
    pub(crate) key: u64,
}

impl Member {
    /// Adds a back-end to a cluster that no policy has seen.
    pub(super) fn join(cluster: &mut Cluster, spec: &MemberSpec) -> Self {
        let key = key_of(&spec.name);
        let id = cluster.join(spec.weight, key);
        if spec.max_requests.is_some() {
            cluster.set_most_requests(id, spec.max_requests);
        }
        Self { id, name: Arc::clone(&spec.name), key }
    }
}

/// The identity of a back-end for policies that hash: depends on its name alone.
pub(crate) fn key_of(name: &str) -> u64 {
    TargetId::from_key(name.as_bytes()).0
}
