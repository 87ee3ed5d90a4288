//! An agent that is a node of Socket Cloning: it accepts clients, and has other nodes answer on their connections.

use std::net::SocketAddr;

use plimsoll_agent::daemon::{CloneConfig, CloneStats, PreparedCacheNode, PreparedCloneNode};
use plimsoll_agent::load::PreparedLoad;
use plimsoll_datapath::privileges::{KeptWork, PrivilegeDrop, is_privileged_port};
use plimsoll_policy::PolicyChoice;
use tokio::runtime::Runtime;

use super::super::origin::{self, StopSignals};
use super::super::privileges;
use super::caching;
use super::identity::identity;
use super::load::{seconds, tell};
use super::options::{self, Args, set_common};
use crate::error::CliError;
use crate::output;

pub(super) fn run(
    args: &Args,
    listen: SocketAddr,
    runtime: &Runtime,
    mut signals: StopSignals,
) -> Result<(), CliError> {
    let mut config = config(args, listen)?;
    let load = args.load.config(&config.key, &config.gauge)?.map(PreparedLoad::new).transpose()?;
    if args.node.needs_load() && load.is_none() {
        let what =
            "--clone-loads: give --load-listen as well, where this node tells its own load to the others";
        return Err(CliError::Usage(what.to_owned()));
    }
    let caching = caching::prepare(args, &mut config.serve)?;
    let needs = options::needs(args);
    let identity = identity(args, &config.serve, &needs)?;
    let low_ports = config.vips.iter().any(|vip| is_privileged_port(vip.port()));
    let prepared = PreparedCloneNode::new(config, identity.user())?;
    let work = KeptWork::TakeOver { low_ports };
    let kept = PrivilegeDrop { identity: &identity, work, seccomp: !args.no_seccomp };
    privileges::give_away(kept, &needs, "--user")?;
    let load = load.map(PreparedLoad::start).transpose()?;
    load.as_ref().inspect(|load| tell(load));
    let caching = caching.map(PreparedCacheNode::start).transpose()?;
    let node = prepared.start()?;
    tracing::info!("a node of Socket Cloning, with links at {}", node.address());
    if let Some(address) = node.admin_address() {
        tracing::info!("admin API on http://{address}");
    }
    runtime.block_on(signals.next());
    let stats = node.stop()?;
    let mut json = json(&stats);
    if let Some(load) = load {
        json["load"] = load.status().json();
        load.stop();
    }
    caching::stop(caching, &mut json);
    if args.json_stats { output::print(&format!("{json}\n")) } else { Ok(()) }
}

fn config(args: &Args, listen: SocketAddr) -> Result<CloneConfig, CliError> {
    let mut config = CloneConfig::new(&args.name, listen, options::key(args)?, options::serve(args)?);
    config.peers.clone_from(&args.clone_peers);
    config.policy = args
        .clone_policy
        .parse::<PolicyChoice>()
        .map_err(|error| CliError::Usage(format!("--clone-policy {}: {error}", args.clone_policy)))?;
    config.min_bytes = args.clone_min_size;
    config.first_bytes = args.clone_first_size;
    config.keeps = args.clone_keep;
    config.ahead = args.clone_ahead.into();
    set_common!(config, args);
    args.node.apply(&mut config, args.load.interval()?)?;
    Ok(config)
}

fn json(stats: &CloneStats) -> serde_json::Value {
    let router = &stats.router;
    serde_json::json!({
        "connections": stats.connections,
        "requests": stats.requests,
        "own": stats.own,
        "cloned": stats.cloned,
        "waited_ns": stats.waited_ns,
        "clone_answers": stats.clone_answers,
        "rests": stats.rests,
        "declined": stats.declined,
        "ahead": stats.ahead,
        "kept": stats.kept,
        "given_back": stats.given_back,
        "fast_forwarded": stats.fast_forwarded,
        "client_resets": stats.client_resets,
        "forged": stats.forged,
        "lost": stats.lost,
        "made": stats.made,
        "refused": stats.refused,
        "answered_as_clone": stats.answered_as_clone,
        "answered_as_kept": stats.answered_as_kept,
        "links": stats.links,
        "refused_links": stats.refused_links,
        "broken_links": stats.broken_links,
        "router": {
            "routed_packets": router.routed_packets,
            "routed_bytes": router.routed_bytes,
            "held": router.held,
            "ring_full": router.ring_full,
            "too_long": router.too_long,
            "late": router.late,
            "resets": router.resets,
            "forged": router.forged,
            "errors": router.errors,
            "fragments": router.fragments,
            "options": router.options,
            "malformed": router.malformed,
        },
        "origin": stats.origin.as_ref().map(origin::json),
    })
}
