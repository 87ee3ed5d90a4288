//! Answers inquiries: the agent's side.

use std::net::IpAddr;
use std::sync::Arc;

use super::clients::ClientWindows;
use super::counts::{LoadCounters, LoadRefusal};
use super::datagram::{Datagram, DatagramFields, DatagramKind, LoadKeys, MOST_LOAD};
use super::gate::{AnswerGate, AnswerLimits, BootId, Freshly};

/// Answers inquiries. It allocates only when a new client comes.
#[derive(Debug)]
pub struct LoadAnswerer {
    gate: AnswerGate,
    clients: ClientWindows,
}

impl LoadAnswerer {
    /// An answerer of this run of an agent. `seed` is a secret random number.
    #[must_use]
    pub fn new(keys: LoadKeys, boot: BootId, limits: AnswerLimits, seed: u64) -> Self {
        let gate = AnswerGate::new(keys, boot, limits, seed);
        let clients = ClientWindows::new(limits.clients, gate.forget_after_ns());
        Self { gate, clients }
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

    /// The answer to a datagram from `source`, if it gets one. `load` gives load and response time in microseconds.
    pub fn answer(
        &mut self,
        source: IpAddr,
        datagram: &[u8],
        now_ns: u64,
        load: impl FnOnce() -> (u32, u32),
    ) -> Option<Datagram> {
        let kinds = (DatagramKind::Inquiry, DatagramKind::Reply);
        self.answer_as(kinds, source, datagram, now_ns, || {
            let (load, latency_us) = load();
            (load.min(MOST_LOAD), latency_us)
        })
    }

    /// The answer of one kind to an inquiry of another.
    pub(super) fn answer_as(
        &mut self,
        kinds: (DatagramKind, DatagramKind),
        source: IpAddr,
        datagram: &[u8],
        now_ns: u64,
        tell: impl FnOnce() -> (u32, u32),
    ) -> Option<Datagram> {
        let reply = self.try_answer(kinds, source, datagram, now_ns, tell);
        self.gate.seal(reply)
    }

    fn try_answer(
        &mut self,
        (asked, told): (DatagramKind, DatagramKind),
        source: IpAddr,
        datagram: &[u8],
        now_ns: u64,
        tell: impl FnOnce() -> (u32, u32),
    ) -> Result<DatagramFields, LoadRefusal> {
        let inquiry = DatagramFields::open(datagram, &[asked], self.gate.keys())?;
        let DatagramFields { boot, client, sequence, clock_ns, .. } = inquiry;
        if self.clients.has_seen(client, sequence) {
            return Err(LoadRefusal::Replayed);
        }
        let boot_now = self.gate.boot();
        let of = |kind, (first, second)| DatagramFields {
            kind,
            boot: boot_now,
            client,
            sequence,
            clock_ns: now_ns,
            first,
            second,
        };
        let asker = (client, Some(sequence));
        if matches!(self.gate.check(source, asker, (boot, clock_ns), now_ns)?, Freshly::Renew) {
            return Ok(of(DatagramKind::Renewal, (0, 0)));
        }
        // Only what is neither forged nor repeated counts against the rate of its source: nobody else can use it up.
        self.gate.admit(source, now_ns)?;
        if !self.clients.enter(client, sequence, now_ns) {
            return Err(LoadRefusal::Full);
        }
        Ok(of(told, tell()))
    }
}
