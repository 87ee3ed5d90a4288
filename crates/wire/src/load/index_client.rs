//! A client of the load index manager.

use std::collections::BTreeMap;

use super::counts::LoadRefusal;
use super::datagram::{Datagram, DatagramFields, DatagramKind, LoadKeys};
use super::index::list_number;
use crate::lease::AgentClock;

/// What the manager says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexAnswer {
    /// This back-end, by its place in the list, has the access.
    Granted {
        /// By which it was asked for, and is released.
        sequence: u64,
        /// Its place in the list.
        backend: usize,
    },
    /// The end of an access is noted.
    Released {
        /// Of the access.
        sequence: u64,
    },
    /// The manager had heard of so many later ones that it cannot tell this one from one that is over: it is not granted. Ask for
    /// another access.
    TooLate {
        /// By which it was asked for.
        sequence: u64,
    },
    /// The manager is known now: send again what it has not answered.
    Renewed {
        /// Of what it answers.
        sequence: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndexState {
    Asked,
    Held,
    Releasing,
}

/// How often something is said again before it is given up: what a client holds has expired long before.
const MOST_REPEATS: u32 = 100;

#[derive(Debug, Clone, Copy)]
struct IndexAccess {
    state: IndexState,
    repeats: u32,
}

/// A client: it makes datagrams, to be repeated until they are answered, and takes the answers.
#[derive(Debug)]
pub struct IndexClient {
    keys: LoadKeys,
    client: u64,
    next_sequence: u64,
    list: u32,
    manager: Option<(u64, AgentClock)>,
    accesses: BTreeMap<u64, IndexAccess>,
    most: usize,
}

impl IndexClient {
    /// A client with this list of back-ends and at most so many accesses at a time. `client` is random.
    #[must_use]
    pub fn new(keys: LoadKeys, client: [u8; 8], backends: &[String], most: usize) -> Self {
        Self {
            keys,
            client: u64::from_le_bytes(client),
            next_sequence: 1,
            list: list_number(backends),
            manager: None,
            accesses: BTreeMap::new(),
            most,
        }
    }

    fn seal(&self, kind: DatagramKind, sequence: u64, now_ns: u64) -> Datagram {
        let (boot, clock_ns) = self.manager.map_or((0, 0), |(boot, clock)| (boot, clock.floor_ns(now_ns)));
        let (first, second) = (0, self.list);
        DatagramFields { kind, boot, client: self.client, sequence, clock_ns, first, second }.seal(&self.keys)
    }

    /// Asks for a back-end; `None` while there are as many accesses as there may be.
    pub fn acquire(&mut self, now_ns: u64) -> Option<(u64, Datagram)> {
        if self.accesses.len() >= self.most {
            return None;
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.accesses.insert(sequence, IndexAccess { state: IndexState::Asked, repeats: 0 });
        Some((sequence, self.seal(DatagramKind::Acquire, sequence, now_ns)))
    }

    /// An access is over, or nobody waits for its back-end any more. `None` if there is no such access.
    pub fn release(&mut self, sequence: u64, now_ns: u64) -> Option<Datagram> {
        *self.accesses.get_mut(&sequence)? = IndexAccess { state: IndexState::Releasing, repeats: 0 };
        Some(self.seal(DatagramKind::Release, sequence, now_ns))
    }

    /// What was said of this access, again. `None` when nothing is unanswered, or after 100 times: then the access is forgotten.
    #[must_use]
    pub fn repeat(&mut self, sequence: u64, now_ns: u64) -> Option<Datagram> {
        let access = self.accesses.get_mut(&sequence)?;
        let kind = match access.state {
            IndexState::Asked => DatagramKind::Acquire,
            IndexState::Releasing => DatagramKind::Release,
            IndexState::Held => return None,
        };
        access.repeats += 1;
        if access.repeats > MOST_REPEATS {
            self.accesses.remove(&sequence);
            return None;
        }
        Some(self.seal(kind, sequence, now_ns))
    }

    /// Nobody repeats what was said of this access any more: it expires at the manager.
    pub fn forget(&mut self, sequence: u64) {
        self.accesses.remove(&sequence);
    }

    /// Tells the manager that this client is still here, so that its accesses do not expire.
    #[must_use]
    pub fn keep(&self, now_ns: u64) -> Datagram {
        self.seal(DatagramKind::Release, 0, now_ns)
    }

    /// Takes a datagram that came in.
    ///
    /// # Errors
    /// Why it is dropped. [`LoadRefusal::Implausible`]: the manager has another list of back-ends.
    pub fn take(&mut self, datagram: &[u8], now_ns: u64) -> Result<IndexAnswer, LoadRefusal> {
        let kinds = [DatagramKind::Grant, DatagramKind::Released, DatagramKind::Renewal];
        let fields = DatagramFields::open(datagram, &kinds, &self.keys)?;
        let DatagramFields { kind, boot, client, sequence, clock_ns, first, second } = fields;
        if client != self.client {
            return Err(LoadRefusal::Replayed);
        }
        if second != self.list {
            return Err(LoadRefusal::Implausible);
        }
        if kind == DatagramKind::Renewal {
            let unanswered =
                self.accesses.get(&sequence).is_some_and(|access| access.state != IndexState::Held);
            let old = self.manager.is_some_and(|(_, clock)| clock.floor_ns(now_ns) > clock_ns);
            let same = self.manager.is_some_and(|(known, _)| known == boot);
            // One that was recorded earlier would make us ask a manager that is gone; we would be told again.
            if !unanswered && sequence != 0 || same && old {
                return Err(LoadRefusal::Late);
            }
            self.manager = Some((boot, AgentClock::new(clock_ns, now_ns)));
            return Ok(IndexAnswer::Renewed { sequence });
        }
        if self.manager.is_none_or(|(known, _)| known != boot) {
            return Err(LoadRefusal::UnknownBoot);
        }
        if let Some((_, clock)) = &mut self.manager {
            clock.observe(clock_ns, now_ns);
        }
        let Some(access) = self.accesses.get_mut(&sequence) else { return Err(LoadRefusal::Late) };
        match (kind, access.state) {
            (DatagramKind::Grant, IndexState::Asked) => {
                *access = IndexAccess { state: IndexState::Held, repeats: 0 };
                Ok(IndexAnswer::Granted { sequence, backend: first as usize })
            }
            (DatagramKind::Released, IndexState::Asked) => {
                self.accesses.remove(&sequence);
                Ok(IndexAnswer::TooLate { sequence })
            }
            (DatagramKind::Released, IndexState::Releasing) => {
                self.accesses.remove(&sequence);
                Ok(IndexAnswer::Released { sequence })
            }
            _ => Err(LoadRefusal::Late),
        }
    }
}
