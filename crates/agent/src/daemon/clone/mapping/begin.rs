//! The core of a node, as it begins: built from what its decision log says of it, so that a replay begins alike.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_decisions::{BackendEntry, LogConfig, LogRetention, LogWitness, RunHeader};
use plimsoll_policy::{AdmissionControl, BuildContext, Core, Health, LoadUse, TargetId, Time, Weight};

use super::super::super::config::AgentError;
use super::super::config::{CloneConfig, NodeLoads};

/// Bytes of a file of the decision log, and files that are kept: as by default in `[decision_log]`.
const FILE_BYTES: u64 = 64 << 20;
const FILES: usize = 16;

/// Where a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum NodePlace {
    Here,
    /// At the peer of this number.
    Peer(usize),
}

/// A core, and the nodes by back-end.
pub(super) struct Begun {
    pub(super) core: Core<Option<LogWitness>>,
    pub(super) nodes: Vec<(String, NodePlace)>,
}

/// The nodes in the order of their names.
fn nodes(config: &CloneConfig) -> Vec<(String, NodePlace)> {
    let peers = config.peers.iter().enumerate();
    let mut nodes: Vec<_> =
        peers.map(|(number, peer)| (peer.name.clone(), NodePlace::Peer(number))).collect();
    nodes.push((config.name.clone(), NodePlace::Here));
    nodes.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    nodes
}

/// Without a log, and what a log of it begins with.
pub(super) fn core(config: &CloneConfig) -> Result<(Begun, RunHeader), AgentError> {
    works_here(config)?;
    let nodes = nodes(config);
    let header = header(config, &nodes);
    let wrong = |error: plimsoll_decisions::HeaderError| AgentError::Config(error.to_string());
    let core = header.core(None).map_err(wrong)?;
    if core.metrics_interval().is_some() {
        let what = "it needs host metrics of back-ends, which nodes do not gather";
        return Err(AgentError::Config(format!("--clone-policy {}: {what}", config.policy.spec.name)));
    }
    Ok((Begun { core, nodes }, header))
}

/// With the decision log, if there is to be one.
pub(super) fn begin(config: &CloneConfig) -> Result<Begun, AgentError> {
    let (mut begun, header) = core(config)?;
    if let Some(directory) = &config.decision_log {
        let log = LogConfig {
            directory: directory.clone(),
            file_bytes: FILE_BYTES,
            files: FILES,
            when_full: LogRetention::Rotate,
        };
        let mut log = LogWitness::open(&log)
            .map_err(|error| AgentError::DecisionLog { directory: directory.clone(), error })?;
        log.run_started(&header, Time::ZERO);
        *begun.core.witness_mut() = Some(log);
    }
    Ok(begun)
}

fn header(config: &CloneConfig, nodes: &[(String, NodePlace)]) -> RunHeader {
    let context = BuildContext::default();
    let entry = |(name, place): &(String, NodePlace)| {
        let key = TargetId::from_key(name.as_bytes()).0;
        // Until there is a link.
        let health = if *place == NodePlace::Here { Health::Up } else { Health::Down };
        BackendEntry { health, ..BackendEntry::joined(name, key, Weight::ONE) }
    };
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RunHeader {
        policy: config.policy.spec.name.to_owned(),
        settings: config.policy.params.settings(),
        seed: context.seed,
        cache: context.cache.name.to_owned(),
        cache_bytes: context.cache_bytes,
        class_costs: Arc::default(),
        backends: nodes.iter().map(entry).collect(),
        admission: AdmissionControl::UNLIMITED,
        waiting: Vec::new(),
        inquiries: inquiries(config),
        reserved: 0,
        started_unix_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX),
    }
}

/// Nodes that the core asks before each choice of a policy that looks at loads and does not ask by itself.
fn inquiries(config: &CloneConfig) -> u8 {
    match &config.loads {
        NodeLoads::Poll { size, .. } if config.policy.spec.load_use.is_asked_for() => *size,
        _ => 0,
    }
}

/// Says what a policy would miss at a node.
fn works_here(config: &CloneConfig) -> Result<(), AgentError> {
    let spec = config.policy.spec;
    let lacks = if spec.capabilities.can_sniff() {
        Some("it estimates loads from the packets of connections, which nodes do not watch")
    } else if spec.capabilities.depends_on_classes() {
        Some("it needs classes of requests, which nodes do not have")
    } else if spec.load_use == LoadUse::Reports && config.loads == NodeLoads::Own {
        Some("it decides by what nodes report; let them report, by --clone-loads poll or broadcast")
    } else {
        None
    };
    if let Some(lacks) = lacks {
        return Err(AgentError::Config(format!("--clone-policy {}: {lacks}", spec.name)));
    }
    if spec.load_use == LoadUse::None && config.loads != NodeLoads::Own {
        tracing::warn!(policy = spec.name, "this policy uses no loads: --clone-loads has no effect");
    } else if spec.load_use != LoadUse::None && config.loads == NodeLoads::Own && !config.peers.is_empty() {
        tracing::info!(
            policy = spec.name,
            "this policy decides by loads, and knows only those that this node makes: see --clone-loads"
        );
    }
    Ok(())
}
