//! `plimsoll balance`: the live front-end.

pub(super) mod watch;
mod watched_files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use plimsoll_balancer::{Balancer, PreparedBalancer, StartError};
use plimsoll_config::{Config, MechanismKind};
use plimsoll_datapath::privileges::{Identity, PrivilegeDrop, PrivilegeError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::{certificates, privileges};
use crate::error::CliError;
use crate::log::LogArgs;
use watch::{FileWatch, Stamp};
use watched_files::{WatchedFiles, watched_by};

/// Delay between a change of the file and reading it: editors write in several steps.
const SETTLE: Duration = Duration::from_millis(200);
/// How long a stop waits for a reload under way, which may for instance resolve names of back-ends.
const LAST_RELOAD: Duration = Duration::from_secs(10);

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

    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    args.log.start();
    plimsoll_datapath::refuse_unasked_huge_pages();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| CliError::Failed(format!("cannot start: {e}")))?;
    // Before the file is read: whoever changes it may send a signal at once.
    let hangup = runtime.block_on(async { listen(SignalKind::hangup()) })?;
    let seen = Stamp::of(&args.config);
    let config = load(&args.config)?;
    let (balancer, identity) = start(args, &config)?;
    // Only now: until here, these signals end the process at once.
    let mut signals = runtime.block_on(async { BalanceSignals::new(hangup) })?;
    match config.mechanism {
        MechanismKind::Direct => {
            config.listeners.iter().for_each(|at| tracing::info!("distributing connections to {at}"));
        }
        _ => {
            for (at, listener) in balancer.addresses().iter().zip(&config.listeners) {
                tracing::info!("listening on {}://{at}", if listener.tls { "https" } else { "http" });
            }
        }
    }
    warn_of_certificates(&config);
    if let Some(admin) = balancer.admin_address() {
        tracing::info!("admin API on http://{admin}");
    }
    let (files, mut lists) = mpsc::unbounded_channel();
    // Nobody needs it where nothing is watched.
    let _ = files.send(watched_by(&config));
    let reloader = Reloader::start(args.config.clone(), (balancer, config), identity, files)?;
    runtime.block_on(supervise(args, seen, &reloader, (&mut signals, &mut lists)))?;
    // A second signal ends the process without waiting.
    std::thread::spawn(move || {
        runtime.block_on(signals.stop());
        std::process::exit(1);
    });
    tracing::info!("stopping");
    reloader.end()?.stop();
    Ok(())
}

/// Starts a front-end that has given away the privileges it needs no more.
fn start(args: &Args, config: &Config) -> Result<(Balancer, Identity), CliError> {
    let failed = |error: StartError| CliError::Failed(error.to_string());
    let needs = privileges::needs_of_front_end(config, &args.config, !args.no_watch);
    let identity = privileges::front_end(config, &needs).map_err(|error| match error {
        // Whoever wrote the command line is not at fault.
        PrivilegeError::NoUser { .. } => {
            CliError::Failed(format!("{} is not good: user: {error}", args.config.display()))
        }
        error => error.into(),
    })?;
    let prepared = PreparedBalancer::new(config.clone(), identity.user()).map_err(failed)?;
    let kept =
        PrivilegeDrop { identity: &identity, work: privileges::work_of(config), seccomp: config.seccomp };
    privileges::give_away(kept, &needs, "`user` in the configuration")?;
    Ok((prepared.start().map_err(failed)?, identity))
}

fn warn_of_certificates(config: &Config) {
    certificates::warnings(config).iter().for_each(|warning| tracing::warn!("{warning}"));
}

fn load(path: &Path) -> Result<Config, CliError> {
    Config::load(path).map_err(|errors| CliError::config(path, &errors))
}

fn listen(kind: SignalKind) -> Result<Signal, CliError> {
    signal(kind).map_err(|e| CliError::Failed(format!("cannot listen for signals: {e}")))
}

