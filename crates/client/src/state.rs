//! What a group of replicas keeps under its lock: the core, and who the back-ends are.

use std::collections::BTreeMap;

use plimsoll_policy::{
    Assigned, BackendId, Candidates, ClusterFull, Core, Ending, Health, LoadReport, Nanos, OfferOptions,
    Offered, PollAnswer, Request, Time, Weight,
};

use crate::attempt::AccessEnd;

/// When a back-end that fails gets nothing for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EjectionRule {
    /// Failures in a row; 0 for never.
    pub(crate) after: u32,
    /// For how long at first; each time twice as long, up to [`LONGEST`].
    pub(crate) pause: Nanos,
}

const LONGEST: Nanos = Nanos::from_secs(30);

#[derive(Debug)]
struct GroupMember<M> {
    value: M,
    /// It gets nothing new, and leaves with its last access.
    leaving: bool,
    /// Its owner says that it takes accesses.
    ready: bool,
    /// In a row.
    failures: u32,
    /// In a row, without an answer in between.
    ejections: u32,
    back_at: Option<Time>,
}

/// `M` is who a back-end is, `W` how an access that waits is told.
pub(crate) struct GroupState<M, W> {
    pub(crate) core: Core,
    /// The latest time that was seen: the core's time never goes back.
    pub(crate) last: Time,
    next_number: u64,
    members: Vec<Option<GroupMember<M>>>,
    pub(crate) waiters: BTreeMap<u64, W>,
    ejection: EjectionRule,
    /// When the policy's tick is due.
    tick_at: Option<Time>,
    /// When [`GroupState::upkeep`] has something to do.
    upkeep_at: Time,
}

