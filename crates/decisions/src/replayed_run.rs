//! Replays one run of a log to a fresh core that follows the logged decisions.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_policy::{
    Assigned, BackendId, Completion, Core, Decision, Ending, OfferOptions, Offered, Phase, Rejection,
    Request, Time, Witness,
};

use crate::event::{Event, HeaderError, RunHeader, What};
use crate::frame::Position;
use crate::proof::{Difference, ListedDecision, RunProof, known};
use crate::replayed_change;

/// Overrules the core with the logged decision, and keeps the core's own.
struct Follow {
    logged: Decision,
    own: Option<Decision>,
}

impl Witness for Follow {
    const OVERRULES: bool = true;

    fn overrule(&mut self, own: Decision) -> Decision {
        self.own = Some(own);
        self.logged
    }
}

/// A logged decision about a request.
struct Logged<'a> {
    request: &'a Request,
    decision: Decision,
    now: Time,
}

pub(crate) struct ReplayedRun {
    core: Core<Follow>,
    names: Vec<String>,
    /// The requests under way by number. Looked up by key only, never iterated.
    under_way: HashMap<u64, Assigned, FixedState>,
    /// The requests that wait or poll, kept to report differences.
    undecided: HashMap<u64, Request, FixedState>,
    /// The policy was asked about the first request in the queue and lets it wait.
    waits_on: bool,
    proof: RunProof,
}

type ReplayResult = Result<Option<Box<Difference>>, String>;

impl ReplayedRun {
    pub(crate) fn start(header: RunHeader, whole: bool) -> Result<Self, HeaderError> {
        let core = header.core(Follow { logged: Decision::Reject, own: None })?;
        let mut undecided = HashMap::with_hasher(FixedState::with_seed(1));
        undecided.extend(header.waiting.iter().map(|w| (w.request.number, w.request.clone())));
        Ok(Self {
            core,
            names: header.backends.iter().map(|b| b.name.clone()).collect(),
            under_way: HashMap::with_hasher(FixedState::with_seed(1)),
            undecided,
            waits_on: false,
            proof: RunProof { header, events: 0, decisions: 0, identical: 0, whole },
        })
    }

    pub(crate) fn into_proof(self) -> RunProof {
        self.proof
    }

    /// Plays one event. Returns the difference, if its decision is another one.
    ///
    /// # Errors
    /// When it contradicts the log before it.
    pub(crate) fn event(&mut self, event: &Event, sink: &mut dyn FnMut(ListedDecision)) -> ReplayResult {
        self.proof.events += 1;
        let now = event.now;
        // These follow others at once, or tell of what a start began.
        let follows = matches!(
            event.what,
            What::Started { .. } | What::Answered { .. } | What::Admission(_) | What::Left { .. }
        );
        if !follows {
            self.nobody_was_forgotten()?;
        }
        match &event.what {
            What::Offered { request, options, decision } => {
                return self.offered(&Logged { request, decision: *decision, now }, options, sink);
            }
            What::Answered { number, answers, decision } => {
                answers.iter().try_for_each(|answer| self.known(answer.backend))?;
                let core = |run: &mut Self| run.core.answer(*number, answers, now);
                return self.decided_later(*number, *decision, now, core, sink);
            }
            What::Started { number, decision } => {
                let first = self.core.waiting_requests().next().map(|w| w.request.number);
                let core = |run: &mut Self| match first == Some(*number) {
                    true => Some(run.core.start_next(now).map_or(Offered::Waits, |started| started.offered)),
                    false => None,
                };
                return self.decided_later(*number, *decision, now, core, sink);
            }
            _ => self.input(&event.what, now)?,
        }
        Ok(None)
    }

