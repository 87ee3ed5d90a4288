//! The only place of the live system that asks a policy. Everything a policy is told passes through here, in one order,
//! under one lock: that order is what the decision log holds and what a replay repeats.

mod assignment;
mod build;
mod journal;
mod membership;
mod waiting;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plimsoll_config::Config;
use plimsoll_policy::{
    BackendId, Cluster, ClusterView, Completion, Decision, FrontEnd, Kind, LruMap, Nanos, Outcome,
    PollAnswer, Request, TargetId, Time,
};

pub(crate) use assignment::{Assignment, Ended};
pub(crate) use build::BuildFailed;
pub(crate) use journal::{LogState, ShadowScore};
pub(crate) use membership::Member;
pub(crate) use waiting::Ticket;

use journal::{Journal, ShadowChoice};
use waiting::Waiting;

/// Why a request was given to the back-end that it was given to, as far as it shows from outside the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The policy keeps no assignment of targets.
    Load,
    /// The target had no back-end yet.
    New,
    /// The back-end serves this target already.
    Locality,
    /// The target's back-ends were passed over.
    Moved,
    /// Nobody was asked: the back-end has the connection.
    Stays,
}

impl Reason {
    /// The word for logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::New => "new",
            Self::Locality => "locality",
            Self::Moved => "moved",
            Self::Stays => "stays",
        }
    }
}

/// The policy of an assignment that no policy made.
const NO_EPOCH: u32 = u32::MAX;

/// What becomes of a request.
pub(crate) enum Offer {
    /// A back-end has it.
    Assigned(Assignment),
    /// The admission limit is reached: it waits.
    Waits(Ticket),
    /// Nobody can take it: the queue is full, or the policy refuses.
    Refused,
}

/// Counters of dispatch itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DispatchCounts {
    /// Requests assigned.
    pub(crate) assigned: u64,
    /// Requests that had to wait.
    pub(crate) waited: u64,
    /// Requests that were refused because the queue was full, they had waited too long in it, or no back-end takes
    /// requests.
    pub(crate) refused: u64,
}

struct State {
    front_end: FrontEnd,
    /// Counts the policies that there have been: an assignment ends under the policy that made it, or untold.
    epoch: u32,
    next_number: u64,
    last: Time,
    /// Size in bytes of the response to each target, as last seen.
    sizes: LruMap<u64>,
    waiting: Waiting,
    queue_capacity: usize,
    journal: Journal,
    explain: bool,
    members: Vec<Member>,
    counts: DispatchCounts,
}

/// Policy, cluster, admission and waiting queue, shared by all workers.
pub(crate) struct Dispatch {
    origin: Instant,
    state: Mutex<State>,
}

impl Dispatch {
    /// A dispatch for the back-ends of `config`, all taken to be up.
    ///
    /// # Errors
    /// When the policy cannot be built or the decision log cannot be opened.
    pub(crate) fn new(config: &Config) -> Result<Arc<Self>, BuildFailed> {
        let policy = build::policy(&config.policy)?;
        let mut cluster = Cluster::new(0);
        let members: Vec<Member> = config.backends.iter().map(|b| Member::join(&mut cluster, b)).collect();
        let front_end = FrontEnd::new(policy, cluster, config.admission_limit());
        let mut state = State {
            front_end,
            epoch: 0,
            next_number: 0,
            last: Time::ZERO,
            sizes: LruMap::new(config.target.sizes),
            waiting: Waiting::default(),
            queue_capacity: config.admission.queue,
            journal: Journal::default(),
            explain: build::wants_reasons(config),
            members,
            counts: DispatchCounts::default(),
        };
        let State { journal, front_end, members, .. } = &mut state;
        journal.replace_log(journal::open_log(config)?);
        journal.start_run(config, front_end.view(), members, Time::ZERO);
        journal.start_shadow(build::shadow(config)?, config, front_end.view(), members);
        Ok(Arc::new(Self { origin: Instant::now(), state: Mutex::new(state) }))
    }

