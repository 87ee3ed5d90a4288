//! Which node answers a request: any policy, asked through the core, as by a front-end.

mod begin;
mod look;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plimsoll_decisions::{LogWitness, LogWriter};
use plimsoll_exchange::cluster_number;
use plimsoll_observe::Reason;
use plimsoll_policy::{
    Assigned, BackendId, Candidates, Core, Ending, Health, LoadReport, LruMap, Offered, Request, TargetId,
    Time,
};

use super::super::config::AgentError;
use super::asks::AsksNodes;
use super::config::CloneConfig;
pub(super) use begin::NodePlace;
pub(super) use look::{MappingLook, NodeLook, TargetLook};

/// Why a request goes where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceReason {
    /// The policy has chosen, for this reason.
    Chosen(Reason),
    /// Its document is known to be small: answered here, and the policy was not asked.
    Small,
    /// Other nodes have not the address that it came to.
    OnlyHere,
    /// The policy found no node.
    NoNode,
}

impl PlaceReason {
    /// The word for logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chosen(reason) => reason.name(),
            Self::Small => "small",
            Self::OnlyHere => "only_here",
            Self::NoNode => "no_node",
        }
    }
}

/// A request that has its place.
#[derive(Debug)]
pub(super) struct MappedRequest {
    pub(super) place: NodePlace,
    pub(super) reason: PlaceReason,
    target: TargetId,
    assigned: Option<Assigned>,
}

/// How a mapped request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MappedEnd {
    /// Answered with content of this size, which may not be all that there is.
    Answered { content_bytes: u64, whole: bool },
    /// Not by that node, or not at all.
    Failed,
}

/// Documents whose sizes are remembered.
const SIZES: usize = 1 << 16;

/// The mapping function of a node.
pub(super) struct Mapping {
    began: Instant,
    min_bytes: u64,
    policy: &'static str,
    /// Whether reasons of choices are told.
    tells_reasons: bool,
    /// The decision log, waited for where nobody holds the lock.
    log: Option<Arc<LogWriter>>,
    inner: Mutex<MappingState>,
}

struct MappingState {
    core: Core<Option<LogWitness>>,
    last: Time,
    next_number: u64,
    next_tick: Option<Time>,
    /// By back-end: its name and where it is.
    nodes: Vec<(String, NodePlace)>,
    /// Of documents that were answered with.
    sizes_bytes: LruMap<u64>,
    counts: MappingCounts,
}

/// What a mapping counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MappingCounts {
    /// Requests that the policy has given to a node.
    pub(super) assigned: u64,
    /// Requests of small documents, about which it was not asked.
    pub(super) small: u64,
    /// Requests for which it found no node.
    pub(super) rejected: u64,
    /// Polls of nodes before a choice.
    pub(super) polls: u64,
    /// Loads that nodes have told.
    pub(super) reports: u64,
}

/// A poll that nobody waits for any more, unless it was answered, is given up.
struct PollUnderWay<'a> {
    mapping: &'a Mapping,
    number: u64,
}

impl Drop for PollUnderWay<'_> {
    fn drop(&mut self) {
        let (mut inner, now) = self.mapping.inner();
        // Without effect where it has ended.
        inner.core.give_up(self.number, now);
    }
}

impl Mapping {
    /// Checks what [`Mapping::new`] takes, without opening the decision log, which begins a thread.
    ///
    /// # Errors
    /// When the policy cannot work here.
    pub(super) fn check(config: &CloneConfig) -> Result<(), AgentError> {
        begin::core(config).map(drop)
    }

