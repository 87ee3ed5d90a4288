//! The options of an agent, and what follows from them.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use plimsoll_agent::daemon::{AgentConfig, ClonePeer, FrontEnd, ServeConfig};
use plimsoll_datapath::privileges::{FileAccess, FileNeed};
use plimsoll_origin::{OriginConfig, Source};
use plimsoll_wire::Key;

use super::super::origin::{self, Tuning};
use super::cache_options::CacheArgs;
use super::load::{LoadArgs, seconds};
use super::names::agent_name;
use super::node::NodeArgs;
use super::publishing::PublishArgs;
use crate::error::CliError;
use crate::log::LogArgs;
use crate::values;

/// Arguments of `agent`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The agent runs until SIGINT or SIGTERM; then it takes nothing more over, ends the requests under way, and undoes what it
has set up. A second signal ends it at once. To start, it needs CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON, and
CAP_NET_BIND_SERVICE for clients' ports below 1024: run it as root, or grant them. It gives away what it needs no more.

WHAT answers on the connections that it takes over:
  origin:DIR             the files below DIR, as `plimsoll origin --root DIR` serves them
  origin:synthetic:WHAT  generated contents, as `plimsoll origin --synthetic WHAT` serves them
  copy:ADDRESS:PORT      an HTTP server, to which requests and responses are copied
  shim:PATH              an HTTP server with the accept shim that listens on the Unix socket PATH

With --load-listen it tells front-ends how many requests are being answered here. It may do only that, without --listen: then
it needs no privileges, and counts what an origin answers or what servers tell at --load-api.

Examples:
  plimsoll agent --listen 10.0.0.21:7400 --key handoff.key --front-end front-end=10.0.0.11 --interface eth0 \\
    --vip 10.0.0.10:80 --serve origin:public_html --origin-listen 10.0.0.21:8080
  plimsoll agent … --serve copy:127.0.0.1:8080
  plimsoll agent --key load.key --load-listen 10.0.0.21:7401 --load-api unix:/run/plimsoll-load.sock
  plimsoll agent --key load.key --load-listen 10.0.0.21:7401 --serve origin:public_html --origin-listen 10.0.0.21:8080
  plimsoll agent --key load.key --load-listen 10.0.0.30:7401 --load-index b1,b2,b3
  plimsoll agent --name n1 --listen 10.0.0.21:7400 --key clone.key --clone-peer n2=10.0.0.22:7400 --interface eth0 \\
    --vip 10.0.0.10:80 --serve origin:public_html")]
