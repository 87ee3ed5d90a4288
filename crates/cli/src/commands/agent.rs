//! `plimsoll agent`: what takes connections over beside a back-end.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_agent::daemon::{
    Agent, AgentConfig, AgentError, AgentStats, FrontEnd, PreparedAgent, ServeConfig,
};
use plimsoll_datapath::privileges::{
    FileAccess, FileNeed, Identity, KeptWork, PrivilegeDrop, choose, is_privileged_port,
};
use plimsoll_origin::{OriginConfig, Source};
use plimsoll_wire::Key;

use super::origin::{self, StopSignals, Tuning};
use super::privileges;
use crate::error::CliError;
use crate::log::LogArgs;
use crate::{output, values};

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

Examples:
  plimsoll agent --listen 10.0.0.21:7400 --key handoff.key --front-end front-end=10.0.0.11 --interface eth0 \\
    --vip 10.0.0.10:80 --serve origin:public_html --origin-listen 10.0.0.21:8080
  plimsoll agent … --serve copy:127.0.0.1:8080")]
pub(crate) struct Args {
    /// Address and port at which front-ends reach this agent
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,

    /// File with the key that front-ends and agents share: 64 hexadecimal digits, not readable by others
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// A front-end that may hand connections off: the name in its configuration, and the address it comes from
    #[arg(long = "front-end", value_name = "NAME=ADDRESS", required = true, value_parser = front_end)]
    front_ends: Vec<FrontEnd>,

    /// Network interface at which the front-ends' packets arrive
    #[arg(long, value_name = "NAME")]
    interface: String,

    /// An address and port that clients connect to, as the front-end listens on it
    #[arg(long = "vip", value_name = "ADDRESS:PORT", required = true)]
    vips: Vec<SocketAddr>,

    /// What answers
    #[arg(long, value_name = "WHAT")]
    serve: String,

    /// Where the origin listens besides, so that front-ends can check and proxy
    #[arg(long, value_name = "ADDRESS:PORT")]
    origin_listen: Option<SocketAddr>,

    /// Name of this agent, also in the header X-Backend of the origin: letters, digits, - and _
    #[arg(long, value_name = "NAME", default_value = "agent")]
    name: String,

    /// Threads that serve; as many as there are CPUs by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Most connections at once; further ones are refused, and the front-end does otherwise
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    max_connections: u32,

    /// Time that requests under way get at the end, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = values::positive)]
    drain_timeout: f64,

    /// Time that a client may take to send its next request, in seconds
    #[arg(long, value_name = "S", default_value = "60", value_parser = values::positive)]
    idle_timeout: f64,

    /// Time for which a link may be silent before it counts as lost, in seconds, at least 0.05
    #[arg(long, value_name = "S", default_value = "1.5", value_parser = values::positive)]
    link_timeout: f64,

    /// Time that a front-end whose link was silent has to open another, in seconds; then clients that acknowledge nothing are
    /// reset
    #[arg(long, value_name = "S", default_value = "1.25", value_parser = values::positive)]
    lost_grace: f64,

    #[command(flatten)]
    tuning: Tuning,

    /// Follow symbolic links that lead out of the origin's directory
    #[arg(long)]
    follow_symlinks: bool,

    /// The user, by name or number, that an agent of root becomes once it has started; `nobody` by default, where it may
    /// read what is served, and root otherwise
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Do not have the kernel refuse system calls that an agent never makes
    #[arg(long)]
    no_seccomp: bool,

    /// Print the counters as a line of JSON at the end
    #[arg(long)]
    json_stats: bool,

    #[command(flatten)]
    log: LogArgs,
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

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    args.log.start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("cannot wait for signals: {error}")))?;
    // Before it listens: a signal from then on ends it in order.
    let mut signals = {
        let _entered = runtime.enter();
        StopSignals::new()?
    };
    let wanted = u64::from(args.max_connections).saturating_mul(2).saturating_add(256);
    if let Some(most) = plimsoll_balancer::raise_open_file_limit().filter(|&most| most < wanted) {
        tracing::warn!("only {most} files may be open here, fewer than --max-connections may need: {wanted}");
    }
    let agent = start(args)?;
    tracing::info!("taking connections over at {}", agent.address());
    if let Some(address) = agent.origin_address() {
        tracing::info!("origin on http://{address}");
    }
    runtime.block_on(signals.next());
    let handle = agent.handle();
    // Ends with the process.
    std::thread::spawn(move || {
        runtime.block_on(signals.next());
        tracing::warn!("cutting off the requests under way");
        handle.hurry();
    });
    let stats = agent.stop()?;
    if args.json_stats { output::print(&format!("{}\n", json(&stats))) } else { Ok(()) }
}