    /// Offers a request of this kind for `target` from the client with this identity.
    pub(crate) fn offer(self: &Arc<Self>, target: TargetId, kind: Kind, client: u64) -> Offer {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let request = state.request(target, kind, client);
        if state.waiting.is_empty() {
            match state.decide(&request, now) {
                Decided::Assigned(made) => return Offer::Assigned(Assignment::new(self, made)),
                Decided::Rejected => {
                    state.counts.refused += 1;
                    return Offer::Refused;
                }
                Decided::NoRoom => {}
            }
        }
        if state.waiting.len() >= state.queue_capacity {
            state.counts.refused += 1;
            return Offer::Refused;
        }
        state.counts.waited += 1;
        let (id, receiver) = state.waiting.push(request);
        Offer::Waits(Ticket::new(self, id, receiver))
    }

    /// A back-end has a further request on a connection that stays with it: counted, and nobody is asked.
    pub(crate) fn stay(self: &Arc<Self>, backend: BackendId, target: TargetId) -> Assignment {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let number = state.next_number;
        state.next_number += 1;
        state.front_end.stay(backend);
        let shadow = state.journal.stayed(backend, now);
        let size_bytes = state.sizes.peek(target).copied();
        let (reason, epoch) = (Reason::Stays, NO_EPOCH);
        Assignment::new(self, Made { backend, target, number, epoch, at: now, reason, shadow, size_bytes })
    }

    /// Ends an assignment. Called once for each, by [`Assignment`].
    fn end(self: &Arc<Self>, made: &Made, ended: Ended) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let completion = Completion {
            target: made.target,
            backend: made.backend,
            outcome: ended.outcome,
            size_bytes: ended.size_bytes,
            response_time: now.since(made.at),
        };
        if made.epoch == state.epoch {
            state.front_end.complete(&completion, now);
            state.journal.completed(made, &completion, now);
        } else {
            state.front_end.complete_foreign(made.backend);
            state.journal.completed_foreign(made, &completion, now);
        }
        if let (Outcome::Completed, Some(size_bytes)) = (ended.outcome, ended.size_bytes) {
            *state.sizes.get_or_insert_with(made.target, || 0).0 = size_bytes;
        }
        self.serve_waiting(state, now);
    }

    /// Calls the policy's tick.
    pub(crate) fn tick(&self) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.front_end.tick(now);
        state.journal.ticked(now);
    }

    /// Tells the policy what several front-ends have seen of sizes. This is in no decision log.
    pub(crate) fn learn_sizes(&self, load: &[(u64, u64)]) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.front_end.learn_sizes(load, now);
    }

    /// How often the policy wants its tick.
    pub(crate) fn tick_interval(&self) -> Option<Nanos> {
        self.lock().front_end.policy().tick_interval()
    }

    /// Hands what the decision log has gathered to its writer.
    pub(crate) fn flush_log(&self) {
        self.lock().journal.flush();
    }

    /// Ends the decision log: everything recorded is on disk when this returns.
    pub(crate) fn close_log(&self) {
        let writer = {
            let mut state = self.lock();
            state.journal.flush();
            state.journal.take_writer()
        };
        if let Some(writer) = writer {
            // Whoever still waits for the disk keeps the writer; its last owner closes it.
            writer.flush();
        }
    }

    /// Hands over what the decision log has gathered and waits until it is on the disk, not under the lock; false when
    /// there is no log.
    pub(crate) fn sync_log(&self) -> bool {
        let writer = {
            let mut state = self.lock();
            state.journal.flush();
            state.journal.writer()
        };
        writer.inspect(|writer| writer.flush()).is_some()
    }

    /// Looks at the cluster, the policy and the counters.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Inspection<'_>) -> T) -> T {
        let state = self.lock();
        look(&Inspection {
            view: state.front_end.view(),
            policy: state.front_end.policy(),
            members: &state.members,
            admission_limit: state.front_end.admission_limit(),
            waiting: state.waiting.len(),
            counts: state.counts,
            sizes: &state.sizes,
            journal: &state.journal,
        })
    }

    fn now(&self, state: &mut State) -> Time {
        let now = Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        state.last = state.last.max(now);
        state.last
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives those who wait what room there is, then tells them, with the lock released: whoever has gone meanwhile
    /// gives its assignment back through another call.
    fn serve_waiting(self: &Arc<Self>, mut state: MutexGuard<'_, State>, now: Time) {
        if state.waiting.is_empty() || !state.front_end.has_room() {
            return;
        }
        let mut served = Vec::new();
        while state.front_end.has_room()
            && let Some((request, sender)) = state.waiting.pop()
        {
            match state.decide(&request, now) {
                Decided::Assigned(made) => served.push((sender, Some(Assignment::new(self, made)))),
                Decided::Rejected | Decided::NoRoom => {
                    state.counts.refused += 1;
                    served.push((sender, None));
                }
            }
        }
        drop(state);
        for (sender, assignment) in served {
            drop(sender.send(assignment));
        }
    }
}

