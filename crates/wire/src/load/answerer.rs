//! Answers inquiries: the agent's side.

use std::net::IpAddr;
use std::sync::Arc;

use super::clients::ClientWindows;
use super::counts::{LoadCounters, LoadRefusal};
use super::datagram::{Datagram, Inquiry, LoadKeys, LoadReply, MOST_LOAD};
use super::renewals::Renewals;
use crate::source_rates::SourceRates;

/// A random number other than 0 of one run of an agent, with which all that it sends can be told from what an earlier run sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootId(u64);

impl BootId {
    /// From random bytes.
    #[must_use]
    pub fn new(random: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(random).max(1))
    }

    /// The number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Bounds of what an agent answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Clients whose sequence numbers are kept.
    pub clients: usize,
    /// Inquiries in a second from one source (an IPv4 address, a /64 of IPv6).
    pub per_source_s: u32,
    /// Renewals in a second to one source, and a tenth of that to one client.
    pub renewals_per_source_s: u32,
    /// How old an inquiry may be.
    pub stale_after_ns: u64,
    /// How far it may be ahead of the agent's clock.
    pub ahead_ns: u64,
}

impl Default for AnswerLimits {
    /// 4,096 clients; 50,000 inquiries and 1,000 renewals in a second; 2 s old; 1 s ahead.
    fn default() -> Self {
        Self {
            clients: 4096,
            per_source_s: 50_000,
            renewals_per_source_s: 1000,
            stale_after_ns: 2_000_000_000,
            ahead_ns: 1_000_000_000,
        }
    }
}

/// What is checked of a datagram by age and sequence, for inquiries and for the load index.
#[derive(Debug)]
pub(super) struct Freshness {
    pub(super) limits: AnswerLimits,
    pub(super) boot: BootId,
    renewals: Renewals,
}

/// Whether a datagram is of this boot id and now.
pub(super) enum Freshly {
    Now,
    /// The boot id is another one: it may ask again with this one.
    Renew,
}

impl Freshness {
    /// `seed` is a secret random number.
    pub(super) fn new(limits: AnswerLimits, boot: BootId, seed: u64) -> Self {
        Self { limits, boot, renewals: Renewals::new(limits.renewals_per_source_s, seed) }
    }

    /// `number` is that of what `client` has sent, where each has another one.
    pub(super) fn check(
        &mut self,
        source: IpAddr,
        (client, number): (u64, Option<u64>),
        (boot, clock_ns): (u64, u64),
        now_ns: u64,
    ) -> Result<Freshly, LoadRefusal> {
        if boot != self.boot.number() {
            return self.renewals.admit(source, client, number, now_ns).map(|()| Freshly::Renew);
        }
        let is_stale = now_ns.saturating_sub(clock_ns) > self.limits.stale_after_ns;
        if is_stale || clock_ns.saturating_sub(now_ns) > self.limits.ahead_ns {
            return Err(LoadRefusal::Stale);
        }
        Ok(Freshly::Now)
    }

    pub(super) fn forget_after_ns(&self) -> u64 {
        self.limits.stale_after_ns.saturating_add(self.limits.ahead_ns)
    }
}

/// Answers inquiries. It allocates only when a new client comes.
#[derive(Debug)]
pub struct LoadAnswerer {
    keys: LoadKeys,
    fresh: Freshness,
    clients: ClientWindows,
    rates: SourceRates,
    counters: Arc<LoadCounters>,
}

impl LoadAnswerer {
    /// An answerer of this run of an agent. `seed` is a secret random number.
    #[must_use]
    pub fn new(keys: LoadKeys, boot: BootId, limits: AnswerLimits, seed: u64) -> Self {
        let fresh = Freshness::new(limits, boot, seed.rotate_left(17));
        let clients = ClientWindows::new(limits.clients, fresh.forget_after_ns());
        let rates = SourceRates::new(limits.per_source_s, limits.per_source_s.div_ceil(10), seed);
        Self { keys, fresh, clients, rates, counters: Arc::default() }
    }

    /// Datagrams so far that nobody with the key has made.
    #[must_use]
    pub fn unauthentic(&self) -> u64 {
        self.counters.unauthentic()
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> Arc<LoadCounters> {
        Arc::clone(&self.counters)
    }

    /// The answer to a datagram from `source`, if it gets one. `load` gives load and response time in microseconds.
    pub fn answer(
        &mut self,
        source: IpAddr,
        datagram: &[u8],
        now_ns: u64,
        load: impl FnOnce() -> (u32, u32),
    ) -> Option<Datagram> {
        match self.try_answer(source, datagram, now_ns, load) {
            Ok(reply) => {
                if reply.load.is_some() {
                    self.counters.take();
                } else {
                    self.counters.renew();
                }
                Some(reply.seal(&self.keys))
            }
            Err(why) => {
                self.counters.refuse(why);
                None
            }
        }
    }

    fn try_answer(
        &mut self,
        source: IpAddr,
        datagram: &[u8],
        now_ns: u64,
        load: impl FnOnce() -> (u32, u32),
    ) -> Result<LoadReply, LoadRefusal> {
        let Inquiry { boot, client, sequence, clock_ns } = Inquiry::open(datagram, &self.keys)?;
        if self.clients.has_seen(client, sequence) {
            return Err(LoadRefusal::Replayed);
        }
        let reply = LoadReply {
            boot: self.fresh.boot.number(),
            client,
            sequence,
            clock_ns: now_ns,
            load: None,
            latency_us: 0,
        };
        let asker = (client, Some(sequence));
        if matches!(self.fresh.check(source, asker, (boot, clock_ns), now_ns)?, Freshly::Renew) {
            return Ok(reply);
        }
        // Only what is neither forged nor repeated counts against the rate of its source: nobody else can use it up.
        if !self.rates.admits(source, now_ns) {
            return Err(LoadRefusal::Limited);
        }
        if !self.clients.enter(client, sequence, now_ns) {
            return Err(LoadRefusal::Full);
        }
        let (load, latency_us) = load();
        Ok(LoadReply { load: Some(load.min(MOST_LOAD)), latency_us, ..reply })
    }
}
