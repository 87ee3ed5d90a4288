//! `plimsoll balance`: the live front-end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use plimsoll_balancer::Balancer;
use plimsoll_config::Config;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::error::CliError;

/// A file is read this long after it changed: editors write in several steps.
const SETTLE: Duration = Duration::from_millis(200);

/// Arguments of `balance`.
#[derive(clap::Args)]
#[command(after_help = "\
Signals: SIGHUP reads the configuration again, as does a change of the file, and opens the access log anew. SIGTERM and
SIGINT stop: requests under way are finished within `timeouts.drain`; a second signal stops at once.

Example:
  plimsoll check --config plimsoll.toml && plimsoll balance --config plimsoll.toml")]
pub(crate) struct Args {
    /// Configuration file
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    /// Do not read the configuration again when its file changes, only on SIGHUP
    #[arg(long)]
    no_watch: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("PLIMSOLL_LOG").unwrap_or_else(|_| "info".into()),
        )
        .init();
    let config = load(&args.config)?;
    let balancer = Balancer::start(config.clone()).map_err(|e| CliError::Failed(e.to_string()))?;
    for address in balancer.addresses() {
        eprintln!("plimsoll: listening on http://{address}");
    }
    if let Some(admin) = balancer.admin_address() {
        eprintln!("plimsoll: admin API on http://{admin}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| CliError::Failed(format!("cannot start: {e}")))?;
    let mut signals = runtime.block_on(async { Signals::new() })?;
    runtime.block_on(supervise(args, &balancer, config, &mut signals))?;
    eprintln!("plimsoll: stopping");
    // Whoever signals a second time does not want to wait for requests under way.
    std::thread::spawn(move || {
        runtime.block_on(signals.stop());
        std::process::exit(1);
    });
    balancer.stop();
    Ok(())
}

fn load(path: &Path) -> Result<Config, CliError> {
    Config::load(path).map_err(|errors| CliError::config(path, &errors))
}

struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, CliError> {
        let get =
            |kind| signal(kind).map_err(|e| CliError::Failed(format!("cannot listen for signals: {e}")));
        Ok(Self {
            hangup: get(SignalKind::hangup())?,
            terminate: get(SignalKind::terminate())?,
            interrupt: get(SignalKind::interrupt())?,
        })
    }

    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Reloads when asked to, until it is time to stop.
async fn supervise(
    args: &Args,
    balancer: &Balancer,
    mut running: Config,
    signals: &mut Signals,
) -> Result<(), CliError> {
    let (sender, mut changes) = mpsc::channel(1);
    let _watcher = if args.no_watch { None } else { Some(watch(&args.config, sender)?) };
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            _ = signals.hangup.recv() => reload(args, balancer, &mut running, true),
            Some(()) = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                while changes.try_recv().is_ok() {}
                reload(args, balancer, &mut running, false);
            }
        }
    }
}

/// Takes over what the file says now. Whatever is wrong with it, the running configuration stays in force.
fn reload(args: &Args, balancer: &Balancer, running: &mut Config, asked: bool) {
    let new = match load(&args.config) {
        Ok(new) => new,
        Err(error) => {
            eprintln!("plimsoll: {error}");
            eprintln!("plimsoll: the running configuration stays in force");
            return;
        }
    };
    let changes = Config::diff(running, &new);
    // Without a difference only a signal has a meaning: the access log was moved away.
    if changes.is_empty() && !asked {
        return;
    }
    if let Err(error) = balancer.reload(new.clone()) {
        eprintln!("plimsoll: cannot take over {}: {error}", args.config.display());
        eprintln!("plimsoll: the running configuration stays in force");
        return;
    }
    eprintln!("plimsoll: read {} again", args.config.display());
    let changes_text = changes.to_string();
    for line in changes_text.lines() {
        eprintln!("plimsoll:   {line}");
    }
    for change in changes.needs_restart() {
        eprintln!("plimsoll: `{}` takes effect at the next start", change.key);
    }
    *running = new;
}

/// Tells `changed` when the file changes. Its directory is watched, because most programs replace files.
fn watch(path: &Path, changed: mpsc::Sender<()>) -> Result<notify::RecommendedWatcher, CliError> {
    let failed = |e: notify::Error| {
        CliError::Failed(format!("cannot watch {}: {e}; use --no-watch to do without", path.display()))
    };
    let absolute = std::path::absolute(path).map_err(|e| failed(notify::Error::io(e)))?;
    let name = absolute.file_name().map(std::ffi::OsStr::to_owned);
    let directory = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let touches = !event.kind.is_access() && event.paths.iter().any(|p| p.file_name() == name.as_deref());
        if touches {
            // A change that is noted already need not be noted twice.
            let _ = changed.try_send(());
        }
    })
    .map_err(failed)?;
    watcher.watch(&directory, RecursiveMode::NonRecursive).map_err(failed)?;
    Ok(watcher)
}