/// What can be seen from outside.
pub(crate) struct Inspection<'a> {
    pub(crate) view: &'a ClusterView,
    pub(crate) policy: &'a dyn plimsoll_policy::Policy,
    pub(crate) members: &'a [Member],
    pub(crate) admission_limit: u64,
    pub(crate) waiting: usize,
    pub(crate) counts: DispatchCounts,
    sizes: &'a LruMap<u64>,
    journal: &'a Journal,
}

impl Inspection<'_> {
    /// Size in bytes of the last response to `target`.
    pub(crate) fn known_size_bytes(&self, target: TargetId) -> Option<u64> {
        self.sizes.peek(target).copied()
    }

    /// How the live policy and the shadow policy fare, when there is one.
    pub(crate) fn shadow(&self) -> Option<ShadowScore> {
        self.journal.shadow_score()
    }

    /// How the decision log fares.
    pub(crate) fn log_state(&self) -> LogState {
        self.journal.log_state()
    }
}

/// A decision that was made and counted.
#[derive(Debug, Clone, Copy)]
struct Made {
    backend: BackendId,
    target: TargetId,
    number: u64,
    epoch: u32,
    at: Time,
    reason: Reason,
    shadow: ShadowChoice,
    /// Bytes of the response, if its size is known.
    size_bytes: Option<u64>,
}

enum Decided {
    Assigned(Made),
    NoRoom,
    Rejected,
}

impl State {
    fn request(&mut self, target: TargetId, kind: Kind, client: u64) -> Request {
        let number = self.next_number;
        self.next_number += 1;
        let size_bytes = self.sizes.peek(target).copied();
        Request { number, target, size_bytes, kind, client, class: 0 }
    }

    fn decide(&mut self, request: &Request, now: Time) -> Decided {
        if !self.front_end.has_room() {
            return Decided::NoRoom;
        }
        let before =
            if self.explain { Some(self.front_end.policy().server_set(request.target)) } else { None };
        let mut decision = self.front_end.offer(request, now);
        self.journal.offered(request, decision, now);
        if let Decision::Poll(candidates) = decision {
            // Without agents the front-end's own count is the load that it knows of its back-ends.
            let view = self.front_end.view();
            let answer = |&backend: &BackendId| PollAnswer { backend, load: view.load(backend) };
            let answers: Vec<PollAnswer> = candidates.as_slice().iter().map(answer).collect();
            decision = self.front_end.answer_poll(request, &answers, now);
            self.journal.polled(request, &answers, decision, now);
        }
        let Decision::Assign(backend) = decision else {
            return Decided::Rejected;
        };
        self.counts.assigned += 1;
        let reason = match before {
            Some(set) if !set.is_empty() => {
                if set.contains(&backend) {
                    Reason::Locality
                } else {
                    Reason::Moved
                }
            }
            Some(_) if self.front_end.policy().tracked_targets() > 0 => Reason::New,
            _ => Reason::Load,
        };
        let shadow = self.journal.shadow_offered(request, backend, now);
        let (target, number, epoch) = (request.target, request.number, self.epoch);
        Decided::Assigned(Made {
            backend,
            target,
            number,
            epoch,
            at: now,
            reason,
            shadow,
            size_bytes: request.size_bytes,
        })
    }
}

#[cfg(test)]
mod tests;