impl<M: Clone, W> GroupState<M, W> {
    pub(crate) fn new(core: Core, ejection: EjectionRule) -> Self {
        let tick_at = core.tick_interval().map(|interval| Time::ZERO + interval);
        Self {
            core,
            last: Time::ZERO,
            next_number: 0,
            members: Vec::new(),
            waiters: BTreeMap::new(),
            ejection,
            tick_at,
            upkeep_at: tick_at.unwrap_or(Time::MAX),
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    pub(crate) fn member(&self, b: BackendId) -> Option<&M> {
        self.members.get(b.index())?.as_ref().map(|member| &member.value)
    }

    /// All that have not been removed.
    pub(crate) fn present(&self) -> impl Iterator<Item = (BackendId, &M)> {
        self.with_leaving().filter(|&(_, _, leaving)| !leaving).map(|(b, value, _)| (b, value))
    }

    /// All, and whether they have been removed and only finish what they have.
    pub(crate) fn with_leaving(&self) -> impl Iterator<Item = (BackendId, &M, bool)> {
        let there = self.members.iter().enumerate();
        there.filter_map(|(index, member)| {
            member.as_ref().map(|member| (BackendId::new(index), &member.value, member.leaving))
        })
    }

    pub(crate) fn join(
        &mut self,
        value: M,
        name: &str,
        key: u64,
        weight: Weight,
        now: Time,
    ) -> Result<BackendId, ClusterFull> {
        let b = self.core.join(name, key, weight, now)?;
        if self.members.len() <= b.index() {
            self.members.resize_with(b.index() + 1, || None);
        }
        self.members[b.index()] = Some(GroupMember {
            value,
            leaving: false,
            ready: true,
            failures: 0,
            ejections: 0,
            back_at: None,
        });
        Ok(b)
    }

    /// It is someone or something else now, with the same identity. One that was about to leave stays.
    pub(crate) fn change(&mut self, b: BackendId, value: M, weight: Weight, now: Time) {
        if let Some(member) = self.members.get_mut(b.index()).and_then(Option::as_mut) {
            (member.value, member.leaving) = (value, false);
            if self.core.view().weight(b) != weight {
                self.core.set_weight(b, weight, now);
            }
            self.show_health(b, now);
        }
    }

    /// Has a back-end get nothing new, and leave once it has nothing to do.
    pub(crate) fn remove(&mut self, b: BackendId, now: Time) {
        if let Some(member) = self.members.get_mut(b.index()).and_then(Option::as_mut) {
            member.leaving = true;
            self.show_health(b, now);
            self.leave_if_idle(b, now);
        }
    }

    pub(crate) fn set_ready(&mut self, b: BackendId, ready: bool, now: Time) {
        if let Some(member) = self.members.get_mut(b.index()).and_then(Option::as_mut) {
            member.ready = ready;
            self.show_health(b, now);
        }
    }

    fn show_health(&mut self, b: BackendId, now: Time) {
        let Some(Some(member)) = self.members.get(b.index()) else { return };
        let takes = member.ready && !member.leaving && member.back_at.is_none();
        let health = if takes { Health::Up } else { Health::Draining };
        if self.core.view().health(b) != health {
            self.core.set_health(b, health, now);
        }
    }

    fn leave_if_idle(&mut self, b: BackendId, now: Time) {
        if self.core.view().own_load(b) == 0 && self.core.leave(b, now) {
            self.members[b.index()] = None;
        }
    }

    pub(crate) fn offer(&mut self, request: &Request, options: &OfferOptions, now: Time) -> Offered {
        self.upkeep(now);
        self.core.offer_with(request, options, now)
    }

    /// What back-ends count for of which nothing is known.
    pub(crate) fn neutral(&self, silent: Candidates) -> impl Iterator<Item = PollAnswer> + '_ {
        let loads = (0..silent.as_slice().len()).map(move |k| silent.as_slice()[k]);
        loads.filter_map(|b| Some(PollAnswer::of(b, self.core.view().neutral_load(b)?)))
    }

    /// The same, told to a policy that asks ahead of accesses.
    pub(crate) fn report_neutral(&mut self, silent: Candidates, now: Time) {
        let neutral: Vec<PollAnswer> = self.neutral(silent).collect();
        for PollAnswer { backend, load, .. } in neutral {
            self.core.report(&LoadReport::of(backend, load), now);
        }
    }

    /// The answers of those asked, by the own count.
    pub(crate) fn own_answers(&self, asked: Candidates) -> Vec<PollAnswer> {
        self.core.view().answers(asked).collect()
    }

    /// Tells the policy the own counts of those that it wants to be asked.
    pub(crate) fn report_own(&mut self, asked: Candidates, now: Time) {
        for &b in asked.as_slice() {
            let load = self.core.view().load(b);
            self.core.report(&LoadReport::of(b, load), now);
        }
    }

    pub(crate) fn end(&mut self, assigned: &Assigned, end: AccessEnd, now: Time) {
        let ending = match end {
            AccessEnd::Answered { size_bytes } => Ending::answered(size_bytes),
            AccessEnd::Failed | AccessEnd::Refused | AccessEnd::Abandoned => Ending::FAILED,
        };
        self.core.complete(assigned, ending, now);
        let b = assigned.backend;
        let Some(Some(member)) = self.members.get_mut(b.index()) else { return };
        match end {
            AccessEnd::Answered { .. } => (member.failures, member.ejections) = (0, 0),
            AccessEnd::Failed => {
                member.failures = member.failures.saturating_add(1);
                if self.ejection.after > 0 && member.failures >= self.ejection.after {
                    self.eject(b, now);
                }
            }
            AccessEnd::Refused | AccessEnd::Abandoned => {}
        }
        if self.members[b.index()].as_ref().is_some_and(|member| member.leaving) {
            self.leave_if_idle(b, now);
        }
    }

    /// Unless it is the last one, or half of them are out already.
    fn eject(&mut self, b: BackendId, now: Time) {
        let there = self.members.iter().flatten().filter(|member| !member.leaving);
        let (all, out) =
            there.fold((0, 0), |(all, out), m| (all + 1, out + usize::from(m.back_at.is_some())));
        let Some(Some(member)) = self.members.get_mut(b.index()) else { return };
        if member.back_at.is_some() || (out + 1) * 2 > all {
            return;
        }
        let times = 1_u64 << member.ejections.min(16);
        let pause = Nanos::new(self.ejection.pause.as_nanos().saturating_mul(times)).min(LONGEST);
        member.ejections += 1;
        member.back_at = Some(now + pause);
        self.upkeep_at = self.upkeep_at.min(now + pause);
        self.show_health(b, now);
    }

    /// Ticks the policy, and takes back-ends back whose pause is over: one more failure, and they are out again.
    pub(crate) fn upkeep(&mut self, now: Time) {
        if now < self.upkeep_at {
            return;
        }
        if let (Some(at), Some(interval)) = (self.tick_at, self.core.tick_interval())
            && at <= now
        {
            self.core.tick(now);
            self.tick_at = Some(now + interval);
        }
        let mut next = self.tick_at.unwrap_or(Time::MAX);
        for index in 0..self.members.len() {
            let Some(Some(member)) = self.members.get_mut(index) else { continue };
            match member.back_at {
                Some(at) if at <= now => {
                    member.back_at = None;
                    member.failures = self.ejection.after.saturating_sub(1);
                    self.show_health(BackendId::new(index), now);
                }
                Some(at) => next = next.min(at),
                None => {}
            }
        }
        self.upkeep_at = next;
    }

    /// The accesses that waited and start now.
    pub(crate) fn started(&mut self, now: Time) -> Vec<(W, Offered)> {
        let mut started = Vec::new();
        while let Some(next) = self.core.start_next(now) {
            match self.waiters.remove(&next.number) {
                Some(waiter) => started.push((waiter, next.offered)),
                // Nobody waits for it: it was given up meanwhile.
                None => match next.offered {
                    Offered::Assigned(assigned) => self.core.complete(&assigned, Ending::FAILED, now),
                    Offered::Poll(_) => {
                        self.core.give_up(next.number, now);
                    }
                    Offered::Waits | Offered::Rejected(_) => {}
                },
            }
        }
        started
    }
}
