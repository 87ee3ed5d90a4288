//! What dispatch keeps under its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_config::Config;
use plimsoll_policy::{
    Assigned, BackendId, Candidates, Core, Features, FreshLoads, Kind, LoadReport, LruMap, Offered,
    PollAnswer, Rejection, Request, TargetId, Time,
};

use super::journal::{self, Journal};
use super::member::Member;
use super::part::DataPart;
use super::patience::{BRIEFLY, Patience, Population};
use super::waiting::{Senders, WaitingOwner};
use crate::refusal_reason::RefusalReason;
use plimsoll_observe::Reason;

/// A request as dispatch is told of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfferedRequest {
    pub(crate) target: TargetId,
    pub(crate) kind: Kind,
    /// The client's identity.
    pub(crate) client: u64,
    /// Its class; 0 for none.
    pub(crate) class: u16,
    /// The back-end that it says its session has.
    pub(crate) session: Option<BackendId>,
}

/// Counters of dispatch itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DispatchCounts {
    /// Requests assigned.
    pub(crate) assigned: u64,
    /// Requests that were load, and are no longer.
    pub(crate) completed: u64,
    /// Requests that had to wait.
    pub(crate) waited: u64,
    /// Requests that were refused because the queue was full, they had waited too long in it, or no back-end takes
    /// requests.
    pub(crate) refused: u64,
    /// Loads that were told a moment before, and so not asked for.
    pub(crate) loads_known: u64,
}

impl DispatchCounts {
    /// Adds those of another partition.
    pub(crate) fn add(&mut self, other: Self) {
        self.assigned += other.assigned;
        self.completed += other.completed;
        self.waited += other.waited;
        self.refused += other.refused;
        self.loads_known += other.loads_known;
    }
}

pub(super) struct State<A> {
    /// Decides; its witness is the decision log and the shadow policy.
    pub(super) core: Core<Journal>,
    /// Of the data.
    pub(super) part: DataPart,
    pub(super) next_number: u64,
    pub(super) last: Time,
    /// Size in bytes of the response to each target, as last seen.
    pub(super) sizes: LruMap<u64>,
    /// Who is to be told when a request that waits in the core leaves the queue.
    pub(super) senders: Senders<A>,
    /// How long requests may wait.
    pub(super) patience: Patience,
    pub(super) explain: bool,
    pub(super) members: Vec<Member>,
    /// Requests whose back-ends are being asked, by number.
    pub(super) polled: BTreeMap<u64, Polled>,
    /// Those that told a load a moment ago.
    pub(super) fresh: FreshLoads,
    /// Those whose agents have fallen silent.
    pub(super) silent: BTreeSet<BackendId>,
    pub(super) counts: DispatchCounts,
}

/// A decision that was made and counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) assigned: Assigned,
    pub(super) reason: Reason,
    /// Bytes of the response, if its size is known.
    pub(super) size_bytes: Option<u64>,
}

/// A request whose back-ends are being asked.
#[derive(Debug)]
pub(super) struct Polled {
    size_bytes: Option<u64>,
    /// Those of its candidates whose loads need no answer: they told it a moment ago, or are silent.
    known: Candidates,
    /// The back-ends that served its target before.
    before: Option<Vec<BackendId>>,
}

/// A request whose poll is over: who waits for it, and what becomes of it.
pub(super) struct PollOver<A> {
    pub(super) owner: Option<WaitingOwner<A>>,
    pub(super) outcome: Result<Made, RefusalReason>,
    /// Ask these besides.
    pub(super) probes: Candidates,
}

pub(super) enum Decided {
    Assigned(Made),
    /// Ask these back-ends.
    Polls(Candidates),
    Waits,
    Rejected(RefusalReason),
}

impl<A> State<A> {
    /// Why a request is refused whose time in the queue is over; it was brief or not.
    pub(super) fn refusal_of_waiting(&mut self, briefly: bool) -> RefusalReason {
        if !briefly && self.core.view().eligible() > 0 {
            self.patience.waited_in_vain();
        }
        self.reason_after_waiting(briefly)
    }

    /// The same, where nothing is learned from it.
    pub(super) fn reason_after_waiting(&self, briefly: bool) -> RefusalReason {
        match self.core.view().eligible() {
            0 => self.nobody(),
            _ if self.core.view().all_full() => RefusalReason::BackendRequests,
            _ if briefly => RefusalReason::QueueStanding,
            _ => RefusalReason::QueueTimeout,
        }
    }