pub(crate) struct Args {
    /// Address and port at which front-ends that hand connections off, or other nodes of Socket Cloning, reach this agent
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = values::address)]
    #[arg(requires_all = ["interface", "vips", "serve"])]
    pub(super) listen: Option<SocketAddr>,

    /// File with the key that front-ends and agents share: 64 hexadecimal digits, not readable by others
    #[arg(long, value_name = "FILE")]
    pub(super) key: PathBuf,

    /// A front-end that may hand connections off: the name in its configuration, and the address it comes from
    #[arg(long = "front-end", value_name = "NAME=ADDRESS", requires = "listen", value_parser = front_end)]
    pub(super) front_ends: Vec<FrontEnd>,

    /// Another node of Socket Cloning: its name, and where it takes links. This agent then accepts clients itself
    #[arg(long = "clone-peer", value_name = "NAME=ADDRESS:PORT", requires = "listen", value_parser = clone_peer)]
    pub(super) clone_peers: Vec<ClonePeer>,

    /// Which node answers a request, the same at all nodes: a policy as in `plimsoll policies`
    #[arg(long, value_name = "POLICY", default_value = "uri_hash", requires = "clone_peers")]
    pub(super) clone_policy: String,

    /// Answer documents here that are known to be smaller than this: bytes, or with a unit, as 16KiB
    #[arg(long, value_name = "SIZE", default_value = "0", requires = "clone_peers", value_parser = plimsoll_policy::units::size)]
    pub(super) clone_min_size: u64,

    /// Send so much of each document that belongs to another node here, and have a clone send the rest
    #[arg(long, value_name = "SIZE", default_value = "0", requires = "clone_peers", value_parser = plimsoll_policy::units::size)]
    pub(super) clone_first_size: u64,

    /// Clones keep the connection as long as the next requests are their own node's
    #[arg(long, requires = "clone_peers")]
    pub(super) clone_keep: bool,

    /// For how many pipelined requests to further nodes clones are made ahead, which answer in turn
    #[arg(long, value_name = "N", default_value_t = 0, requires = "clone_peers", value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(super) clone_ahead: u8,

    /// Network interface at which packets of clients, of front-ends and of other nodes arrive
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub(super) interface: Option<String>,

    /// An address and port that clients connect to, as the front-end listens on it
    #[arg(long = "vip", value_name = "ADDRESS:PORT", requires = "listen", value_parser = values::address)]
    pub(super) vips: Vec<SocketAddr>,

    /// What answers
    #[arg(long, value_name = "WHAT")]
    pub(super) serve: Option<String>,

    /// Where the origin listens besides, so that front-ends can check and proxy
    #[arg(long, value_name = "ADDRESS:PORT", requires = "serve", value_parser = values::address)]
    pub(super) origin_listen: Option<SocketAddr>,

    /// Name of this agent, also in the header X-Backend of the origin: letters, digits, - and _
    #[arg(long, value_name = "NAME", default_value = "agent", value_parser = agent_name)]
    pub(super) name: String,

    /// Threads that serve; as many as there are CPUs by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) threads: Option<u16>,

    /// Most connections at once; further ones are refused, and the front-end does otherwise
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub(super) max_connections: u32,

    /// Time that requests under way get at the end, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = values::positive)]
    pub(super) drain_timeout: f64,

    /// Time that a client may take to send its next request, in seconds
    #[arg(long, value_name = "S", default_value = "60", value_parser = values::positive)]
    pub(super) idle_timeout: f64,

    /// Time for which a link may be silent before it counts as lost, in seconds, at least 0.05
    #[arg(long, value_name = "S", default_value = "1.5", value_parser = values::positive)]
    pub(super) link_timeout: f64,

    /// Time that a front-end whose link was silent has to open another, in seconds; then clients that acknowledge nothing are
    /// reset
    #[arg(long, value_name = "S", default_value = "1.25", value_parser = values::positive)]
    pub(super) lost_grace: f64,

    #[command(flatten)]
    pub(super) node: NodeArgs,

    #[command(flatten)]
    pub(super) caching: CacheArgs,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    #[command(flatten)]
    pub(super) tuning: Tuning,

    /// Follow symbolic links that lead out of the origin's directory
    #[arg(long)]
    pub(super) follow_symlinks: bool,

    /// The user, by name or number, that an agent of root becomes once it has started; `nobody` by default, where it may
    /// read what is served, and root otherwise
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// Do not have the kernel refuse system calls that an agent never makes
    #[arg(long)]
    pub(super) no_seccomp: bool,

    /// Print the counters as a line of JSON at the end
    #[arg(long)]
    pub(super) json_stats: bool,

    #[command(flatten)]
    pub(super) publishing: PublishArgs,

    #[command(flatten)]
    pub(super) log: LogArgs,
}

fn front_end(text: &str) -> Result<FrontEnd, String> {
    let wrong = "give a name and an IP address, such as front-end=10.0.0.11";
    let (name, address) = text.split_once('=').ok_or(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong)?;
    if name.is_empty() {
        return Err(wrong.to_owned());
    }
    Ok(FrontEnd { name: name.to_owned(), address: address.to_canonical() })
}

fn clone_peer(text: &str) -> Result<ClonePeer, String> {
    let wrong = "give a name, an IP address and a port, such as n2=10.0.0.22:7400";
    let (name, address) = text.split_once('=').ok_or(wrong)?;
    let address: SocketAddr = address.parse().map_err(|_| wrong)?;
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    Ok(ClonePeer { name: agent_name(name)?, address })
}