    /// All nodes in the order of their names, so that each has the same ones.
    ///
    /// # Errors
    /// When the policy cannot work here, or the decision log cannot be opened.
    pub(super) fn new(config: &CloneConfig) -> Result<Self, AgentError> {
        let begun = begin::begin(config)?;
        let log = begun.core.witness().as_ref().map(|log| Arc::clone(log.writer()));
        let next_tick = begun.core.tick_interval().map(|interval| Time::ZERO + interval);
        let inner = MappingState {
            core: begun.core,
            last: Time::ZERO,
            next_number: 0,
            next_tick,
            nodes: begun.nodes,
            sizes_bytes: LruMap::new(SIZES),
            counts: MappingCounts::default(),
        };
        Ok(Self {
            began: Instant::now(),
            min_bytes: config.min_bytes,
            policy: config.policy.spec.name,
            tells_reasons: config.access_log.is_some(),
            log,
            inner: Mutex::new(inner),
        })
    }

    fn inner(&self) -> (MutexGuard<'_, MappingState>, Time) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        inner.last = inner.last.max(now);
        let now = inner.last;
        if inner.next_tick.is_some_and(|at| at <= now) {
            inner.core.tick(now);
            inner.next_tick = inner.core.tick_interval().map(|interval| now + interval);
        }
        (inner, now)
    }

    /// Says who answers. A document that is known to be small is answered here, and so is all for an address that only this
    /// node has. `asks` carries polls.
    pub(super) async fn place(&self, target: &[u8], here_only: bool, asks: &AsksNodes) -> MappedRequest {
        let target = TargetId::from_key(target);
        let (number, before, asked) = match self.offer(target, here_only, asks) {
            Ok(placed) => return placed,
            Err(poll) => poll,
        };
        let under_way = PollUnderWay { mapping: self, number };
        let heard = asks.poll(asked).await;
        let (mut inner, now) = self.inner();
        let answers: Vec<_> = inner.core.view().answers(heard).collect();
        let offered = inner.core.answer(number, &answers, now);
        let placed = inner.placed(target, before.as_deref(), offered);
        let probes = inner.probes(asks, now);
        drop(inner);
        drop(under_way);
        asks.probe(probes);
        placed
    }

    /// The place, or whom to ask: the request's number, its target's nodes before, and those to ask.
    fn offer(
        &self,
        target: TargetId,
        here_only: bool,
        asks: &AsksNodes,
    ) -> Result<MappedRequest, (u64, Option<Vec<BackendId>>, Candidates)> {
        let (mut inner, now) = self.inner();
        let here = |reason| Ok(MappedRequest { place: NodePlace::Here, reason, target, assigned: None });
        if here_only {
            return here(PlaceReason::OnlyHere);
        }
        let size_bytes = inner.sizes_bytes.get_mut(target).copied();
        if size_bytes.is_some_and(|bytes| bytes < self.min_bytes) {
            inner.counts.small += 1;
            return here(PlaceReason::Small);
        }
        let number = inner.next_number;
        inner.next_number += 1;
        let before = self.tells_reasons.then(|| inner.core.policy().server_set(target));
        let request = Request { size_bytes, ..Request::of(number, target) };
        let mut offered = inner.core.offer(&request, now);
        if let Offered::Poll(asked) = offered {
            inner.counts.polls += 1;
            if asks.can_ask() {
                return Err((number, before, asked));
            }
            // This node's own counts answer.
            let answers: Vec<_> = inner.core.view().answers(asked).collect();
            offered = inner.core.answer(number, &answers, now).unwrap_or(offered);
        }
        let placed = inner.placed(target, before.as_deref(), Some(offered));
        let probes = inner.probes(asks, now);
        drop(inner);
        asks.probe(probes);
        Ok(placed)
    }

    /// A request that has its place has ended.
    pub(super) fn ended(&self, mapped: &MappedRequest, end: MappedEnd) {
        let (mut inner, now) = self.inner();
        let ending = match end {
            MappedEnd::Answered { content_bytes, whole } => {
                if whole {
                    *inner.sizes_bytes.get_or_insert_with(mapped.target, || 0).0 = content_bytes;
                }
                Ending::answered(Some(content_bytes))
            }
            MappedEnd::Failed => Ending::FAILED,
        };
        if let Some(assigned) = &mapped.assigned {
            inner.core.complete(assigned, ending, now);
        }
    }