struct BalanceSignals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl BalanceSignals {
    fn new(hangup: Signal) -> Result<Self, CliError> {
        Ok(Self {
            hangup,
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Requests reloads on signals and file changes, until told to stop. Never blocks on a reload.
async fn supervise(
    args: &Args,
    seen: Stamp,
    reloader: &Reloader,
    (signals, lists): (&mut BalanceSignals, &mut mpsc::UnboundedReceiver<BTreeSet<PathBuf>>),
) -> Result<(), CliError> {
    let (sender, mut changes) = mpsc::channel(1);
    let failed = |e| {
        let path = args.config.display();
        CliError::Failed(format!("cannot watch {path}: {e}; use --no-watch to do without"))
    };
    let mut watch = if args.no_watch {
        None
    } else {
        let others = WatchedFiles::new(sender.clone());
        Some((FileWatch::start(&args.config, seen, sender).map_err(failed)?, others))
    };
    let mut settled = None;
    loop {
        let settle = async {
            match settled {
                None => std::future::pending().await,
                Some(at) => tokio::time::sleep_until(at).await,
            }
        };
        tokio::select! {
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            _ = signals.hangup.recv() => reloader.ask(true),
            Some(files) = lists.recv() => watch.iter_mut().for_each(|(_, others)| others.set(&files)),
            Some(()) = changes.recv() => settled = settled.or(Some(tokio::time::Instant::now() + SETTLE)),
            () = settle => {
                settled = None;
                // Symbolic links may have changed.
                if let Some((watch, others)) = &mut watch {
                    if let Err(error) = watch.follow() {
                        tracing::warn!("cannot watch {}: {error}", args.config.display());
                    }
                    others.follow();
                }
                reloader.ask(false);
            }
        }
    }
}

/// Reloads the configuration on its own thread, because that may wait for files and name servers while
/// signals must be handled. Reloads run one after the other; requests during a reload are merged into one.
struct Reloader {
    wake: SyncSender<()>,
    wishes: Arc<Wishes>,
    /// Returns the front-end.
    ended: Receiver<Balancer>,
}

#[derive(Default)]
struct Wishes {
    /// A signal asked for a reload.
    hangup: AtomicBool,
    stop: AtomicBool,
}

impl Reloader {
    fn start(
        path: PathBuf,
        (balancer, mut running): (Balancer, Config),
        identity: Identity,
        files: mpsc::UnboundedSender<BTreeSet<PathBuf>>,
    ) -> Result<Self, CliError> {
        let (wake, woken) = sync_channel(1);
        let (end, ended) = sync_channel(1);
        let wishes = Arc::<Wishes>::default();
        let asked = Arc::clone(&wishes);
        let work = move || {
            let mut told = None;
            while woken.recv().is_ok() && !asked.stop.load(Ordering::Acquire) {
                let by_signal = asked.hangup.swap(false, Ordering::AcqRel);
                let stamp = Stamp::of(&path);
                let Err(refused) = reload(&path, &balancer, &mut running, by_signal) else {
                    let _ = files.send(watched_by(&running));
                    continue;
                };
                // A signal and the change of the file that it follows are one reload.
                let refused = Some((stamp, refused));
                if by_signal || refused != told {
                    refused.iter().for_each(|(_, text)| privileges::tell_refused(text, &identity));
                    tracing::warn!("the running configuration stays in force");
                }
                told = refused;
            }
            // The receiver has given up if it took too long.
            let _ = end.send(balancer);
        };
        std::thread::Builder::new()
            .name("reload".into())
            .spawn(work)
            .map_err(|e| CliError::Failed(format!("cannot start a thread: {e}")))?;
        Ok(Self { wake, wishes, ended })
    }

    /// Asks for a reload, by a signal or because the file changed.
    fn ask(&self, by_signal: bool) {
        if by_signal {
            self.wishes.hangup.store(true, Ordering::Release);
        }
        // A pending request suffices.
        let _ = self.wake.try_send(());
    }

    /// Ends reloads, the one under way included.
    fn end(self) -> Result<Balancer, CliError> {
        self.wishes.stop.store(true, Ordering::Release);
        drop(self.wake);
        self.ended.recv_timeout(LAST_RELOAD).map_err(|error| {
            CliError::Failed(match error {
                RecvTimeoutError::Timeout => {
                    "a reload under way does not come to its end; requests under way are given up".to_owned()
                }
                RecvTimeoutError::Disconnected => "the reload under way has failed".to_owned(),
            })
        })
    }
}

/// Applies the file's current configuration. On any error, which it returns in words, the running one stays in force.
fn reload(path: &Path, balancer: &Balancer, running: &mut Config, asked: bool) -> Result<(), String> {
    let new = load(path).map_err(|error| error.to_string())?;
    let changes = Config::diff(running, &new);
    // Without changes only a signal matters: the access log may have been moved.
    if changes.is_empty() && !asked {
        return Ok(());
    }
    let taken = balancer.reload(new.clone());
    taken.map_err(|error| format!("cannot take over {}: {error}", path.display()))?;
    let lines: String = changes.to_string().lines().map(|line| format!("\n  {line}")).collect();
    tracing::info!("read {} again{lines}", path.display());
    warn_of_certificates(&new);
    for change in changes.needs_restart() {
        tracing::warn!("`{}` takes effect at the next start", change.key);
    }
    *running = new;
    Ok(())
}