/// What the agent needs of the file system once it runs. The key is read before.
pub(super) fn needs(args: &Args) -> Vec<FileNeed> {
    let need = match args.serve.as_deref().unwrap_or_default().split_once(':') {
        Some(("origin", what)) if !what.starts_with("synthetic:") => {
            Some(FileNeed::new(what, FileAccess::ReadTree, "the origin"))
        }
        // It may come later.
        Some(("shim", path)) if Path::new(path).exists() => {
            Some(FileNeed::new(path, FileAccess::Connect, "the server's socket"))
        }
        _ => None,
    };
    need.into_iter().chain(args.node.needs()).collect()
}

pub(super) fn key(args: &Args) -> Result<Key, CliError> {
    Key::load(&args.key).map_err(|error| CliError::Failed(error.to_string()))
}

/// Sets what agents and nodes of Socket Cloning alike are told by options, in the configuration of either.
macro_rules! set_common {
    ($config:ident, $args:ident) => {
        $config.interface = $args.interface.clone().unwrap_or_default();
        $config.vips.clone_from(&$args.vips);
        if let Some(threads) = $args.threads {
            $config.threads = usize::from(threads);
        }
        $config.max_connections = usize::try_from($args.max_connections).unwrap_or(usize::MAX);
        $config.drain_timeout = seconds("--drain-timeout", $args.drain_timeout)?;
        $config.idle_timeout = seconds("--idle-timeout", $args.idle_timeout)?;
        $config.link_timeout = seconds("--link-timeout", $args.link_timeout)?;
    };
}
pub(super) use set_common;

pub(super) fn config(args: &Args, listen: SocketAddr) -> Result<AgentConfig, CliError> {
    let mut config = AgentConfig::new(&args.name, listen, key(args)?, serve(args)?);
    config.front_ends.clone_from(&args.front_ends);
    config.origin_listen = args.origin_listen;
    set_common!(config, args);
    config.lost_grace = seconds("--lost-grace", args.lost_grace)?;
    Ok(config)
}

pub(super) fn serve(args: &Args) -> Result<ServeConfig, CliError> {
    let serve = args.serve.as_deref().unwrap_or_default();
    let wrong = |what: &str| CliError::Usage(format!("--serve {serve}: {what}"));
    let forms = "give origin:DIR, origin:synthetic:WHAT, copy:ADDRESS:PORT or shim:PATH";
    let (kind, what) = serve.split_once(':').ok_or_else(|| wrong(forms))?;
    match kind {
        "origin" => {
            let source = match what.strip_prefix("synthetic:") {
                Some(what) => Source::synthetic(origin::synthetic(what, args.tuning.seed())?),
                None => Source::files(what, args.follow_symlinks)?,
            };
            let mut config = OriginConfig::new(source);
            args.tuning.apply(&mut config)?;
            config.name = Some(args.name.clone());
            Ok(ServeConfig::Origin(config.into()))
        }
        "copy" => {
            let address =
                what.parse().map_err(|_| wrong("give an IP address and a port, as copy:127.0.0.1:8080"))?;
            Ok(ServeConfig::Copy(address))
        }
        "shim" if !what.is_empty() => Ok(ServeConfig::Shim(what.into())),
        _ => Err(wrong(forms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_peers() {
        let found = clone_peer("n2=[::ffff:10.0.0.1]:7400").unwrap();
        assert_eq!((found.name.as_str(), found.address.to_string().as_str()), ("n2", "10.0.0.1:7400"));
        for bad in ["", "n2", "n2=10.0.0.1", "=10.0.0.1:7400", "n 2=10.0.0.1:7400"] {
            assert!(clone_peer(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn front_ends() {
        let found = front_end("fe=10.0.0.1").unwrap();
        assert_eq!((found.name.as_str(), found.address.to_string().as_str()), ("fe", "10.0.0.1"));
        assert_eq!(front_end("fe=::ffff:10.0.0.1").unwrap(), found);
        assert!(front_end("fe=fd00::1").unwrap().address.is_ipv6());
        for bad in ["", "fe", "fe=", "=10.0.0.1", "fe=host", "fe=10.0.0.1:80"] {
            assert!(front_end(bad).unwrap_err().contains("front-end=10.0.0.11"), "{bad}");
        }
    }
}
