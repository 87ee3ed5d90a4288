//! The loop of the switch's thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use plimsoll_datapath::switch::{
    ConnEntry, ConnHolder, ConnTable, MOST_BACKENDS, Switch, SwitchConn, Transport,
};
use plimsoll_datapath::{DatapathError, now_ns};

use crate::backends::{KnownBackends, SwitchBackend};
use crate::book::{ConnBook, Seen};
use crate::distributor::Distributor;
use crate::rings::FilledRings;
use crate::times::ConnTimes;

/// How long events are waited for, and so how long a command may wait.
const WAIT: Duration = Duration::from_millis(20);
/// A pause after events that leave the rings half full at least: so that many are read at a time.
const GATHER: Duration = Duration::from_micros(500);
/// Between two sweeps.
const SWEEP: Duration = Duration::from_secs(2);

/// How a switch distributes connections.
#[derive(Debug, Clone, Copy)]
pub struct SwitchOptions {
    /// Choices that are made ahead for each CPU on which connections begin, 1 to
    /// [`plimsoll_datapath::switch::MOST_CHOICES`].
    pub depth: usize,
    /// When connections are over whose clients are silent.
    pub times: ConnTimes,
    /// Seed of the table of connections, and secret.
    pub seed: u64,
}

/// What the loop is told.
#[derive(Debug)]
pub enum SwitchCommand {
    /// These are the back-ends from now on.
    Backends(Vec<SwitchBackend>),
    /// These are the services from now on.
    Services(Vec<(SocketAddr, Transport)>),
    /// So it distributes from now on.
    Options(SwitchOptions),
}

/// The switch in user space: one thread's loop.
pub struct SwitchLoop<D: Distributor> {
    switch: Arc<Switch>,
    by: D,
    book: ConnBook<D::Assignment>,
    rings: FilledRings,
    backends: KnownBackends,
    options: SwitchOptions,
    last_sweep: Option<Instant>,
}

