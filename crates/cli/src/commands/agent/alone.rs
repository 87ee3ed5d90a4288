//! An agent that takes no connections over: it only tells a load, and may serve as an origin.

use std::time::Duration;

use plimsoll_agent::daemon::{PreparedCacheNode, ServeConfig};
use plimsoll_agent::load::PreparedLoad;
use plimsoll_datapath::privileges::{KeptWork, PrivilegeDrop, choose};
use plimsoll_origin::{Origin, OriginConfig, OriginError, OriginHandle, OriginService};
use plimsoll_wire::load::LoadGauge;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::super::origin::{self, StopSignals};
use super::super::privileges;
use super::caching;
use super::options::{self, Args};
use super::publishing::{ServedAt, take_part_until};
use crate::error::CliError;
use crate::output;

pub(super) fn run(args: &Args, runtime: &Runtime, mut signals: StopSignals) -> Result<(), CliError> {
    let gauge = LoadGauge::new();
    if !args.load.is_told() {
        return Err(CliError::Usage(
            "give --listen, to take connections over, or --load-listen, to tell a load".to_owned(),
        ));
    }
    let key = options::key(args)?;
    let Some(config) = args.load.config(&key, &gauge)? else { return Ok(()) };
    if args.serve.is_none() && args.load.has_no_source() {
        tracing::warn!(
            "nothing tells this agent a load, so it stays 0: give --load-api, where servers tell theirs, or --serve and \
             --origin-listen"
        );
    }
    let load = PreparedLoad::new(config)?;
    let (served, caching) = prepare_origin(args, &gauge)?.unzip();
    let caching = caching.flatten();
    let at = ServedAt { listen: None, origin: args.origin_listen, load: args.load.told_at(&load) };
    // While it may still read the key.
    let published = args.publishing.published(at, &args.key)?;
    let needs = options::needs(args);
    let identity = choose(args.user.as_deref(), &needs)?;
    let kept = PrivilegeDrop { identity: &identity, work: KeptWork::Answer, seccomp: !args.no_seccomp };
    privileges::give_away(kept, &needs, "--user")?;
    let load = load.start()?;
    super::load::tell(&load);
    let caching = caching.map(PreparedCacheNode::start).transpose()?;
    let serving = served.map(|(service, listener)| Serving::start(service, listener, args)).transpose()?;
    take_part_until(published, runtime, &mut signals)?;
    let stats = serving.map(|serving| {
        let handle = serving.handle.clone();
        serving.stop(async { signals.next().await }, runtime);
        handle.stats()
    });
    let mut json = serde_json::json!({ "load": load.status().json() });
    if let Some(stats) = stats {
        json["origin"] = origin::json(&stats);
    }
    caching::stop(caching, &mut json);
    load.stop();
    if args.json_stats { output::print(&format!("{json}\n")) } else { Ok(()) }
}

/// The origin and its listener, and the links to other nodes' memory.
type PreparedOrigin = ((OriginService, std::net::TcpListener), Option<PreparedCacheNode>);

/// The origin and its listener, where there is one.
fn prepare_origin(args: &Args, gauge: &LoadGauge) -> Result<Option<PreparedOrigin>, CliError> {
    if args.serve.is_none() {
        return Ok(None);
    }
    let mut serve = options::serve(args)?;
    let caching = caching::prepare(args, &mut serve)?;
    let ServeConfig::Origin(config) = serve else {
        return Err(CliError::Usage(
            "--serve: without --listen only an origin serves; servers tell their loads at --load-api"
                .to_owned(),
        ));
    };
    let Some(address) = args.origin_listen else {
        return Err(CliError::Usage("--serve: give the address of the origin by --origin-listen".to_owned()));
    };
    let service = OriginService::new(OriginConfig { gauge: gauge.clone(), ..*config })?;
    let listener = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    let listener = listener.map_err(|error| OriginError::Listen { address, error })?;
    Ok(Some(((service, listener), caching)))
}

/// The origin, on threads of its own.
struct Serving {
    runtime: Runtime,
    handle: OriginHandle,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Serving {
    fn start(service: OriginService, listener: std::net::TcpListener, args: &Args) -> Result<Self, CliError> {
        let failed = |error| CliError::Failed(format!("cannot start the origin's threads: {error}"));
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        if let Some(threads) = args.threads {
            builder.worker_threads(usize::from(threads));
        }
        let runtime = builder.enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        let origin = Origin::listen(service, listener).map_err(failed)?;
        drop(entered);
        let handle = origin.handle();
        tracing::info!("origin on http://{}", handle.local_addr());
        runtime.spawn(async move {
            // The sender is kept until it is to stop.
            origin.serve(async { drop(stopped.await) }).await;
            let _ = end.send(());
        });
        Ok(Self { runtime, handle, stop, ended })
    }

    /// Ends the requests under way, or cuts them off at another signal.
    fn stop(self, signal: impl Future<Output = ()>, runtime: &Runtime) {
        let _ = self.stop.send(());
        runtime.block_on(async {
            tokio::select! {
                _ = self.ended => {}
                () = signal => tracing::warn!("cutting off the requests under way"),
            }
        });
        self.runtime.shutdown_timeout(Duration::from_millis(100));
    }
}
