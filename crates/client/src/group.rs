//! The replicas of one partition: one core under one lock, which is never held while anything is waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_policy::{
    Assigned, BackendId, Candidates, LoadReport, OfferOptions, Offered, PollAnswer, Rejection, Request,
    TargetId, Time, Tried,
};
use tokio::sync::oneshot;

use crate::access::ServiceAccess;
use crate::attempt::AccessEnd;
use crate::error::ChooseError;
use crate::state::GroupState;

/// What an access that waits is told.
type Waiter<M> = oneshot::Sender<Chosen<M>>;

pub(crate) struct Group<M: Clone> {
    origin: Instant,
    state: Mutex<GroupState<M, Waiter<M>>>,
}

/// What has become of an access.
pub(crate) enum Chosen<M: Clone> {
    Assigned(HeldAssignment<M>),
    /// These are to be asked.
    Poll(Candidates),
    /// It will be told.
    Waits(oneshot::Receiver<Chosen<M>>),
    Rejected(ChooseError),
}

impl<M: Clone> Group<M> {
    pub(crate) fn new(state: GroupState<M, oneshot::Sender<Chosen<M>>>) -> Arc<Self> {
        Arc::new(Self { origin: Instant::now(), state: Mutex::new(state) })
    }

    /// Does something with the state; accesses that waited and start then are told.
    pub(crate) fn with<T>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut GroupState<M, oneshot::Sender<Chosen<M>>>, Time) -> T,
    ) -> T {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let done = work(&mut state, now);
        if state.core.waiting() > 0 {
            let started = state.started(now);
            let told: Vec<_> = started
                .into_iter()
                .map(|(waiter, offered)| (waiter, self.chosen(&mut state, 0, offered)))
                .collect();
            drop(state);
            for (waiter, chosen) in told {
                // If it has gone away meanwhile, what it was given ends here.
                drop(waiter.send(chosen));
            }
        }
        done
    }

    /// Offers an access to the core; its number, and what has become of it. The back-ends are those that the policy wants to be
    /// asked besides.
    pub(crate) fn offer(
        self: &Arc<Self>,
        access: &ServiceAccess<'_>,
        tried: Tried,
        patience: Option<Duration>,
    ) -> (u64, Chosen<M>, Candidates) {
        self.with(|state, now| {
            let number = state.number();
            let target = access.target.unwrap_or_else(|| TargetId::from_key(&number.to_le_bytes()));
            let (size_bytes, client) = (access.size_bytes, access.client);
            let request = Request { size_bytes, client, ..Request::of(number, target) };
            let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let deadline = patience.map(|patience| now + plimsoll_policy::Nanos::new(nanos(patience)));
            let offered =
                state.offer(&request, &OfferOptions { tried, deadline, ..OfferOptions::PLAIN }, now);
            let chosen = self.chosen(state, number, offered);
            (number, chosen, state.core.take_probes())
        })
    }

    /// Takes the answers of those asked. Those whose agents are `silent` and have not answered count as loaded like the others.
    pub(crate) fn answer(
        self: &Arc<Self>,
        number: u64,
        mut answers: Vec<PollAnswer>,
        silent: Candidates,
    ) -> (Chosen<M>, Candidates) {
        self.with(|state, now| {
            let heard = Candidates::new(answers.iter().map(|answer| answer.backend));
            answers.extend(state.neutral(silent.without(heard)));
            let rejected = Offered::Rejected(Rejection::NoBackend);
            let offered = state.core.answer(number, &answers, now).unwrap_or(rejected);
            (self.chosen(state, number, offered), state.core.take_probes())
        })
    }

    fn chosen(
        self: &Arc<Self>,
        state: &mut GroupState<M, Waiter<M>>,
        number: u64,
        offered: Offered,
    ) -> Chosen<M> {
        match offered {
            Offered::Assigned(assigned) => match state.member(assigned.backend).cloned() {
                Some(member) => Chosen::Assigned(HeldAssignment {
                    group: Arc::clone(self),
                    assigned,
                    member,
                    ended: false,
                }),
                None => {
                    state.end(&assigned, AccessEnd::Abandoned, state.last);
                    Chosen::Rejected(ChooseError::NoBackend)
                }
            },
            Offered::Poll(asked) => Chosen::Poll(asked),
            Offered::Waits => {
                let (sender, receiver) = oneshot::channel();
                state.waiters.insert(number, sender);
                Chosen::Waits(receiver)
            }
            Offered::Rejected(why) => Chosen::Rejected(match why {
                _ if state.core.view().eligible() == 0 => ChooseError::NoBackend,
                Rejection::QueueFull => ChooseError::QueueFull,
                Rejection::NoBackend => ChooseError::NoBackend,
                Rejection::Expired => ChooseError::WaitedTooLong,
            }),
        }
    }

    /// Nobody wants this access any more, which waits or whose back-ends are asked.
    pub(crate) fn give_up(self: &Arc<Self>, number: u64) {
        self.with(|state, now| {
            state.core.give_up(number, now);
            // Without this the sender would stay. What it had sent ends when its receiver is dropped.
            state.waiters.remove(&number);
        });
    }

    pub(crate) fn report(self: &Arc<Self>, report: &LoadReport) {
        self.with(|state, now| state.core.report(report, now));
    }

    fn now(&self, state: &mut GroupState<M, Waiter<M>>) -> Time {
        let passed = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        state.last = state.last.max(Time::from_nanos(passed));
        state.last
    }

    fn lock(&self) -> MutexGuard<'_, GroupState<M, Waiter<M>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An assignment that ends exactly once: abandoned if it is only dropped.
pub(crate) struct HeldAssignment<M: Clone> {
    group: Arc<Group<M>>,
    assigned: Assigned,
    member: M,
    ended: bool,
}

impl<M: Clone> HeldAssignment<M> {
    pub(crate) fn member(&self) -> &M {
        &self.member
    }

    pub(crate) fn backend(&self) -> BackendId {
        self.assigned.backend
    }

    pub(crate) fn tell_load(&self, load: u32) {
        self.group.report(&LoadReport::of(self.assigned.backend, load));
    }

    pub(crate) fn finish(mut self, end: AccessEnd) {
        self.end(end);
    }

    fn end(&mut self, end: AccessEnd) {
        if !std::mem::replace(&mut self.ended, true) {
            self.group.with(|state, now| state.end(&self.assigned, end, now));
        }
    }
}

impl<M: Clone> Drop for HeldAssignment<M> {
    fn drop(&mut self) {
        self.end(AccessEnd::Abandoned);
    }
}
