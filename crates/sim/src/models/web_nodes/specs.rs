//! The registry entries of the nodes of the Socket Cloning study.

use plimsoll_policy::params::{ParamSet, Params as _};

use super::params::{CLONING_PARAMS, COOPERATIVE_PARAMS};
use super::{CloneParams, NodeMechanism, PeerParams, WebNodeParams, WebNodesModel};
use crate::model_spec::{ModelSpec, RunResult, Simulation};

fn run(mechanism: NodeMechanism, params: &ParamSet, simulation: Simulation<'_>) -> RunResult {
    let (backends, cache, targets) = (simulation.backends(), simulation.cache, simulation.config.targets);
    simulation.run(WebNodesModel::new(mechanism, WebNodeParams::of(params), backends, cache, targets))
}

const SOURCE: &str =
    "Sit, Wang and Lau, Socket Cloning for cluster-based web servers, CLUSTER 2002, section 4";

/// Nodes that do not work together.
pub static NFS_SPEC: ModelSpec = ModelSpec {
    name: "nfs",
    summary: "nodes with a CPU, a network interface and a memory cache; documents on a shared file server",
    source: SOURCE,
    has_cache: true,
    spends_on_messages: false,
    params: WebNodeParams::SPECS,
    run: |params, simulation| run(NodeMechanism::Alone, params, simulation),
};

/// Nodes that fetch from each other's memory.
pub static COOPERATIVE_SPEC: ModelSpec = ModelSpec {
    name: "cooperative_caching",
    summary: "the nfs model with nodes that fetch documents from each other's memory",
    source: SOURCE,
    has_cache: true,
    spends_on_messages: false,
    params: &COOPERATIVE_PARAMS,
    run: |params, simulation| {
        run(NodeMechanism::CooperativeCaching(PeerParams::of(params)), params, simulation)
    },
};

/// Nodes that clone sockets to each other.
pub static CLONING_SPEC: ModelSpec = ModelSpec {
    name: "cloning",
    summary: "the nfs model with nodes that clone sockets to the node that the policy chooses",
    source: SOURCE,
    has_cache: true,
    spends_on_messages: false,
    params: &CLONING_PARAMS,
    run: |params, simulation| run(NodeMechanism::Cloning(CloneParams::of(params)), params, simulation),
};
