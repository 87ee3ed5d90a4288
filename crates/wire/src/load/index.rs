//! The load index manager: it knows every queue, because all accesses are told to it.
//!
//! A client asks for a back-end; the manager returns the one with the shortest queue, ties at random, and counts the access.
//! When it is over the client tells the manager, which counts it down. Both are idempotent by sequence number, so a client may
//! repeat what was not answered. What a client holds expires when nothing is heard of it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::clients::SequenceWindow;
use super::counts::{LoadCounters, LoadRefusal};
use super::datagram::{Datagram, DatagramFields, DatagramKind, LoadKeys};
use super::gate::{AnswerGate, AnswerLimits, BootId, Freshly};

/// Bounds of a load index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexLimits {
    /// Bounds of what it answers.
    pub answers: AnswerLimits,
    /// Accesses that one client may have at a time.
    pub accesses_per_client: usize,
    /// How long nothing may be heard of a client that has accesses.
    pub expires_after_ns: u64,
}

impl Default for IndexLimits {
    /// 65,536 accesses per client; 5 s.
    fn default() -> Self {
        Self {
            answers: AnswerLimits::default(),
            accesses_per_client: 65_536,
            expires_after_ns: 5_000_000_000,
        }
    }
}

#[derive(Debug, Default)]
struct IndexHolder {
    /// Accesses that are not over: by the sequence number by which each was asked for, its back-end.
    accesses: BTreeMap<u64, u32>,
    /// Sequence numbers that were granted, or released before they were.
    used: SequenceWindow,
    seen_at_ns: u64,
}

/// The manager.
#[derive(Debug)]
pub struct LoadIndex {
    gate: AnswerGate,
    limits: IndexLimits,
    /// By back-end.
    queues: Vec<u32>,
    /// Of the list of back-ends, so that a client with another list is told.
    list: u32,
    clients: BTreeMap<u64, IndexHolder>,
    expired_at_ns: u64,
    random: u64,
}

impl LoadIndex {
    /// A manager of the back-ends with these names, in this order. `seed` is a secret random number.
    #[must_use]
    pub fn new(keys: LoadKeys, boot: BootId, backends: &[String], limits: IndexLimits, seed: u64) -> Self {
        Self {
            gate: AnswerGate::new(keys, boot, limits.answers, seed),
            limits,
            queues: vec![0; backends.len()],
            list: list_number(backends),
            clients: BTreeMap::new(),
            expired_at_ns: 0,
            random: seed | 1,
        }
    }