    /// Looks whether requests may wait for long.
    pub(super) fn look(&mut self, now: Time) {
        let (core, counts) = (&self.core, &self.counts);
        let load = core.view().total_own_load();
        let population = Population {
            present: (core.waiting() + self.polled.len()) as u64 + load,
            refused: counts.refused,
            completed: counts.completed,
        };
        self.patience.look(population, now);
    }

    /// Whether a request that comes now may wait only briefly.
    pub(super) fn is_brief(&self) -> bool {
        self.is_useless(self.patience.is_brief())
    }

    /// Whether to wait is no use, for those for which patience has ended or not. Without a back-end there is little to wait for; a limit that
    /// may grow will soon have room.
    fn is_useless(&self, patience_has_ended: bool) -> bool {
        self.core.view().eligible() == 0 || (patience_has_ended && !self.core.may_grow())
    }

    /// Removes those from the queue that have waited briefly, where no more is worth while for them either.
    pub(super) fn late(&mut self, now: Time) -> Vec<WaitingOwner<A>> {
        let mut late = Vec::new();
        if !self.is_useless(self.patience.is_brief_for_all()) {
            return late;
        }
        while let Some((number, since)) = self.longest_waiting()
            && now.since(since) >= BRIEFLY
        {
            late.extend(self.senders.take(number));
            self.core.give_up(number, now);
            self.counts.refused += 1;
        }
        late
    }

    /// The next one to leave the queue, and since when it waits.
    fn longest_waiting(&self) -> Option<(u64, Time)> {
        let number = self.core.waiting_requests().next()?.request.number;
        Some((number, self.senders.since(number)?))
    }

    /// Why a request is refused that the core rejects now.
    pub(super) fn refusal(&self, rejection: Rejection) -> RefusalReason {
        match (self.core.view().eligible(), rejection) {
            (0, _) => self.nobody(),
            _ if self.core.view().all_full() => RefusalReason::BackendRequests,
            (_, Rejection::QueueFull) => RefusalReason::QueueFull,
            (_, Rejection::NoBackend) => RefusalReason::Policy,
            (_, Rejection::Expired) => RefusalReason::QueueTimeout,
        }
    }