    /// Plays an input without a decision.
    fn input(&mut self, what: &What, now: Time) -> Result<(), String> {
        match what {
            What::GaveUp { number } => {
                if !self.core.give_up(*number, now) && self.proof.whole {
                    return Err(damaged(&format!("request {number} is given up, but did not wait")));
                }
                self.undecided.remove(number);
            }
            What::Moved { number, backend, from, to, own } => {
                self.core.advance(now);
                self.moved(*number, (*backend, *from), *to, *own, now)?;
            }
            What::Taken { number, request } => match self.under_way.get_mut(number) {
                Some(assigned) => self.core.take(assigned, request, now),
                None if self.proof.whole => return Err(unknown(*number)),
                None => {}
            },
            What::Completed { number, phase, completion } => {
                self.completed((*number, *phase), completion, now)?;
            }
            What::Stayed { backend } => {
                self.known(*backend)?;
                // Its end names only the back-end.
                self.core.stay(*backend, 0, plimsoll_policy::TargetId(0), now);
            }
            What::CompletedForeign { backend, phase } => {
                self.core.advance(now);
                self.foreign_ended(*backend, *phase)?;
            }
            What::Reported(report) => {
                self.known(report.backend)?;
                self.core.report(report, now);
            }
            What::Sniffed(_) | What::HostMetrics(_) => self.observed(what, now)?,
            What::Shared(sum) => self.core.share(sum, now),
            What::Health { backend, .. }
            | What::Weight { backend, .. }
            | What::MostRequests { backend, .. } => {
                self.known(*backend)?;
                replayed_change::set(&mut self.core, what, now);
            }
            What::Joined { backend, name, key, weight } => {
                let joined =
                    self.core.join(name, *key, *weight, now).map_err(|full| damaged(&full.to_string()))?;
                if joined != *backend {
                    let what = format!("a back-end joins as {}, where {} is next", backend.0, joined.0);
                    return Err(damaged(&what));
                }
                match self.names.get_mut(joined.index()) {
                    Some(old) => name.clone_into(old),
                    None => self.names.push(name.clone()),
                }
            }
            What::Left { backend } => {
                self.known(*backend)?;
                if !self.core.leave(*backend, now) {
                    return Err(damaged(&format!(
                        "back-end {} leaves, but has requests or has left",
                        backend.0
                    )));
                }
            }
            What::Admission(admission) => self.core.set_admission(*admission, now),
            What::Ticked => self.core.tick(now),
            What::Run(_) | What::Offered { .. } | What::Answered { .. } | What::Started { .. } => {}
        }
        Ok(())
    }

    /// Plays what a layer-4 front-end saw pass, and what was measured at back-ends.
    fn observed(&mut self, what: &What, now: Time) -> Result<(), String> {
        match what {
            What::Sniffed(sniffed) => {
                self.known(sniffed.backend)?;
                self.core.sniffed(sniffed, now);
            }
            What::HostMetrics(metrics) => {
                self.known(metrics.backend)?;
                self.core.host_metrics(metrics, now);
            }
            _ => {}
        }
        Ok(())
    }

    /// The live system starts waiting requests after each input; a log that lacks a start is incomplete.
    fn nobody_was_forgotten(&mut self) -> Result<(), String> {
        let forgotten = self.core.waiting() > 0 && self.core.has_room() && !self.waits_on;
        self.waits_on = false;
        if forgotten && self.proof.whole {
            return Err(damaged("a request waits on although there is room"));
        }
        Ok(())
    }

    fn offered(
        &mut self,
        logged: &Logged<'_>,
        options: &OfferOptions,
        sink: &mut dyn FnMut(ListedDecision),
    ) -> ReplayResult {
        self.expect(logged.decision)?;
        let offered = self.core.offer_with(logged.request, options, logged.now);
        self.carried_out(logged, offered, sink)
    }

    /// Plays a decision about a request offered before; `core` makes the core decide.
    fn decided_later(
        &mut self,
        number: u64,
        decision: Decision,
        now: Time,
        core: impl FnOnce(&mut Self) -> Option<Offered>,
        sink: &mut dyn FnMut(ListedDecision),
    ) -> ReplayResult {
        self.expect(decision)?;
        let request = self.undecided.remove(&number);
        if let (Some(request), Some(offered)) = (request, core(self)) {
            self.waits_on = offered == Offered::Waits;
            return self.carried_out(&Logged { request: &request, decision, now }, offered, sink);
        }
        if self.proof.whole {
            return Err(damaged(&format!("request {number} is decided about, but does not wait")));
        }
        // It was offered in the gap, so only its back-end is known.
        if let Decision::Assign(backend) = decision {
            let assigned = self.core.stay(backend, number, plimsoll_policy::TargetId(0), now);
            self.under_way.insert(number, assigned);
        }
        Ok(None)
    }

    fn expect(&mut self, logged: Decision) -> Result<(), String> {
        match logged {
            Decision::Assign(b) => self.known(b)?,
            Decision::Poll(candidates) => candidates.as_slice().iter().try_for_each(|&b| self.known(b))?,
            Decision::Wait | Decision::Reject => {}
        }
        *self.core.witness_mut() = Follow { logged, own: None };
        Ok(())
    }

