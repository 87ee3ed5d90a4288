//! The only place of the live system that asks a policy. Everything a policy is told passes through here, in one order,
//! under one lock: that order is what the decision log holds and what a replay repeats.

mod assignment;
mod build;
mod inspection;
mod journal;
mod membership;
mod waiting;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plimsoll_config::Config;
use plimsoll_policy::{
    Assigned, BackendId, Cluster, Core, Ending, Kind, LruMap, Nanos, Offered, Outcome, PollAnswer, Request,
    TargetId, Time,
};

pub(crate) use assignment::Assignment;
pub(crate) use build::BuildFailed;
pub(crate) use inspection::Inspection;
pub(crate) use journal::LogState;
pub(crate) use membership::Member;
pub(crate) use waiting::Ticket;

use journal::Journal;
use waiting::Senders;

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
    /// Decides; its witness is the decision log and the shadow policy.
    core: Core<Journal>,
    next_number: u64,
    last: Time,
    /// Size in bytes of the response to each target, as last seen.
    sizes: LruMap<u64>,
    /// Who is to be told when a request that waits in the core leaves the queue.
    senders: Senders,
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
        let core = Core::with_witness(policy, cluster, build::admission(config), Journal::default());
        let mut state = State {
            core,
            next_number: 0,
            last: Time::ZERO,
            sizes: LruMap::new(config.target.sizes),
            senders: Senders::default(),
            explain: build::wants_reasons(config),
            members,
            counts: DispatchCounts::default(),
        };
        let log = journal::open_log(config)?;
        state.core.witness_mut().replace_log(log);
        state.start_run(config, Time::ZERO);
        state.start_shadow(build::shadow(config)?, config);
        Ok(Arc::new(Self { origin: Instant::now(), state: Mutex::new(state) }))
    }

    /// Offers a request of this kind for `target` from the client with this identity.
    pub(crate) fn offer(self: &Arc<Self>, target: TargetId, kind: Kind, client: u64) -> Offer {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let request = state.request(target, kind, client);
        let before = state.explained(target);
        let offered = state.core.offer(&request, now);
        match state.carry_out(&request, offered, before, now) {
            Decided::Assigned(made) => Offer::Assigned(Assignment::new(self, made)),
            Decided::Waits => {
                state.counts.waited += 1;
                let receiver = state.senders.add(request.number);
                Offer::Waits(Ticket::new(self, request.number, receiver))
            }
            Decided::Rejected => {
                state.counts.refused += 1;
                Offer::Refused
            }
        }
    }

    /// A back-end has a further request on a connection that stays with it: counted, and nobody is asked.
    pub(crate) fn stay(self: &Arc<Self>, backend: BackendId, target: TargetId) -> Assignment {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let number = state.next_number;
        state.next_number += 1;
        let assigned = state.core.stay(backend, number, target, now);
        let size_bytes = state.sizes.peek(target).copied();
        Assignment::new(self, Made { assigned, reason: Reason::Stays, size_bytes })
    }

    /// Ends an assignment. Called once for each, by [`Assignment`].
    fn end(self: &Arc<Self>, made: &Made, ending: Ending) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.core.complete(&made.assigned, ending, now);
        if let (Outcome::Completed, Some(size_bytes)) = (ending.outcome, ending.size_bytes) {
            *state.sizes.get_or_insert_with(made.assigned.target, || 0).0 = size_bytes;
        }
        self.serve_waiting(state, now);
    }

    /// The client of a request that waited has gone, or waited long enough.
    fn give_up(&self, number: u64) {
        let mut state = self.lock();
        if !state.senders.remove(number) {
            return;
        }
        let now = self.now(&mut state);
        if state.core.give_up(number, now) {
            state.counts.refused += 1;
        }
    }

    /// Calls the policy's tick.
    pub(crate) fn tick(&self) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.core.tick(now);
    }

    /// Tells the policy what several front-ends have seen, added up.
    pub(crate) fn share(&self, sum: &[(u64, u64)]) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.core.share(sum, now);
    }

    /// How often the policy wants its tick.
    pub(crate) fn tick_interval(&self) -> Option<Nanos> {
        self.lock().core.tick_interval()
    }

    /// Hands what the decision log has gathered to its writer.
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
            // Whoever still waits for the disk keeps the writer; its last owner closes it.
            writer.flush();
        }
    }

    /// Hands over what the decision log has gathered and waits until it is on the disk, not under the lock; false when
    /// there is no log.
    pub(crate) fn sync_log(&self) -> bool {
        let writer = {
            let mut state = self.lock();
            let journal = state.core.witness_mut();
            journal.flush();
            journal.writer()
        };
        writer.inspect(|writer| writer.flush()).is_some()
    }

    /// Looks at the cluster, the policy and the counters.
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
        if state.core.waiting() == 0 || !state.core.has_room() {
            return;
        }
        let mut served = Vec::new();
        while let Some((request, before)) = state.next_waiting()
            && let Some(started) = state.core.start_next(now)
        {
            debug_assert_eq!(started.number, request.number, "the first one starts first");
            let sender = state.senders.take(request.number);
            match state.carry_out(&request, started.offered, before, now) {
                Decided::Assigned(made) => served.push((sender, Some(Assignment::new(self, made)))),
                Decided::Waits => {
                    // Its poll came to nothing yet; it stays in the queue.
                    if let Some(sender) = sender {
                        state.senders.put_back(request.number, sender);
                    }
                    break;
                }
                Decided::Rejected => {
                    state.counts.refused += 1;
                    served.push((sender, None));
                }
            }
        }
        drop(state);
        for (sender, assignment) in served {
            // Who has gone meanwhile gives its assignment back.
            if let Some(sender) = sender {
                drop(sender.send(assignment));
            }
        }
    }
}

