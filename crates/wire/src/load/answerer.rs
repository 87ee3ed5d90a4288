//! Answers inquiries: the agent's side.

use std::net::IpAddr;
use std::sync::Arc;

use super::clients::ClientWindows;
use super::counts::{LoadCounters, LoadRefusal};
use super::datagram::{Datagram, Inquiry, LoadKeys, LoadReply, MOST_LOAD};
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
        let reply = self.try_answer(source, datagram, now_ns, load);
        self.gate.seal(reply.map(|reply| reply.fields()))
    }

    fn try_answer(
        &mut self,
        source: IpAddr,
        datagram: &[u8],
        now_ns: u64,
        load: impl FnOnce() -> (u32, u32),
    ) -> Result<LoadReply, LoadRefusal> {
        let Inquiry { boot, client, sequence, clock_ns } = Inquiry::open(datagram, self.gate.keys())?;
        if self.clients.has_seen(client, sequence) {
            return Err(LoadRefusal::Replayed);
        }
        let reply = LoadReply {
            boot: self.gate.boot(),
            client,
            sequence,
            clock_ns: now_ns,
            load: None,
            latency_us: 0,
        };
        let asker = (client, Some(sequence));
        if matches!(self.gate.check(source, asker, (boot, clock_ns), now_ns)?, Freshly::Renew) {
            return Ok(reply);
        }
        // Only what is neither forged nor repeated counts against the rate of its source: nobody else can use it up.
        self.gate.admit(source, now_ns)?;
        if !self.clients.enter(client, sequence, now_ns) {
            return Err(LoadRefusal::Full);
        }
        let (load, latency_us) = load();
        Ok(LoadReply { load: Some(load.min(MOST_LOAD)), latency_us, ..reply })
    }
}