    /// A peer can be asked for clones now, or no longer.
    pub(super) fn set_up(&self, peer: usize, up: bool) {
        let (mut inner, now) = self.inner();
        if let Some(backend) = inner.backend_of(NodePlace::Peer(peer)) {
            let health = if up { Health::Up } else { Health::Down };
            inner.core.set_health(backend, health, now);
        }
    }

    /// Where a back-end is.
    pub(super) fn place_of(&self, backend: BackendId) -> Option<NodePlace> {
        self.inner().0.nodes.get(backend.index()).map(|(_, place)| *place)
    }

    /// A node has told its load.
    pub(super) fn report(&self, report: &LoadReport) {
        let (mut inner, now) = self.inner();
        inner.counts.reports += 1;
        inner.core.report(report, now);
    }

    /// A node tells no load any more: it counts as loaded like the others.
    pub(super) fn report_neutral(&self, backend: BackendId) {
        let (mut inner, now) = self.inner();
        if let Some(load) = inner.core.view().neutral_load(backend) {
            inner.core.report(&LoadReport::of(backend, load), now);
        }
    }

    /// What the policy has seen and shares with other nodes, with the cluster by which it has; `None` where it shares nothing.
    pub(super) fn seen(&self) -> Option<(u64, Vec<(u64, u64)>)> {
        let (inner, _) = self.inner();
        let seen = inner.core.policy().seen()?;
        Some((cluster_number(inner.core.view()), seen))
    }

    /// The sum over all nodes came.
    pub(super) fn share(&self, sum: &[(u64, u64)]) {
        let (mut inner, now) = self.inner();
        inner.core.share(sum, now);
    }

    /// Writes what the decision log has gathered, and waits for that; false when there is no log.
    pub(super) fn sync_log(&self) -> bool {
        let Some(writer) = &self.log else { return false };
        if let Some(log) = self.inner().0.core.witness_mut() {
            log.hand_over();
        }
        writer.flush();
        true
    }

    /// Ends the decision log, which then is complete. Waits for the disk.
    pub(super) fn close_log(&self) {
        let witness = self.inner().0.core.witness_mut().take();
        if let Some(mut log) = witness {
            log.hand_over();
        }
        // The writer closes when its last owner drops it.
        if let Some(writer) = &self.log {
            writer.flush();
        }
    }
}

impl MappingState {
    fn backend_of(&self, place: NodePlace) -> Option<BackendId> {
        self.nodes.iter().position(|(_, other)| *other == place).map(BackendId::new)
    }

    fn placed(
        &mut self,
        target: TargetId,
        before: Option<&[BackendId]>,
        offered: Option<Offered>,
    ) -> MappedRequest {
        let Some(Offered::Assigned(assigned)) = offered else {
            self.counts.rejected += 1;
            return MappedRequest {
                place: NodePlace::Here,
                reason: PlaceReason::NoNode,
                target,
                assigned: None,
            };
        };
        self.counts.assigned += 1;
        let place = self.nodes.get(assigned.backend.index()).map_or(NodePlace::Here, |(_, place)| *place);
        let tracked = self.core.policy().assigned_targets();
        let reason = PlaceReason::Chosen(Reason::of_choice(before, assigned.backend, tracked));
        MappedRequest { place, reason, target, assigned: Some(assigned) }
    }

    /// Whom the policy wants to be asked, for nobody. Where nobody can ask, this node's own counts answer.
    fn probes(&mut self, asks: &AsksNodes, now: Time) -> Candidates {
        let probes = self.core.take_probes();
        if asks.can_ask() {
            return probes;
        }
        for &backend in probes.as_slice() {
            let load = self.core.view().load(backend);
            self.core.report(&LoadReport::of(backend, load), now);
        }
        Candidates::NONE
    }
}