/// A decision that was made and counted.
#[derive(Debug, Clone, Copy)]
struct Made {
    assigned: Assigned,
    reason: Reason,
    /// Bytes of the response, if its size is known.
    size_bytes: Option<u64>,
}

enum Decided {
    Assigned(Made),
    Waits,
    Rejected,
}

impl State {
    fn request(&mut self, target: TargetId, kind: Kind, client: u64) -> Request {
        let number = self.next_number;
        self.next_number += 1;
        let size_bytes = self.sizes.peek(target).copied();
        Request { number, target, size_bytes, kind, client, class: 0, features: None }
    }

    /// The back-ends that serve `target`, where someone reads why one is chosen.
    fn explained(&self, target: TargetId) -> Option<Vec<BackendId>> {
        self.explain.then(|| self.core.policy().server_set(target))
    }

    /// The request that starts next, with the back-ends that serve its target.
    fn next_waiting(&self) -> Option<(Request, Option<Vec<BackendId>>)> {
        let request = self.core.waiting_requests().next()?.request.clone();
        let before = self.explained(request.target);
        Some((request, before))
    }

    /// Does what the core says; `before` are the back-ends that served the target before.
    fn carry_out(
        &mut self,
        request: &Request,
        mut offered: Offered,
        before: Option<Vec<BackendId>>,
        now: Time,
    ) -> Decided {
        if let Offered::Poll(candidates) = offered {
            // Without agents the front-end's own count is the load that it knows of its back-ends.
            let view = self.core.view();
            let answer = |&backend: &BackendId| PollAnswer { backend, load: view.load(backend) };
            let answers: Vec<PollAnswer> = candidates.as_slice().iter().map(answer).collect();
            offered = self.core.answer(request.number, &answers, now).unwrap_or(offered);
        }
        match offered {
            Offered::Assigned(assigned) => {
                self.counts.assigned += 1;
                let reason = self.reason(before, assigned.backend);
                Decided::Assigned(Made { assigned, reason, size_bytes: request.size_bytes })
            }
            Offered::Waits => Decided::Waits,
            Offered::Poll(_) | Offered::Rejected(_) => Decided::Rejected,
        }
    }

    fn reason(&self, before: Option<Vec<BackendId>>, backend: BackendId) -> Reason {
        match before {
            Some(set) if set.contains(&backend) => Reason::Locality,
            Some(set) if !set.is_empty() => Reason::Moved,
            Some(_) if self.core.policy().tracked_targets() > 0 => Reason::New,
            _ => Reason::Load,
        }
    }

    /// A policy that has seen nothing begins, on the cluster as it is.
    fn start_run(&mut self, config: &Config, now: Time) {
        let header = journal::header(config, &self.core, &self.members);
        self.core.witness_mut().start_run(&header, now);
    }

    /// The shadow policy begins anew; `built` is the one that `config` names.
    fn start_shadow(&mut self, built: Option<Box<dyn plimsoll_policy::Policy>>, config: &Config) {
        let cluster = journal::header(config, &self.core, &self.members).cluster();
        self.core.witness_mut().start_shadow(built, config, cluster);
    }
}

#[cfg(test)]
mod tests;