impl<D: Distributor> SwitchLoop<D> {
    /// Takes over what an earlier process has left: its choices are withdrawn, and its connections are counted once the back-ends
    /// are known.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(switch: Arc<Switch>, by: D, options: SwitchOptions) -> Result<Self, DatapathError> {
        // Microseconds since the machine started: larger than any number of an earlier process.
        let rings = FilledRings::new(switch.choices()?, options.depth, now_ns() / 1000);
        let backends = KnownBackends::new(switch.known_backends()?);
        let tables = [ConnTable::Established, ConnTable::Opening];
        let most = tables.into_iter().map(|table| switch.capacity(table) as usize).sum();
        let book = ConnBook::new(options.seed, most);
        Ok(Self { switch, by, book, rings, backends, options, last_sweep: None })
    }

    /// The account of connections.
    #[must_use]
    pub fn book(&self) -> &ConnBook<D::Assignment> {
        &self.book
    }

    /// The back-ends, with what the packet program knows them by.
    pub fn backends(&self) -> impl Iterator<Item = (ConnHolder, &SwitchBackend)> {
        self.backends.iter()
    }

    /// Who decides and counts.
    #[must_use]
    pub fn distributor(&self) -> &D {
        &self.by
    }

    /// Runs until the sender of commands is gone; calls `look` after each round. Choices are withdrawn then; connections go on.
    ///
    /// # Errors
    /// The kernel's, when it cannot go on.
    pub fn run(
        mut self,
        commands: &Receiver<SwitchCommand>,
        mut look: impl FnMut(&Self),
    ) -> Result<(), DatapathError> {
        let mut events = self.switch.events()?;
        // What is told of earlier times is in the tables, too.
        while events.wait(Duration::ZERO, |_| {})? > 0 {}
        loop {
            loop {
                match commands.try_recv() {
                    Ok(command) => self.obey(command)?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        self.rings.withdraw(&mut self.book, &mut self.by);
                        self.book.clear(&mut self.by);
                        return Ok(());
                    }
                }
            }
            let Self { book, by, backends, .. } = &mut self;
            let count = events.wait(WAIT, |event| book.hear(&event, backends.usable(event.holder), by))?;
            let left = self.fill();
            if self.last_sweep.is_none_or(|last| last.elapsed() >= SWEEP) {
                self.sweep()?;
            }
            look(&self);
            if count > 0 && left >= 0.5 {
                std::thread::sleep(GATHER);
            }
        }
    }

    /// Fills the rings, unless so many connections are opening that further ones would push these out of the packet program's
    /// table: then somebody floods us with forged packets, and new connections go by the hash, which needs no memory.
    fn fill(&mut self) -> f64 {
        if self.book.opening() * 2 > self.switch.capacity(ConnTable::Opening) as usize {
            return 1.0;
        }
        let Self { rings, book, by, backends, .. } = self;
        rings.fill(book, by, |backend| backends.taking(backend), Instant::now())
    }

    fn obey(&mut self, command: SwitchCommand) -> Result<(), DatapathError> {
        match command {
            SwitchCommand::Backends(backends) => self.set_backends(backends),
            SwitchCommand::Services(services) => self.switch.set_services(&services),
            SwitchCommand::Options(options) => {
                self.rings.set_depth(options.depth);
                // Another policy may decide now.
                self.rings.withdraw(&mut self.book, &mut self.by);
                self.options = options;
                Ok(())
            }
        }
    }

    fn set_backends(&mut self, backends: Vec<SwitchBackend>) -> Result<(), DatapathError> {
        let changes = self.backends.replace(backends);
        // First those that are new, so that nothing leads to one that is not there yet.
        for (holder, backend) in &changes.set {
            // One whose address does not do, such as a multicast MAC, must not keep the others from being told.
            let told = self.switch.set_tunnel(holder.backend, backend.tunnel.as_ref());
            let told = told.and_then(|()| {
                self.switch.set_tagged_backend(*holder, backend.key, backend.way(), backend.tag)
            });
            if let Err(error) = told {
                tracing::error!(backend = holder.backend, "a back-end gets nothing: {error}");
            }
        }
        if changes.without_index > 0 {
            tracing::error!(
                "{} back-ends get nothing: a switch has at most {MOST_BACKENDS}",
                changes.without_index
            );
        }
        if changes.chooses_anew {
            self.switch.set_table(&self.backends.table())?;
            self.rings.withdraw(&mut self.book, &mut self.by);
        }
        for holder in changes.lost {
            let count = self.book.lose(holder, &mut self.by);
            if count > 0 {
                tracing::warn!(
                    backend = holder.backend,
                    connections = count,
                    "connections are lost with their back-end"
                );
            }
        }
        Ok(())
    }

    /// Compares the account with the tables, and forgets what is past there.
    fn sweep(&mut self) -> Result<(), DatapathError> {
        self.last_sweep = Some(Instant::now());
        let began_ns = now_ns();
        self.book.start_sweep();
        let mut departed = self.backends.departed();
        for table in ConnTable::ALL {
            let mut past: Vec<(SwitchConn, ConnEntry)> = Vec::new();
            let Self { switch, book, by, backends, options, .. } = self;
            switch.for_each(table, |conn, entry| {
                let is_past = options.times.is_past(&conn, table, &entry, began_ns);
                let about = (backends.usable(entry.holder), is_past);
                if book.see(&conn, (table, &entry), about, by) == Seen::Past {
                    past.push((conn, entry));
                } else {
                    departed.retain(|holder| *holder != entry.holder);
                }
            })?;
            for (conn, entry) in past {
                switch.remove(table, &conn, &entry)?;
            }
        }
        let mut gone = self.book.unseen(began_ns);
        let mut result = Ok(());
        gone.retain(|(conn, choice)| match self.switch.get(conn) {
            Ok(found) => found.is_none_or(|(_, entry)| entry.choice != *choice || entry.is_over()),
            Err(error) => {
                result = Err(error);
                false
            }
        });
        result?;
        let waiting = self.rings.waiting();
        self.book.finish_sweep(&gone, &waiting, &mut self.by);
        for holder in departed {
            if let Some(backend) = self.backends.forget(holder) {
                self.switch.set_backend(holder, backend.key, backend.way())?;
            }
        }
        Ok(())
    }
}
