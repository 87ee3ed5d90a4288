//! The threads of the mechanism: the switch's loop, and one that tells it of back-ends and of the configuration.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_config::Config;
use plimsoll_policy::BackendId;
use plimsoll_switch::{ConnTimes, SwitchBackend, SwitchCommand, SwitchLoop, SwitchOptions};

use super::dispatching::Dispatching;
use super::members::{Ways, addresses, members};
use super::sniffing::sniff;
use super::system::{DirectSystem, ShownConns, tunnel_kind};
use crate::shared::FrontEndShared;

/// How often back-ends are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long ways are looked for before anything is told of back-ends.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The running threads.
pub(crate) struct DirectThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl DirectThreads {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no thread to give, or the kernel refuses what the loop needs.
    pub(crate) fn start(shared: &Arc<FrontEndShared>, system: &Arc<DirectSystem>) -> io::Result<Self> {
        let by = Dispatching { dispatch: Arc::clone(shared.dispatch.first()), hash: shared.hash };
        let options = options(&shared.config.load(), shared.hash.table_seed());
        let switch_loop =
            SwitchLoop::new(Arc::clone(&system.switch), by, options).map_err(io::Error::other)?;
        let (sender, receiver) = channel();
        let mut running = Self { stop: Arc::default(), threads: Vec::new() };
        let work = {
            let (system, shared) = (Arc::clone(system), Arc::clone(shared));
            move || run(switch_loop, &receiver, (&system, &shared))
        };
        let started = running.spawn("switch", work).and_then(|()| {
            let (shared, stop) = (Arc::clone(shared), Arc::clone(&running.stop));
            running.spawn("switch-members", move || tell(&shared, &sender, &stop))
        });
        let started = started.and_then(|()| {
            let (system, shared, stop) = (Arc::clone(system), Arc::clone(shared), Arc::clone(&running.stop));
            running.spawn("sniffer", move || sniff(&shared, &system, &stop))
        });
        match started {
            Ok(()) => Ok(running),
            Err(error) => {
                running.stop();
                Err(error)
            }
        }
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(std::thread::Builder::new().name(name.into()).spawn(work)?);
        Ok(())
    }

    /// Ends the threads: connections go on without them.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the switch ended by a panic");
            }
        }
    }
}

fn run(
    switch_loop: SwitchLoop<Dispatching>,
    commands: &Receiver<SwitchCommand>,
    (system, shared): (&DirectSystem, &FrontEndShared),
) {
    let named = |id: BackendId| shared.backends.load().get(id.index()).map(|b| Arc::clone(&b.name));
    let look = |running: &SwitchLoop<Dispatching>| {
        let book = running.book();
        let named = |(holder, backend): (_, &SwitchBackend)| Some((holder, backend.id, named(backend.id)?));
        let holders: Vec<_> = running.backends().filter_map(named).collect();
        system.show(ShownConns {
            conns: book.len(),
            opening: book.opening(),
            prepared: book.prepared(),
            counts: book.counts(),
            handshakes: holders.iter().map(|(holder, _, _)| book.handshakes(*holder)).collect(),
            holders,
        });
    };
    if let Err(error) = switch_loop.run(commands, look) {
        tracing::error!(%error, "the policy chooses no more: new connections go by the hash");
    }
}

/// Tells the loop of changes, until the front-end stops.
fn tell(shared: &FrontEndShared, to: &Sender<SwitchCommand>, stop: &AtomicBool) {
    let mut config = shared.config.load_full();
    let shared_addresses = config.listeners.iter().map(|listener| listener.address.ip().to_canonical());
    let by = config.direct.as_ref().and_then(|direct| tunnel_kind(direct.via));
    let mut ways = Ways::new(by, shared_addresses.collect());
    let mut told: Option<Vec<SwitchBackend>> = None;
    // Until then the packet program does what the process before told it.
    ways.find(&addresses(shared), FIRST_WAIT);
    while !stop.load(Ordering::Relaxed) {
        let now = shared.config.load_full();
        let mut commands = Vec::new();
        if !Arc::ptr_eq(&now, &config) {
            commands.push(SwitchCommand::Options(options(&now, shared.hash.table_seed())));
            config = now;
        }
        let found = members(shared, &ways);
        if told.as_ref() != Some(&found) {
            told = Some(found.clone());
            commands.push(SwitchCommand::Backends(found));
        }
        // The loop has ended, and has said why.
        if commands.into_iter().any(|command| to.send(command).is_err()) {
            return;
        }
        // After the news of health, which must not wait for it.
        ways.look(&addresses(shared));
        std::thread::sleep(LOOK);
    }
}

fn options(config: &Config, seed: u64) -> SwitchOptions {
    let times = ConnTimes::default();
    let Some(direct) = &config.direct else { return SwitchOptions { depth: 1, times, seed } };
    let times = ConnTimes { idle: direct.idle_timeout, datagrams: direct.datagram_timeout, ..times };
    SwitchOptions { depth: direct.choices, times, seed }
}
