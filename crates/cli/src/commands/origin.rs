//! `plimsoll origin`: the file server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{
    CpuModel, DiskModel, Origin, OriginConfig, OriginError, OriginHandle, OriginStats, Source,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::error::CliError;
use crate::log::LogArgs;
use crate::{output, values};

/// Arguments of `origin`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The origin serves until SIGINT or SIGTERM; then it ends the requests under way. A second signal ends it at once.

Examples:
  plimsoll origin --root public_html
  plimsoll origin --root public_html --listen [::1]:8081 --cache 32MiB --disk-delay lard98 --name b1
  plimsoll origin --synthetic rice,generator=irm --seed 7 --cache 32MiB --disk-delay lard98 --disk-speed 10
  plimsoll origin --synthetic fixed:100B --listen 127.0.0.1:0")]
#[command(group(clap::ArgGroup::new("contents").required(true).args(["root", "synthetic"])))]
pub(crate) struct Args {
    /// Serve the files below this directory
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Serve generated contents: the targets of a synthetic workload as NAME[,key=value…], or fixed:SIZE at any path
    #[arg(long, value_name = "WHAT")]
    synthetic: Option<String>,

    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081", value_parser = values::address)]
    listen: SocketAddr,

    #[command(flatten)]
    tuning: Tuning,

    /// Name this origin in the header X-Backend of every response
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Follow symbolic links that lead out of the root
    #[arg(long, conflicts_with = "synthetic")]
    follow_symlinks: bool,

    /// Most connections at once; further ones wait to be accepted
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,

    /// Print the counters as a line of JSON at the end
    #[arg(long)]
    json_stats: bool,

    #[command(flatten)]
    log: LogArgs,
}

/// Options of an origin, independent of how requests reach it.
#[derive(clap::Args, Debug)]
pub(crate) struct Tuning {
    /// Seed of the synthetic workload
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Size of the memory cache
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::size)]
    cache: u64,

    /// Replacement policy of the memory cache
    #[arg(long, value_name = "NAME", default_value = "gds")]
    policy: String,

    /// Never cache files above this size, but stream them
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    cache_object_limit: Option<u64>,

    /// Disk to emulate: none, or that of the LARD study
    #[arg(long, value_name = "MODEL", default_value = "none", value_parser = ["none", "lard98"])]
    disk_delay: String,

    /// The emulated disk is this many times as fast
    #[arg(long, value_name = "X", default_value = "1", value_parser = values::positive)]
    disk_speed: f64,

    /// CPU to emulate: none, or that of the LARD study
    #[arg(long, value_name = "MODEL", default_value = "none", value_parser = ["none", "lard98"])]
    cpu_delay: String,

    /// The emulated CPU is this many times as fast
    #[arg(long, value_name = "X", default_value = "1", value_parser = values::positive)]
    cpu_speed: f64,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    args.log.start();
    let config = config(args)?;
    super::open_files::raise_for(args.max_connections);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("cannot start threads: {error}")))?;
    let stats = runtime.block_on(serve(config, args.listen))?;
    // Do not wait for abandoned reads.
    runtime.shutdown_timeout(Duration::from_millis(100));
    if args.json_stats { output::print(&format!("{}\n", json(&stats))) } else { Ok(()) }
}

fn config(args: &Args) -> Result<OriginConfig, CliError> {
    let source = match (&args.root, &args.synthetic) {
        (Some(root), _) => Source::files(root, args.follow_symlinks)?,
        (None, Some(what)) => Source::synthetic(synthetic(what, args.tuning.seed)?),
        (None, None) => return Err(CliError::Usage("give --root or --synthetic".into())),
    };
    let mut config = OriginConfig::new(source);
    args.tuning.apply(&mut config)?;
    config.name.clone_from(&args.name);
    config.max_connections = usize::try_from(args.max_connections).unwrap_or(usize::MAX);
    Ok(config)
}

impl Tuning {
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn apply(&self, config: &mut OriginConfig) -> Result<(), CliError> {
        let too_slow =
            |option: &str| CliError::Usage(format!("{option} is too small for times to be counted"));
        config.cache_policy.clone_from(&self.policy);
        config.cache_bytes = self.cache;
        config.cache_object_limit_bytes = self.cache_object_limit;
        if self.disk_delay == "lard98" {
            let disk = DiskModel::lard98().faster(self.disk_speed);
            config.disk = Some(disk.ok_or_else(|| too_slow("--disk-speed"))?);
        }
        if self.cpu_delay == "lard98" {
            let cpu = CpuModel::lard98().faster(self.cpu_speed);
            config.cpu = Some(cpu.ok_or_else(|| too_slow("--cpu-speed"))?);
        }
        Ok(())
    }
}

/// `fixed:SIZE`, or a workload as after `synth:` in `plimsoll simulate`.
pub(crate) fn synthetic(what: &str, seed: u64) -> Result<Synthetic, CliError> {
    if let Some(size) = what.strip_prefix("fixed:") {
        let size_bytes =
            values::size(size).map_err(|e| CliError::Usage(format!("--synthetic fixed: {e}")))?;
        return Ok(Synthetic::fixed(size_bytes));
    }
    let mut parts = what.split(',');
    let name = parts.next().unwrap_or_default();
    let settings: Vec<(String, String)> =
        parts.map(values::setting).collect::<Result<_, _>>().map_err(CliError::Usage)?;
    let overrides: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    Ok(Synthetic::workload(name, &overrides, seed).map_err(OriginError::from)?)
}

impl From<OriginError> for CliError {
    fn from(error: OriginError) -> Self {
        match error {
            OriginError::Root { .. } | OriginError::Listen { .. } => Self::Failed(error.to_string()),
            OriginError::Cache(_) | OriginError::Name(_) | OriginError::Synthetic(_) => {
                Self::Usage(error.to_string())
            }
        }
    }
}

async fn serve(config: OriginConfig, listen: SocketAddr) -> Result<OriginStats, CliError> {
    // Before it listens: a signal from then on ends it in order.
    let mut signals = StopSignals::new()?;
    let origin = Origin::bind(config, listen).await?;
    let handle: OriginHandle = origin.handle();
    tracing::info!("listening on http://{}", handle.local_addr());
    let stop = Notify::new();
    let mut serving = pin!(origin.serve(stop.notified()));
    tokio::select! {
        () = &mut serving => return Ok(handle.stats()),
        () = signals.next() => stop.notify_one(),
    }
    tokio::select! {
        () = &mut serving => {}
        () = signals.next() => tracing::warn!("cutting off the requests under way"),
    }
    Ok(handle.stats())
}

/// The signals that end the process.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    pub(crate) fn new() -> Result<Self, CliError> {
        let failed = |error| CliError::Failed(format!("cannot wait for signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

pub(crate) fn json(stats: &OriginStats) -> serde_json::Value {
    serde_json::json!({
        "requests": stats.requests,
        "hits": stats.hits,
        "misses": stats.misses,
        "joined": stats.joined,
        "from_peers": stats.from_peers,
        "bypassed": stats.bypassed,
        "reads": stats.reads,
        "body_bytes": stats.body_bytes,
        "connections": stats.connections,
        "cache_used_bytes": stats.cache_used_bytes,
        "cache_objects": stats.cache_objects,
    })
}