    fn carried_out(
        &mut self,
        logged: &Logged<'_>,
        offered: Offered,
        sink: &mut dyn FnMut(ListedDecision),
    ) -> ReplayResult {
        let &Logged { request, decision, now } = logged;
        match offered {
            Offered::Assigned(assigned) => {
                self.under_way.insert(request.number, assigned);
            }
            Offered::Waits | Offered::Poll(_) => {
                self.undecided.insert(request.number, request.clone());
            }
            Offered::Rejected(_) => {}
        }
        // The core started no request where the log says that it asked the policy.
        let own = self.core.witness_mut().own.take().unwrap_or(Decision::Wait);
        let by_limit = matches!(offered, Offered::Rejected(Rejection::QueueFull | Rejection::Expired));
        if own == decision && (own == Decision::Wait || by_limit) {
            // The admission limit decided, not the policy.
            return Ok(None);
        }
        if !self.proof.whole && (decision == Decision::Wait || own == Decision::Wait) {
            // After a gap, the requests that waited before it are unknown, and so is what an adaptive limit had measured.
            return Ok(None);
        }
        if let Decision::Assign(backend) = own {
            sink(ListedDecision { request: request.number, now, target: request.target, backend });
        }
        self.proof.decisions += 1;
        if own == decision {
            self.proof.identical += 1;
            return Ok(None);
        }
        let view = self.core.view();
        let added = match offered {
            Offered::Assigned(assigned) if assigned.phase().is_load() => Some(assigned.backend),
            _ => None,
        };
        let before = |b| view.load(b) - u32::from(added == Some(b));
        Ok(Some(Box::new(Difference {
            event: 0,
            position: Position { file: std::path::PathBuf::new(), offset: 0 },
            now,
            request: request.clone(),
            logged: decision,
            replayed: own,
            server_set: self.core.policy().server_set(request.target),
            loads: view.ids().map(before).collect(),
            names: self.names.clone(),
        })))
    }

    fn completed(
        &mut self,
        (number, phase): (u64, Phase),
        completion: &Completion,
        now: Time,
    ) -> Result<(), String> {
        self.known(completion.backend)?;
        let Some(assigned) = self.under_way.remove(&number) else {
            // The policy that heard of its assignment was lost with the start of the run.
            return if self.proof.whole {
                Err(unknown(number))
            } else {
                self.foreign_ended(completion.backend, phase)
            };
        };
        if assigned.backend != completion.backend {
            let (was, ends) = (assigned.backend.0, completion.backend.0);
            return Err(damaged(&format!("request {number} went to back-end {was} and ends at {ends}")));
        }
        self.has_load(&assigned)?;
        let Completion { outcome, size_bytes, hit, .. } = *completion;
        self.core.complete(&assigned, Ending { outcome, size_bytes, hit }, now);
        Ok(())
    }

    fn moved(
        &mut self,
        number: u64,
        (backend, from): (BackendId, Phase),
        to: Option<Phase>,
        own: bool,
        now: Time,
    ) -> Result<(), String> {
        self.known(backend)?;
        let Some(mut assigned) = self.under_way.remove(&number) else {
            if own && self.proof.whole {
                return Err(unknown(number));
            }
            self.foreign_ended(backend, from)?;
            if to == Some(Phase::Active) {
                self.core.stay(backend, number, plimsoll_policy::TargetId(0), now);
            }
            return Ok(());
        };
        if assigned.phase() != from {
            return Err(damaged(&format!("request {number} comes from a phase that it is not in")));
        }
        self.has_load(&assigned)?;
        match to {
            Some(Phase::Active) if from == Phase::Stalled => self.core.resumed(&mut assigned, now),
            Some(Phase::Active) => self.core.established(&mut assigned, now),
            Some(Phase::Stalled) if from == Phase::Connecting => self.core.established(&mut assigned, now),
            Some(Phase::Stalled) => self.core.stalled(&mut assigned, now),
            None => {
                self.core.withdraw(assigned, now);
                return Ok(());
            }
            Some(_) => return Err(damaged(&format!("request {number} goes back to an earlier phase"))),
        }
        self.under_way.insert(number, assigned);
        Ok(())
    }

    fn foreign_ended(&mut self, backend: BackendId, phase: Phase) -> Result<(), String> {
        self.known(backend)?;
        if self.core.complete_inherited(backend, phase) || !self.proof.whole {
            return Ok(());
        }
        Err(nothing_there(backend))
    }

    /// Refuses a log that ends more requests than there are.
    fn has_load(&self, assigned: &Assigned) -> Result<(), String> {
        let counted = !assigned.phase().is_load() || self.core.view().own_load(assigned.backend) > 0;
        if counted { Ok(()) } else { Err(nothing_there(assigned.backend)) }
    }

    fn known(&self, b: BackendId) -> Result<(), String> {
        known(b, self.core.view().len())
    }
}

fn damaged(what: &str) -> String {
    format!("the log is damaged: {what}")
}

fn nothing_there(b: BackendId) -> String {
    damaged(&format!("a request ends at back-end {}, which has none", b.0))
}

fn unknown(number: u64) -> String {
    damaged(&format!("request {number} ends, but was never assigned"))
}
