//! The only part of the live system that drives the core. All its inputs pass through here, in one order,
//! under one lock: the decision log records that order, and a replay repeats it.

mod ahead;
mod asks;
mod build;
mod inspection;
mod journal;
mod measuring;
mod member;
mod membership;
mod offer;
mod part;
mod partitioned;
mod patience;
mod polling;
mod state;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use plimsoll_config::Config;
use plimsoll_policy::{
    BackendId, Cluster, Core, Ending, FreshLoads, Health, LruMap, Nanos, Outcome, TargetId, Time,
};
use tokio::sync::oneshot;

use crate::membership::source::MemberSpec;
use crate::refusal_reason::RefusalReason;
use plimsoll_observe::Reason;

pub(crate) use asks::{AsksBackends, PollNews};
pub(crate) use build::BuildFailed;
pub use build::unused_loads;
pub(crate) use inspection::Inspection;
pub(crate) use journal::LogState;
pub(crate) use member::{Member, key_of};
pub(crate) use membership::BuiltAnew;
pub(crate) use part::DataPart;
pub(crate) use partitioned::PartitionedDispatch;
pub(crate) use state::{DispatchCounts, OfferedRequest};

use journal::Journal;
use patience::{BRIEF, Patience};
use state::{Made, State};
use waiting::Senders;

/// The result of offering a request.
pub(crate) enum Offer {
    /// A back-end has it.
    Assigned(Assignment),
    /// The admission limit is reached: it waits.
    Waits(Ticket),
    /// Back-ends are asked for their loads: it waits for their answers.
    Polls(Ticket),
    /// Rejected: the queue is full, or the policy found no back-end.
    Refused(RefusalReason),
}

/// Policy, cluster, admission and waiting queue, shared by all workers.
pub(crate) struct Dispatch {
    origin: Instant,
    /// Seed of hash tables of targets.
    table_seed: u64,
    state: Mutex<State<Assignment>>,
}

impl Dispatch {
    /// A dispatch of data that is not divided.
    ///
    /// # Errors
    /// When the policy cannot be built or the decision log cannot be opened.
    #[cfg(test)]
    pub(crate) fn new(
        config: &Config,
        first: &[MemberSpec],
        table_seed: u64,
    ) -> Result<Arc<Self>, BuildFailed> {
        Self::of_part(config, first, table_seed, DataPart::WHOLE)
    }

    /// A dispatch of this part of the data, whose cluster begins with the back-ends `first`, which get their ids in this order. Those
    /// that hold this part are up. `table_seed` is for hash tables of targets.
    ///
    /// # Errors
    /// When the policy cannot be built or the decision log cannot be opened.
    pub(super) fn of_part(
        config: &Config,
        first: &[MemberSpec],
        table_seed: u64,
        part: DataPart,
    ) -> Result<Arc<Self>, BuildFailed> {
        let policy = build::policy(config, table_seed)?;
        let mut cluster = Cluster::new(0);
        let members: Vec<Member> = first.iter().map(|spec| Member::join(&mut cluster, spec)).collect();
        for (member, spec) in members.iter().zip(first).filter(|(_, spec)| !spec.partitions.has(part.number))
        {
            debug_assert_eq!(member.name, spec.name);
            cluster.set_health(member.id, Health::Down);
        }
        let core = Core::with_witness(policy, cluster, build::admission(config), Journal::default());
        let mut state = State {
            core,
            part,
            // So numbers differ between partitions, and tell them.
            next_number: part.number.into(),
            last: Time::ZERO,
            sizes: LruMap::with_seed(part.share(config.target.sizes), table_seed),
            senders: Senders::default(),
            patience: Patience::new(),
            explain: build::wants_reasons(config),
            members,
            polled: BTreeMap::new(),
            silent: BTreeSet::new(),
            fresh: FreshLoads::new(build::max_age(config)),
            counts: DispatchCounts::default(),
        };
        state.core.set_inquiries(build::inquiries(config));
        if part.is_first() {
            build::warn_of_unused_loads(config);
            build::warn_of_classes(config);
        }
        let log = journal::open_log(config, part)?;
        state.core.witness_mut().replace_log(log);
        state.start_run(config, Time::ZERO);
        state.start_shadow(build::shadow(config, table_seed)?, config);
        Ok(Arc::new(Self { origin: Instant::now(), table_seed, state: Mutex::new(state) }))
    }

    /// Counts a further request on a connection that stays with its back-end; the policy is not asked.
    pub(crate) fn stay(self: &Arc<Self>, backend: BackendId, target: TargetId) -> Assignment {
        self.count_at(backend, target, Reason::Stays)
    }

    /// Counts a request that is sent to a back-end on trial; the policy is not asked.
    pub(crate) fn assign_trial(self: &Arc<Self>, backend: BackendId, target: TargetId) -> Assignment {
        self.count_at(backend, target, Reason::Trial)
    }

    fn count_at(self: &Arc<Self>, backend: BackendId, target: TargetId, reason: Reason) -> Assignment {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let number = state.number();
        let assigned = state.core.stay(backend, number, target, now);
        let size_bytes = state.sizes.peek(target).copied();
        // Under an adaptive limit, which looks at the share of young requests, more load may leave more room.
        self.serve_waiting(state, now);
        Assignment::new(self, Made { assigned, reason, size_bytes })
    }