/// Starts an agent that has given away the privileges it needs no more.
fn start(args: &Args) -> Result<Agent, CliError> {
    let config = config(args)?;
    let needs = needs(args);
    let identity = identity(args, &config, &needs)?;
    let low_ports = config.vips.iter().any(|vip| is_privileged_port(vip.port()));
    let prepared = PreparedAgent::new(config, identity.user())?;
    let work = KeptWork::TakeOver { low_ports };
    let kept = PrivilegeDrop { identity: &identity, work, seccomp: !args.no_seccomp };
    privileges::give_away(kept, &needs, "--user")?;
    Ok(prepared.start()?)
}

/// What the agent needs of the file system once it runs. The key is read before.
fn needs(args: &Args) -> Vec<FileNeed> {
    let need = match args.serve.split_once(':') {
        Some(("origin", what)) if !what.starts_with("synthetic:") => {
            Some(FileNeed::new(what, FileAccess::ReadTree, "the origin"))
        }
        // It may come later.
        Some(("shim", path)) if Path::new(path).exists() => {
            Some(FileNeed::new(path, FileAccess::Connect, "the server's socket"))
        }
        _ => None,
    };
    need.into_iter().collect()
}

fn identity(args: &Args, config: &AgentConfig, needs: &[FileNeed]) -> Result<Identity, CliError> {
    let is_shim = matches!(config.serve, ServeConfig::Shim(_));
    if !is_shim || args.user.is_some() {
        return Ok(choose(args.user.as_deref(), needs)?);
    }
    // Of those who are not root, the shim takes connections only from the user that started the server.
    let mut identity = choose(None, needs)?;
    if !matches!(identity, Identity::Starter) {
        identity = choose(Some("root"), needs)?;
        if let Identity::Root { why, .. } = &mut identity {
            *why = Some(
                "the accept shim takes connections from root or from the user that started the server"
                    .to_owned(),
            );
        }
    }
    Ok(identity)
}

fn config(args: &Args) -> Result<AgentConfig, CliError> {
    let key = Key::load(&args.key).map_err(|error| CliError::Failed(error.to_string()))?;
    let mut config = AgentConfig::new(&args.name, args.listen, key, serve(args)?);
    config.front_ends.clone_from(&args.front_ends);
    config.interface.clone_from(&args.interface);
    config.vips.clone_from(&args.vips);
    config.origin_listen = args.origin_listen;
    if let Some(threads) = args.threads {
        config.threads = usize::from(threads);
    }
    config.max_connections = usize::try_from(args.max_connections).unwrap_or(usize::MAX);
    config.drain_timeout = seconds("--drain-timeout", args.drain_timeout)?;
    config.idle_timeout = seconds("--idle-timeout", args.idle_timeout)?;
    config.link_timeout = seconds("--link-timeout", args.link_timeout)?;
    config.lost_grace = seconds("--lost-grace", args.lost_grace)?;
    Ok(config)
}

/// A time that configuration files accept too: above 0 and at most a day.
fn seconds(option: &str, value_s: f64) -> Result<Duration, CliError> {
    let time = Duration::try_from_secs_f64(value_s).ok();
    time.filter(|time| !time.is_zero() && *time <= Duration::from_secs(86_400)).ok_or_else(|| {
        CliError::Usage(format!("{option} {value_s}: give seconds above 0 and at most 86400, a day"))
    })
}

fn serve(args: &Args) -> Result<ServeConfig, CliError> {
    let wrong = |what: &str| CliError::Usage(format!("--serve {}: {what}", args.serve));
    let forms = "give origin:DIR, origin:synthetic:WHAT, copy:ADDRESS:PORT or shim:PATH";
    let (kind, what) = args.serve.split_once(':').ok_or_else(|| wrong(forms))?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