    /// The number of the next request.
    pub(super) fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += u64::from(self.part.count);
        number
    }

    /// Why requests are refused while no back-end takes any.
    fn nobody(&self) -> RefusalReason {
        if self.part.is_one_of_several() { RefusalReason::NoReplica } else { RefusalReason::NoBackend }
    }

    pub(super) fn request(&mut self, offered: OfferedRequest) -> Request {
        let OfferedRequest { target, kind, client, class, session } = offered;
        let number = self.number();
        let size_bytes = self.sizes.peek(target).copied();
        let of_session = |b| Arc::new(Features { session: Some(b), ..Features::default() });
        let features = session.map(of_session);
        Request { number, target, size_bytes, kind, client, class, features }
    }

    /// The back-ends that serve `target`, where someone reads why one is chosen.
    pub(super) fn explained(&self, target: TargetId) -> Option<Vec<BackendId>> {
        self.explain.then(|| self.core.policy().server_set(target))
    }

    /// The request that starts next, with the back-ends that serve its target.
    pub(super) fn next_waiting(&self) -> Option<(Request, Option<Vec<BackendId>>)> {
        let request = self.core.waiting_requests().next()?.request.clone();
        let before = self.explained(request.target);
        Some((request, before))
    }

    /// Does what the core says; `before` are the back-ends that served the target before. Without anyone who `asks` back-ends, the
    /// front-end's own count answers for them.
    pub(super) fn carry_out(
        &mut self,
        request: &Request,
        mut offered: Offered,
        before: Option<Vec<BackendId>>,
        asks: bool,
        now: Time,
    ) -> Decided {
        if let Offered::Poll(candidates) = offered {
            let (known, old) = match asks {
                true => self.fresh.split(candidates, now),
                false => (candidates, Candidates::NONE),
            };
            self.counts.loads_known += if asks { known.as_slice().len() as u64 } else { 0 };
            if !old.as_slice().is_empty() {
                let mut known = known;
                old.as_slice().iter().filter(|b| self.silent.contains(b)).for_each(|&b| known.push(b));
                let polled = Polled { size_bytes: request.size_bytes, known, before };
                self.polled.insert(request.number, polled);
                return Decided::Polls(old);
            }
            let answers: Vec<PollAnswer> = self.known(known).collect();
            offered = self.core.answer(request.number, &answers, now).unwrap_or(offered);
        }
        self.decided(offered, request.size_bytes, before.as_deref())
    }

    /// A request whose back-ends were asked waits no more; these have told their loads. `None` if it waits for none any more.
    pub(super) fn answered(&mut self, number: u64, heard: Candidates, now: Time) -> Option<Decided> {
        let polled = self.polled.remove(&number);
        let mut known = polled.as_ref().map_or(Candidates::NONE, |polled| polled.known);
        heard.as_slice().iter().for_each(|&b| known.push(b));
        let answers: Vec<PollAnswer> = self.known(known).collect();
        let offered = self.core.answer(number, &answers, now);
        let Polled { size_bytes, before, .. } = polled?;
        Some(self.decided(offered?, size_bytes, before.as_deref()))
    }

    /// The same with whom it concerns; `None` where it waits on, in the queue.
    pub(super) fn ended(&mut self, number: u64, heard: Candidates, now: Time) -> Option<PollOver<A>> {
        let outcome = match self.answered(number, heard, now)? {
            Decided::Assigned(made) => Ok(made),
            Decided::Rejected(reason) => {
                self.counts.refused += 1;
                Err(reason)
            }
            // A request is polled for once.
            Decided::Waits | Decided::Polls(_) => return None,
        };
        let owner = self.senders.take(number);
        let asks = owner.as_ref().is_some_and(|owner| owner.asks.is_some());
        let probes = self.probes(asks, now);
        Some(PollOver { owner, outcome, probes })
    }

    /// A back-end has told its load.
    pub(super) fn told(&mut self, report: &LoadReport, now: Time) {
        self.silent.remove(&report.backend);
        self.fresh.tell(report.backend, now);
        self.core.report(report, now);
    }

    /// Whether the request whose back-ends are asked is the only one under way.
    pub(super) fn is_alone(&self) -> bool {
        // Of other partitions nothing is known here.
        !self.part.is_one_of_several()
            && self.core.view().total_own_load() == 0
            && self.core.waiting() == 0
            && self.polled.len() == 1
    }

    /// The loads of these as the view has them; of one that is silent, what the others have in the mean.
    fn known(&self, backends: Candidates) -> impl Iterator<Item = PollAnswer> + '_ {
        let view = self.core.view();
        view.answers(backends).map(move |answer| {
            let is_silent = self.silent.contains(&answer.backend);
            let neutral = is_silent.then(|| view.neutral_load(answer.backend)).flatten();
            PollAnswer { load: neutral.unwrap_or(answer.load), ..answer }
        })
    }

    fn decided(
        &mut self,
        offered: Offered,
        size_bytes: Option<u64>,
        before: Option<&[BackendId]>,
    ) -> Decided {
        match offered {
            Offered::Assigned(assigned) => {
                self.counts.assigned += 1;
                let reason = self.reason(before, assigned.backend);
                Decided::Assigned(Made { assigned, reason, size_bytes })
            }
            Offered::Waits => Decided::Waits,
            Offered::Poll(_) => Decided::Rejected(self.refusal(Rejection::NoBackend)),
            Offered::Rejected(rejection) => Decided::Rejected(self.refusal(rejection)),
        }
    }

    /// The back-ends that the policy wants to be asked, for nobody. Without anyone who `asks`, the front-end's own count answers.
    pub(super) fn probes(&mut self, asks: bool, now: Time) -> Candidates {
        let probes = self.core.take_probes();
        if asks {
            return probes;
        }
        for &backend in probes.as_slice() {
            let load = self.core.view().load(backend);
            self.core.report(&LoadReport::of(backend, load), now);
        }
        Candidates::NONE
    }

    fn reason(&self, before: Option<&[BackendId]>, backend: BackendId) -> Reason {
        Reason::of_choice(before, backend, self.core.policy().assigned_targets())
    }

    /// A policy that has seen nothing begins, on the cluster as it is.
    pub(super) fn start_run(&mut self, config: &Config, now: Time) {
        let header = journal::header(config, &self.core, &self.members);
        self.core.witness_mut().start_run(&header, now);
    }

    /// The shadow policy begins anew; `built` is the one that `config` names.
    pub(super) fn start_shadow(&mut self, built: Option<Box<dyn plimsoll_policy::Policy>>, config: &Config) {
        let cluster = journal::header(config, &self.core, &self.members).cluster();
        self.core.witness_mut().start_shadow(built, config, cluster);
    }
}
