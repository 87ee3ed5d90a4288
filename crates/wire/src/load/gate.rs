//! What agents and load index answer, and what they count of it.

use std::net::IpAddr;
use std::sync::Arc;

use super::counts::{LoadCounters, LoadRefusal};
use super::datagram::{Datagram, DatagramFields, DatagramKind, LoadKeys};
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

/// Keys, boot id and bounds of what answers datagrams.
#[derive(Debug)]
pub(super) struct AnswerGate {
    keys: LoadKeys,
    boot: BootId,
    limits: AnswerLimits,
    renewals: Renewals,
    rates: SourceRates,
    counters: Arc<LoadCounters>,
}

/// Whether a datagram is of this boot id and now.
pub(super) enum Freshly {
    Now,
    /// The boot id is another one: it may ask again with this one.
    Renew,
}

impl AnswerGate {
    /// `seed` is a secret random number.
    pub(super) fn new(keys: LoadKeys, boot: BootId, limits: AnswerLimits, seed: u64) -> Self {
        Self {
            keys,
            boot,
            limits,
            renewals: Renewals::new(limits.renewals_per_source_s, seed.rotate_left(17)),
            rates: SourceRates::new(limits.per_source_s, limits.per_source_s.div_ceil(10), seed),
            counters: Arc::default(),
        }
    }

    pub(super) fn keys(&self) -> &LoadKeys {
        &self.keys
    }

    /// The number of the boot id.
    pub(super) fn boot(&self) -> u64 {
        self.boot.number()
    }

    pub(super) fn counters(&self) -> &Arc<LoadCounters> {
        &self.counters
    }

    /// Checks boot id and age. `number` is that of what `client` has sent, where each has another one.
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

    /// Counts what is neither forged nor repeated against the rate of its source.
    pub(super) fn admit(&mut self, source: IpAddr, now_ns: u64) -> Result<(), LoadRefusal> {
        if self.rates.admits(source, now_ns) { Ok(()) } else { Err(LoadRefusal::Limited) }
    }

    /// How long a datagram may be taken for fresh.
    pub(super) fn forget_after_ns(&self) -> u64 {
        self.limits.stale_after_ns.saturating_add(self.limits.ahead_ns)
    }

    /// Counts what became of a datagram. Returns the answer to be sent, if there is one.
    pub(super) fn seal(&self, answer: Result<DatagramFields, LoadRefusal>) -> Option<Datagram> {
        match answer {
            Ok(fields) if fields.kind == DatagramKind::Renewal => self.counters.renew(),
            Ok(_) => self.counters.take(),
            Err(why) => self.counters.refuse(why),
        }
        answer.ok().map(|fields| fields.seal(&self.keys))
    }
}