    /// Has the core move a request to another phase.
    fn move_on(
        self: &Arc<Self>,
        made: &mut Made,
        to: impl FnOnce(&mut Core<Journal>, &mut plimsoll_policy::Assigned, Time),
    ) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        to(&mut state.core, &mut made.assigned, now);
        self.serve_waiting(state, now);
    }

    /// Ends an assignment. Called once for each, by [`Assignment`].
    fn end(self: &Arc<Self>, made: &Made, ending: Ending) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.core.complete(&made.assigned, ending, now);
        state.counts.completed += 1;
        if let (Outcome::Completed, Some(size_bytes)) = (ending.outcome, ending.size_bytes) {
            *state.sizes.get_or_insert_with(made.assigned.target, || 0).0 = size_bytes;
        }
        self.serve_waiting(state, now);
    }

    /// Calls the policy's tick.
    pub(crate) fn tick(&self) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.core.tick(now);
    }

    /// Passes the sum over all front-ends to the policy.
    pub(crate) fn share(&self, sum: &[(u64, u64)]) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.core.share(sum, now);
    }

    /// How often the policy wants its tick.
    pub(crate) fn tick_interval(&self) -> Option<Nanos> {
        self.lock().core.tick_interval()
    }

    /// Passes the decision log's recorded bytes to its writer.
    pub(crate) fn flush_log(&self) {
        self.lock().core.witness_mut().flush();
    }

    /// Ends the decision log: everything recorded is on disk when this returns.
    pub(crate) fn close_log(&self) {
        let writer = {
            let mut state = self.lock();
            let journal = state.core.witness_mut();
            journal.flush();
            journal.take_writer()
        };
        if let Some(writer) = writer {
            // Others may still wait for the disk; the writer's last owner closes it.
            writer.flush();
        }
    }

    /// Flushes the decision log to disk, waiting without the lock; false when there is no log.
    pub(crate) fn sync_log(&self) -> bool {
        let writer = {
            let mut state = self.lock();
            let journal = state.core.witness_mut();
            journal.flush();
            journal.writer()
        };
        writer.inspect(|writer| writer.flush()).is_some()
    }

    /// Inspects cluster, policy and counters under the lock.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Inspection<'_>) -> T) -> T {
        let state = self.lock();
        look(&Inspection {
            view: state.core.view(),
            policy: state.core.policy(),
            members: &state.members,
            admission_limit: state.core.admission_limit(),
            waiting: state.core.waiting(),
            counts: state.counts,
            sizes: &state.sizes,
            journal: state.core.witness(),
        })
    }

    fn now(&self, state: &mut State<Assignment>) -> Time {
        let now = Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        state.last = state.last.max(now);
        state.last
    }

    fn lock(&self) -> MutexGuard<'_, State<Assignment>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request assigned to a back-end. [`Assignment::complete`] reports its end; one that is dropped, because its client
/// or its back-end has gone, is reported as failed.
pub(crate) struct Assignment {
    dispatch: Arc<Dispatch>,
    made: Made,
    ended: bool,
}

impl Assignment {
    fn new(dispatch: &Arc<Dispatch>, made: Made) -> Self {
        Self { dispatch: Arc::clone(dispatch), made, ended: false }
    }

    /// Who has the request.
    pub(crate) fn backend(&self) -> BackendId {
        self.made.assigned.backend
    }

    /// Why this back-end.
    pub(crate) fn reason(&self) -> Reason {
        self.made.reason
    }

    /// Bytes of the response, if one to this target has been seen before.
    pub(crate) fn expected_bytes(&self) -> Option<u64> {
        self.made.size_bytes
    }

    /// Only its client is waited for: it is no load until [`Assignment::resumed`].
    pub(crate) fn stalled(&mut self) {
        self.dispatch.move_on(&mut self.made, |core, assigned, now| core.stalled(assigned, now));
    }

    /// Its back-end works on it again.
    pub(crate) fn resumed(&mut self) {
        self.dispatch.move_on(&mut self.made, |core, assigned, now| core.resumed(assigned, now));
    }

    /// The request was answered. `size_bytes` is the size of the whole representation, where the response told: not of an answer
    /// without a body or with part of one. `hit`: whether the back-end had the content in its cache, where the response told.
    pub(crate) fn complete(mut self, size_bytes: Option<u64>, hit: Option<bool>) {
        self.ended = true;
        self.dispatch.end(&self.made, Ending::answered(size_bytes).with_hit(hit));
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        if !self.ended {
            self.dispatch.end(&self.made, Ending::FAILED);
        }
    }
}

/// A place in the queue. Dropping it leaves the queue.
pub(crate) struct Ticket {
    dispatch: Arc<Dispatch>,
    number: u64,
    receiver: oneshot::Receiver<Result<Assignment, RefusalReason>>,
    /// Whether it is not worth while to wait long.
    briefly: bool,
    /// How long answers of back-ends are waited for besides.
    polls_for: Duration,
}

impl Ticket {
    /// How long to wait, of `longest` at most.
    pub(crate) fn patience(&self, longest: Duration) -> Duration {
        let longest = if self.briefly { longest.min(BRIEF) } else { longest };
        longest.saturating_add(self.polls_for)
    }

    /// Why there is no assignment after the wait.
    pub(crate) fn refusal(&self) -> RefusalReason {
        self.dispatch.lock().refusal_of_waiting(self.briefly)
    }

    /// Ready with the assignment once there is room, or with the reason when no back-end can take the request.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Assignment, RefusalReason>> {
        // Dispatch forgets nobody who waits.
        std::pin::Pin::new(&mut self.receiver).poll(cx).map(|r| r.unwrap_or(Err(RefusalReason::Policy)))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.dispatch.give_up(self.number);
    }
}

#[cfg(test)]
mod tests;
