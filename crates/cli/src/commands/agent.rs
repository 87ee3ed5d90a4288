//! `plimsoll agent`: what takes connections over beside a back-end, and tells its load.

mod alone;
mod cache_options;
mod caching;
mod cloning;
mod identity;
mod load;
mod names;
mod node;
mod options;
mod publishing;

use std::net::SocketAddr;

use self::identity::identity;
pub(crate) use self::options::Args;
use self::options::{config, needs};
use self::publishing::{PublishedReplicas, ServedAt, take_part_until};
use super::origin::{self, StopSignals};
use super::privileges;
use crate::error::CliError;
use crate::output;
use plimsoll_agent::daemon::{Agent, AgentError, AgentStats, CacheNode, PreparedAgent, PreparedCacheNode};
use plimsoll_agent::load::{LoadService, PreparedLoad};
use plimsoll_datapath::privileges::{KeptWork, PrivilegeDrop, is_privileged_port};

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    args.log.start();
    plimsoll_datapath::refuse_unasked_huge_pages();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("cannot wait for signals: {error}")))?;
    // Before it listens: a signal from then on ends it in order.
    let mut signals = {
        let _entered = runtime.enter();
        StopSignals::new()?
    };
    check_roles(args)?;
    let Some(listen) = args.listen else { return alone::run(args, &runtime, signals) };
    super::open_files::raise_for(args.max_connections);
    if !args.clone_peers.is_empty() {
        return cloning::run(args, listen, &runtime, signals);
    }
    if args.front_ends.is_empty() {
        return Err(CliError::Usage(
            "--listen: give --front-end, who may hand connections off, or --clone-peer, the other nodes of Socket Cloning"
                .to_owned(),
        ));
    }
    let Started { agent, load, caching, published } = start(args, listen)?;
    tracing::info!("taking connections over at {}", agent.address());
    if let Some(address) = agent.origin_address() {
        tracing::info!("origin on http://{address}");
    }
    take_part_until(published, &runtime, &mut signals)?;
    let handle = agent.handle();
    // Ends with the process.
    std::thread::spawn(move || {
        runtime.block_on(signals.next());
        tracing::warn!("cutting off the requests under way");
        handle.hurry();
    });
    let stats = agent.stop()?;
    let mut json = json(&stats);
    caching::stop(caching, &mut json);
    if let Some(load) = load {
        json["load"] = load.status().json();
        load.stop();
    }
    if args.json_stats { output::print(&format!("{json}\n")) } else { Ok(()) }
}

/// What an agent cannot be at once. Clap must not know of these conflicts: beside an option that conflicts with another one, it no
/// longer says that the other one is required, and what needs that would be ignored.
fn check_roles(args: &Args) -> Result<(), CliError> {
    let of_clone =
        [(!args.front_ends.is_empty(), "--front-end"), (args.origin_listen.is_some(), "--origin-listen")];
    let of_index = [(args.listen.is_some(), "--listen"), (args.serve.is_some(), "--serve")];
    let first =
        |given: &[(bool, &'static str)]| given.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name);
    let (role, beside, why) = if args.load.is_index() {
        let beside = first(&of_index).or_else(|| args.load.of_own_load());
        ("--load-index", beside, "a load index manager has no load of its own")
    } else {
        let beside = first(&of_clone).filter(|_| !args.clone_peers.is_empty());
        ("--clone-peer", beside, "a node of Socket Cloning accepts clients itself")
    };
    match beside {
        Some(beside) => Err(CliError::Usage(format!("{role} cannot be used with {beside}: {why}"))),
        None => Ok(()),
    }
}

/// An agent that runs, and what it is to publish.
struct Started {
    agent: Agent,
    load: Option<LoadService>,
    caching: Option<CacheNode>,
    published: Option<PublishedReplicas>,
}

/// Starts an agent that has given away the privileges it needs no more.
fn start(args: &Args, listen: SocketAddr) -> Result<Started, CliError> {
    let mut config = config(args, listen)?;
    let caching = caching::prepare(args, &mut config.serve)?;
    let load = args.load.config(&config.key, &config.gauge)?.map(PreparedLoad::new).transpose()?;
    let told_at = load.as_ref().and_then(|load| args.load.told_at(load));
    let at = ServedAt { listen: Some(listen), origin: args.origin_listen, load: told_at };
    let published = args.publishing.published(at, &args.key)?;
    let needs = needs(args);
    let identity = identity(args, &config.serve, &needs)?;
    let low_ports = config.vips.iter().any(|vip| is_privileged_port(vip.port()));
    let prepared = PreparedAgent::new(config, identity.user())?;
    let work = KeptWork::TakeOver { low_ports };
    let kept = PrivilegeDrop { identity: &identity, work, seccomp: !args.no_seccomp };
    privileges::give_away(kept, &needs, "--user")?;
    let load = load.map(PreparedLoad::start).transpose()?;
    load.as_ref().inspect(|load| load::tell(load));
    let caching = caching.map(PreparedCacheNode::start).transpose()?;
    Ok(Started { agent: prepared.start()?, load, caching, published })
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Config(_) | AgentError::Name(_) => Self::Usage(error.to_string()),
            AgentError::Origin(error) => error.into(),
            _ => Self::Failed(error.to_string()),
        }
    }
}

fn json(stats: &AgentStats) -> serde_json::Value {
    let counts = &stats.counts;
    serde_json::json!({
        "taken": counts.taken,
        "refused": counts.refused,
        "returned": counts.returned,
        "kept": counts.kept,
        "cancelled": counts.cancelled,
        "requests": counts.requests,
        "content_bytes": counts.content_bytes,
        "links": counts.links,
        "refused_links": counts.refused_links,
        "packets_injected": counts.packets_injected,
        "packets_emitted": counts.packets_emitted,
        "packets_dropped": counts.packets_dropped,
        "syns_returned": counts.syns_returned,
        "strays": counts.strays,
        "fenced": counts.fenced,
        "origin": stats.origin.as_ref().map(origin::json),
    })
}
