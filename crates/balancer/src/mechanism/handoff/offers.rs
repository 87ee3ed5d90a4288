//! Which agents have offered their connections to this process, and so which flows that an earlier process left are nobody's.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_datapath::{Flow, FlowEntry, Mac, NextHop};

use super::numbers::{Questions, SeenNumbers};
use super::times::{QUIET, SHORT_QUIET};
use crate::backend::Backend;

/// How long after an agent was heard it counts as having offered all: it may have lost its old link just before.
const SETTLE: Duration = Duration::from_millis(300);
/// How long flows to an agent that was heard wait for the offers of the other agents.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long an agent that was not heard has to offer the connections of its flows.
const UNHEARD_PATIENCE: Duration = Duration::from_secs(2);
/// How long a client that sends packets may make no progress: it and a socket that has other sequence numbers may answer one
/// another without end.
const STUCK: Duration = Duration::from_millis(600);

/// What is known of a flow that an earlier process left.
#[derive(Debug)]
pub(super) struct LeftFlow {
    /// How often its client was asked for its sequence numbers.
    pub(super) questions: Questions,
    /// What the client has acknowledged and sent.
    numbers: SeenNumbers,
    /// Since when these are the same.
    since: Instant,
}

impl LeftFlow {
    /// The state of a flow that is seen for the first time.
    pub(super) fn new(entry: &FlowEntry, now: Instant) -> Self {
        let numbers = SeenNumbers::of(entry);
        Self { questions: Questions::for_left_over(), numbers, since: now }
    }

    /// Whether the client has neither sent nor acknowledged anything new for a while.
    pub(super) fn is_stuck(&mut self, entry: &FlowEntry, now: Instant) -> bool {
        let numbers = SeenNumbers::of(entry);
        if self.numbers != numbers {
            (self.numbers, self.since) = (numbers, now);
        }
        now.saturating_duration_since(self.since) >= STUCK
    }
}

/// Which agents have offered what they have.
#[derive(Debug)]
pub(super) struct Offers {
    began: Mutex<Instant>,
    workers: usize,
    agents: Mutex<BTreeMap<SocketAddr, Heard>>,
    left: Mutex<BTreeMap<Flow, LeftFlow>>,
    over: AtomicBool,
    /// How often [`Offers::begin`] was called.
    count: AtomicU64,
}

#[derive(Debug)]
struct Heard {
    mac: Mac,
    /// The workers to whom it has answered: what it had was offered to one of them before.
    workers: BTreeSet<usize>,
    /// When the last of them was answered.
    at: Instant,
    /// The workers to whom it has answered once, whatever became of the link since.
    once: BTreeSet<usize>,
    /// When the last of these was answered for the first time.
    all_once_at: Instant,
}

/// The agents that offer: those of back-ends that have not left; `None` while the name of one leads nowhere, as that agent may
/// have connections, too.
pub(super) fn agents(backends: &[Arc<Backend>]) -> Option<Vec<SocketAddr>> {
    let there = backends.iter().filter(|b| !b.is_retired() && b.agent_at.is_some());
    there.map(|b| b.agent).collect()
}