    /// Datagrams so far that nobody with the key has made.
    #[must_use]
    pub fn unauthentic(&self) -> u64 {
        self.gate.counters().unauthentic()
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> Arc<LoadCounters> {
        Arc::clone(self.gate.counters())
    }

    /// Lengths of all queues, by back-end.
    #[must_use]
    pub fn queues(&self) -> &[u32] {
        &self.queues
    }

    /// The answer to a datagram from `source`, if it gets one.
    pub fn answer(&mut self, source: IpAddr, datagram: &[u8], now_ns: u64) -> Option<Datagram> {
        self.expire(now_ns);
        let answer = self.try_answer(source, datagram, now_ns);
        self.gate.seal(answer)
    }

    fn try_answer(
        &mut self,
        source: IpAddr,
        datagram: &[u8],
        now_ns: u64,
    ) -> Result<DatagramFields, LoadRefusal> {
        let kinds = [DatagramKind::Acquire, DatagramKind::Release];
        let asked = DatagramFields::open(datagram, &kinds, self.gate.keys())?;
        let answer = DatagramFields {
            kind: DatagramKind::Renewal,
            boot: self.gate.boot(),
            clock_ns: now_ns,
            first: 0,
            second: self.list,
            ..asked
        };
        // Each is repeated until it is answered, so its number tells nothing.
        let asker = (asked.client, None);
        if matches!(self.gate.check(source, asker, (asked.boot, asked.clock_ns), now_ns)?, Freshly::Renew) {
            return Ok(answer);
        }
        self.gate.admit(source, now_ns)?;
        if asked.kind == DatagramKind::Acquire {
            match self.acquire(asked.client, asked.sequence, now_ns)? {
                Some(backend) => Ok(DatagramFields { kind: DatagramKind::Grant, first: backend, ..answer }),
                None => Ok(DatagramFields { kind: DatagramKind::Released, ..answer }),
            }
        } else {
            self.release(asked.client, asked.sequence, now_ns);
            Ok(DatagramFields { kind: DatagramKind::Released, ..answer })
        }
    }

    /// The back-end of an access; `None` where its number is too far behind to know whether it was over before.
    fn acquire(&mut self, client: u64, sequence: u64, now_ns: u64) -> Result<Option<u32>, LoadRefusal> {
        let backend = self.shortest().ok_or(LoadRefusal::Full)?;
        if !self.clients.contains_key(&client) && self.clients.len() >= self.limits.answers.clients {
            return Err(LoadRefusal::Full);
        }
        let holder = self.clients.entry(client).or_default();
        if let Some(&granted) = holder.accesses.get(&sequence) {
            holder.seen_at_ns = now_ns;
            return Ok(Some(granted));
        }
        if holder.used.is_before(sequence) {
            return Ok(None);
        }
        if holder.used.has(sequence) {
            return Err(LoadRefusal::Replayed);
        }
        if holder.accesses.len() >= self.limits.accesses_per_client {
            return Err(LoadRefusal::Full);
        }
        holder.seen_at_ns = now_ns;
        holder.used.enter(sequence);
        holder.accesses.insert(sequence, backend);
        if let Some(queue) = self.queues.get_mut(backend as usize) {
            *queue = queue.saturating_add(1);
        }
        Ok(Some(backend))
    }

    fn release(&mut self, client: u64, sequence: u64, now_ns: u64) {
        let Some(holder) = self.clients.get_mut(&client) else { return };
        holder.seen_at_ns = now_ns;
        // What asks for an access that is over may still be under way: it is not granted.
        if !holder.used.has(sequence) {
            holder.used.enter(sequence);
        }
        if let Some(backend) = holder.accesses.remove(&sequence)
            && let Some(queue) = self.queues.get_mut(backend as usize)
        {
            *queue = queue.saturating_sub(1);
        }
    }

    fn shortest(&mut self) -> Option<u32> {
        let least = *self.queues.iter().min()?;
        let ties = self.queues.iter().filter(|&&queue| queue == least).count();
        // Xorshift64 (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let chosen = usize::try_from(self.random >> 16).unwrap_or(0) % ties;
        let at = self.queues.iter().enumerate().filter(|&(_, &queue)| queue == least).nth(chosen)?.0;
        u32::try_from(at).ok()
    }

    /// Ends what clients hold of whom nothing was heard.
    fn expire(&mut self, now_ns: u64) {
        const INTERVAL_NS: u64 = 100_000_000;
        if now_ns.saturating_sub(self.expired_at_ns) < INTERVAL_NS {
            return;
        }
        self.expired_at_ns = now_ns;
        let (queues, limit_ns) = (&mut self.queues, self.limits.expires_after_ns);
        // Not before whatever the client has sent is stale.
        let limit_ns = limit_ns.max(self.gate.forget_after_ns());
        self.clients.retain(|_, holder| {
            let here = now_ns.saturating_sub(holder.seen_at_ns) <= limit_ns;
            if !here {
                holder.accesses.values().for_each(|&backend| {
                    if let Some(queue) = queues.get_mut(backend as usize) {
                        *queue = queue.saturating_sub(1);
                    }
                });
            }
            here
        });
    }
}

/// A number of a list of back-ends.
pub(super) fn list_number(backends: &[String]) -> u32 {
    let mut hasher = blake3::Hasher::new();
    for name in backends {
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
    }
    let hash = hasher.finalize();
    let bytes = hash.as_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
