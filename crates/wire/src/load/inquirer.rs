//! Asks agents for their load: the front-end's side.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::counts::{LoadCounters, LoadRefusal};
use super::datagram::{Datagram, DatagramFields, DatagramKind, LoadAnnouncement, LoadKeys, MOST_LOAD};
use crate::lease::AgentClock;

/// Unanswered inquiries in a row after which what is known of an agent's clock is not trusted any more.
const TRUSTED_SILENCE: u32 = 3;

/// Time after which an agent's clock has to be learned again: both may have drifted apart by 60 ms.
const TRUSTED_NS: u64 = 60_000_000_000;

/// Bounds of what is asked and believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InquiryLimits {
    /// Inquiries that may be unanswered at a time.
    pub outstanding: usize,
    /// The highest load that is believed.
    pub most_load: u32,
    /// How old an announcement may be.
    pub stale_after_ns: u64,
}

impl Default for InquiryLimits {
    /// 65,536 inquiries; a load of 65,535; 2 s.
    fn default() -> Self {
        Self { outstanding: 65_536, most_load: MOST_LOAD, stale_after_ns: 2_000_000_000 }
    }
}

/// What is known of an agent.
#[derive(Debug, Clone, Copy)]
struct Peer {
    boot: u64,
    clock: AgentClock,
    heard_at_ns: u64,
    /// Of the last announcement that was taken.
    announced: u64,
    /// Whether boot id and clock may be used: otherwise they are learned again.
    is_trusted: bool,
    unanswered: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Outstanding {
    pub(super) peer: usize,
    asked_at_ns: u64,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadTaken {
    /// The load of an agent's back-end.
    Load {
        /// The agent that was asked.
        peer: usize,
        /// Of the inquiry.
        sequence: u64,
        /// Active accesses.
        load: u32,
        /// In microseconds, as in [`latency_us`](super::LoadReply::latency_us) of a reply; 0 where it is not known.
        latency_us: u32,
        /// Time since the inquiry.
        round_trip_ns: u64,
    },
    /// The agent did not know us or we not it; now we do, and it can be asked again.
    Renewed {
        /// The agent that was asked.
        peer: usize,
        /// Of the inquiry.
        sequence: u64,
    },
    /// The agent tells a load that no back-end has. It is counted as refused.
    Implausible {
        /// The agent that was asked.
        peer: usize,
        /// Of the inquiry.
        sequence: u64,
    },
}

/// An announcement that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// Whose it is.
    pub peer: usize,
    /// Active accesses; `None` where it tells a load that no back-end has, which is counted as refused.
    pub load: Option<u32>,
    /// In microseconds, as in [`latency_us`](super::LoadReply::latency_us) of a reply; 0 where it is not known.
    pub latency_us: u32,
    /// Mean time between two announcements.
    pub interval_ns: u64,
}

/// Asks agents, each known by a number of the caller's choice. Bounded; what comes late is counted and never used.
#[derive(Debug)]
pub struct LoadInquirer {
    keys: LoadKeys,
    client: u64,
    next_sequence: u64,
    peers: BTreeMap<usize, Peer>,
    /// By boot id, for announcements.
    boots: BTreeMap<u64, usize>,
    outstanding: BTreeMap<u64, Outstanding>,
    limits: InquiryLimits,
    counters: Arc<LoadCounters>,
}

impl LoadInquirer {
    /// One that knows no agent yet. `client` is random.
    #[must_use]
    pub fn new(keys: LoadKeys, client: [u8; 8], limits: InquiryLimits) -> Self {
        Self {
            keys,
            client: u64::from_le_bytes(client),
            next_sequence: 1,
            peers: BTreeMap::new(),
            boots: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            limits,
            counters: Arc::default(),
        }
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> Arc<LoadCounters> {
        Arc::clone(&self.counters)
    }

    /// Whether the boot id of this agent is known, so that its answer will tell a load.
    #[must_use]
    pub fn knows(&self, peer: usize) -> bool {
        self.trusted(peer).is_some()
    }

    fn trusted(&self, peer: usize) -> Option<&Peer> {
        self.peers.get(&peer).filter(|known| known.is_trusted)
    }

    /// Forgets an agent: another one has its number now, or none.
    pub fn forget(&mut self, peer: usize) {
        if let Some(known) = self.peers.remove(&peer) {
            self.unbind(peer, known.boot);
        }
        self.outstanding.retain(|_, asked| asked.peer != peer);
    }

    /// An inquiry to this agent, with its sequence number; `None` while too many are unanswered.
    pub fn ask(&mut self, peer: usize, now_ns: u64) -> Option<(u64, Datagram)> {
        self.ask_as(DatagramKind::Inquiry, peer, now_ns)
    }

    pub(super) fn ask_as(&mut self, kind: DatagramKind, peer: usize, now_ns: u64) -> Option<(u64, Datagram)> {
        if self.outstanding.len() >= self.limits.outstanding {
            return None;
        }
        if self.trusted(peer).is_some_and(|known| {
            known.unanswered >= TRUSTED_SILENCE || now_ns.saturating_sub(known.heard_at_ns) > TRUSTED_NS
        }) {
            self.forget_clock(peer);
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let known = self.trusted(peer).map(|known| (known.boot, known.clock.floor_ns(now_ns)));
        let (boot, clock_ns) = known.unwrap_or((0, 0));
        self.outstanding.insert(sequence, Outstanding { peer, asked_at_ns: now_ns });
        let client = self.client;
        let inquiry = DatagramFields { kind, boot, client, sequence, clock_ns, first: 0, second: 0 };
        Some((sequence, inquiry.seal(&self.keys)))
    }

    /// Boot id and clock are to be learned again; which announcements were taken stays known.
    fn forget_clock(&mut self, peer: usize) {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.is_trusted = false;
            let boot = known.boot;
            self.unbind(peer, boot);
        }
    }

    /// Announcements of this boot id are not this agent's any more, but another one's that has it, too.
    fn unbind(&mut self, peer: usize, boot: u64) {
        if self.boots.get(&boot) != Some(&peer) {
            return;
        }
        let has_it =
            |(number, known): &(&usize, &Peer)| **number != peer && known.is_trusted && known.boot == boot;
        match self.peers.iter().find(has_it) {
            Some((&other, _)) => self.boots.insert(boot, other),
            None => self.boots.remove(&boot),
        };
    }

    /// Nobody waits for the answer to this inquiry any more.
    pub fn give_up(&mut self, sequence: u64) {
        if let Some(asked) = self.outstanding.remove(&sequence)
            && let Some(known) = self.peers.get_mut(&asked.peer)
        {
            known.unanswered = known.unanswered.saturating_add(1);
        }
    }

    /// Takes a datagram that came in.
    ///
    /// # Errors
    /// Why it is dropped; it is counted.
    pub fn take(&mut self, datagram: &[u8], now_ns: u64) -> Result<LoadTaken, LoadRefusal> {
        let taken = self.try_take(datagram, now_ns);
        match taken {
            Ok(LoadTaken::Load { .. }) => self.counters.take(),
            Ok(LoadTaken::Renewed { .. }) => self.counters.renew(),
            Ok(LoadTaken::Implausible { .. }) => self.counters.refuse(LoadRefusal::Implausible),
            Err(why) => self.counters.refuse(why),
        }
        taken
    }

    fn try_take(&mut self, datagram: &[u8], now_ns: u64) -> Result<LoadTaken, LoadRefusal> {
        let (asked, sequence, fields) = self.heard(datagram, DatagramKind::Reply, now_ns)?;
        let peer = asked.peer;
        let Some(DatagramFields { first: load, second: latency_us, .. }) = fields else {
            return Ok(LoadTaken::Renewed { peer, sequence });
        };
        if load > self.limits.most_load {
            return Ok(LoadTaken::Implausible { peer, sequence });
        }
        let round_trip_ns = now_ns.saturating_sub(asked.asked_at_ns);
        Ok(LoadTaken::Load { peer, sequence, load, latency_us, round_trip_ns })
    }

    /// An answer of this kind, or a renewal, which has no fields: what it is an answer to, and its sequence number.
    pub(super) fn heard(
        &mut self,
        datagram: &[u8],
        kind: DatagramKind,
        now_ns: u64,
    ) -> Result<(Outstanding, u64, Option<DatagramFields>), LoadRefusal> {
        let reply = DatagramFields::open(datagram, &[kind, DatagramKind::Renewal], &self.keys)?;
        // The reply to another instance, or to this one, was sent again or is late.
        if reply.client != self.client {
            return Err(LoadRefusal::Replayed);
        }
        let sequence = reply.sequence;
        let asked = *self.outstanding.get(&sequence).ok_or(LoadRefusal::Late)?;
        if reply.kind == DatagramKind::Renewal {
            self.outstanding.remove(&sequence);
            self.learn(asked.peer, &reply, now_ns);
            return Ok((asked, sequence, None));
        }
        let known = self.peers.get_mut(&asked.peer);
        // The agent has restarted meanwhile, and another inquiry has shown it.
        let known = known
            .filter(|known| known.is_trusted && known.boot == reply.boot)
            .ok_or(LoadRefusal::UnknownBoot)?;
        self.outstanding.remove(&sequence);
        known.unanswered = 0;
        known.heard_at_ns = now_ns;
        known.clock.observe(reply.clock_ns, now_ns);
        Ok((asked, sequence, Some(reply)))
    }

    pub(super) fn counters_ref(&self) -> &LoadCounters {
        &self.counters
    }

    fn learn(&mut self, peer: usize, renewal: &DatagramFields, now_ns: u64) {
        let clock = AgentClock::new(renewal.clock_ns, now_ns);
        let boot = renewal.boot;
        // Also where it had another number: what was taken is not taken again.
        let numbers = [Some(peer), self.boots.get(&boot).copied()].into_iter().flatten();
        let same = numbers.filter_map(|number| self.peers.get(&number)).filter(|known| known.boot == boot);
        let announced = same.map(|known| known.announced).max().unwrap_or(0);
        self.forget_clock(peer);
        let known = Peer { boot, clock, heard_at_ns: now_ns, announced, is_trusted: true, unanswered: 0 };
        self.peers.insert(peer, known);
        // Two numbers for one agent: announcements count for the one that was asked last.
        self.boots.insert(boot, peer);
    }

    /// Takes an announcement that came in. One from a boot id that is not known is refused: ask that agent, by its address.
    ///
    /// # Errors
    /// Why it is dropped; it is counted.
    pub fn take_announcement(&mut self, datagram: &[u8], now_ns: u64) -> Result<Announced, LoadRefusal> {
        let taken = self.try_take_announcement(datagram, now_ns);
        match taken {
            Ok(Announced { load: Some(_), .. }) => self.counters.take(),
            Ok(_) => self.counters.refuse(LoadRefusal::Implausible),
            Err(why) => self.counters.refuse(why),
        }
        taken
    }

    fn try_take_announcement(&mut self, datagram: &[u8], now_ns: u64) -> Result<Announced, LoadRefusal> {
        let LoadAnnouncement { boot, sequence, clock_ns, interval_ns, load, latency_us } =
            LoadAnnouncement::open(datagram, &self.keys)?;
        let peer = *self.boots.get(&boot).ok_or(LoadRefusal::UnknownBoot)?;
        let known = self.peers.get_mut(&peer).ok_or(LoadRefusal::UnknownBoot)?;
        if sequence <= known.announced {
            return Err(LoadRefusal::Replayed);
        }
        if known.clock.floor_ns(now_ns).saturating_sub(clock_ns) > self.limits.stale_after_ns {
            return Err(LoadRefusal::Stale);
        }
        known.announced = sequence;
        known.heard_at_ns = now_ns;
        known.clock.observe(clock_ns, now_ns);
        let load = Some(load).filter(|&load| load <= self.limits.most_load);
        Ok(Announced { peer, load, latency_us, interval_ns })
    }
}