impl Offers {
    /// Of a process that has this many workers.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            began: Mutex::new(Instant::now()),
            workers,
            agents: Mutex::default(),
            left: Mutex::default(),
            over: AtomicBool::new(false),
            count: AtomicU64::new(0),
        }
    }

    fn agents(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Heard>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Agents offer all that they have once more, and flows are left from before.
    pub(super) fn begin(&self) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let mut agents = self.agents();
        agents.clear();
        self.left().clear();
        self.over.store(false, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// The flows that an earlier process left, as far as they were looked at.
    pub(super) fn left(&self) -> MutexGuard<'_, BTreeMap<Flow, LeftFlow>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often agents have begun to offer everything.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Nothing of what an earlier process left is left, unless agents have begun once more since the count was this.
    pub(super) fn end(&self, count: u64) {
        let _began = self.agents();
        if self.count() == count {
            self.over.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// An agent has answered on a new link of this worker.
    pub(super) fn heard(&self, worker: usize, agent: SocketAddr, hop: NextHop) {
        let (mac, at) = (hop.mac, Instant::now());
        let mut agents = self.agents();
        let heard = agents.entry(agent).or_insert_with(|| Heard {
            mac,
            workers: BTreeSet::new(),
            at,
            once: BTreeSet::new(),
            all_once_at: at,
        });
        (heard.mac, heard.at) = (mac, at);
        heard.workers.insert(worker);
        if heard.once.insert(worker) {
            heard.all_once_at = at;
        }
    }

    /// The link of this worker to an agent is down.
    pub(super) fn unheard(&self, worker: usize, agent: SocketAddr) {
        if let Some(heard) = self.agents().get_mut(&agent) {
            heard.workers.remove(&worker);
        }
    }

    /// Whether this agent has offered all that it had when this began: what it offers now is known here.
    pub(super) fn has_offered_all(&self, agent: SocketAddr, now: Instant) -> bool {
        self.agents()
            .get(&agent)
            .is_some_and(|heard| heard.once.len() >= self.workers && now >= heard.all_once_at + SETTLE)
    }

    /// Whether all of these agents have answered all workers.
    pub(super) fn are_all_heard(&self, agents: &[SocketAddr]) -> bool {
        let heard = self.agents();
        agents.iter().all(|agent| heard.get(agent).is_some_and(|h| h.workers.len() >= self.workers))
    }

    /// Whether all of these agents have offered what they have.
    pub(super) fn is_settled(&self, agents: &[SocketAddr], now: Instant) -> bool {
        let heard = self.agents();
        agents.iter().all(|agent| {
            heard.get(agent).is_some_and(|h| h.workers.len() >= self.workers && now >= h.at + SETTLE)
        })
    }

    /// How long the client of a flow to this machine has to be quiet for the flow to be nobody's; `None` while an agent may
    /// still claim it.
    pub(super) fn quiet(&self, to: Mac, all_settled: bool, now: Instant) -> Option<Duration> {
        if all_settled {
            return Some(SHORT_QUIET);
        }
        let waited =
            now.saturating_duration_since(*self.began.lock().unwrap_or_else(PoisonError::into_inner));
        let heard = self.agents();
        let was_heard = heard.values().any(|h| h.mac == to && h.workers.len() >= self.workers);
        match was_heard {
            true => (waited >= PATIENCE).then_some(SHORT_QUIET),
            false => (waited >= UNHEARD_PATIENCE).then_some(QUIET),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_whose_name_leads_nowhere_is_waited_for() {
        use plimsoll_config::HostPort;
        use plimsoll_policy::BackendId;
        let address = SocketAddr::from(([10, 0, 0, 2], 7400));
        let named = |agent| {
            let b = Backend::new(BackendId(0), "b".into(), Ok(address.into()), "b".to_owned(), 4, 1);
            Arc::new(b.with_agent(agent, Some(HostPort { host: "agent".to_owned(), port: 7400 })))
        };
        let without = Backend::new(BackendId(1), "c".into(), Ok(address.into()), "c".to_owned(), 4, 1);
        let (found, lost, without) = (named(Some(address)), named(None), Arc::new(without));
        assert_eq!(agents(&[Arc::clone(&found), without]), Some(vec![address]));
        assert_eq!(agents(&[Arc::clone(&found), Arc::clone(&lost)]), None);
        lost.retire();
        assert_eq!(agents(&[found, lost]), Some(vec![address]));
    }

    #[test]
    fn flows_are_nobodys_when_all_agents_were_heard_or_after_a_bound() {
        let offers = Offers::new(2);
        let agents: [SocketAddr; 2] = [([10, 0, 0, 2], 7400).into(), ([10, 0, 0, 3], 7400).into()];
        let hop = |last| NextHop { ifindex: 1, mac: [2, 0, 0, 0, 0, last], own_mac: [2; 6] };
        let after = |ms| Instant::now() + Duration::from_millis(ms);
        for worker in 0..2 {
            offers.heard(worker, agents[0], hop(2));
        }
        offers.heard(0, agents[1], hop(3));
        assert!(!offers.is_settled(&agents, after(10_000)), "one worker has not heard one agent");
        assert_eq!(offers.quiet(hop(2).mac, false, after(0)), None);
        assert_eq!(offers.quiet(hop(2).mac, false, after(1600)), Some(SHORT_QUIET));
        assert_eq!(offers.quiet(hop(3).mac, false, after(1600)), None);
        assert_eq!(offers.quiet(hop(3).mac, false, after(2100)), Some(QUIET));
        offers.heard(1, agents[1], hop(3));
        assert!(!offers.is_settled(&agents, after(0)) && offers.is_settled(&agents, after(400)));
        assert_eq!(offers.quiet(hop(3).mac, true, after(0)), Some(SHORT_QUIET));
        offers.unheard(0, agents[0]);
        assert!(!offers.is_settled(&agents, after(400)));
        assert!(offers.is_settled(&[], after(0)), "no agent is configured any more");
    }
}
