//! Offers requests to the core, and serves those that wait in it.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use plimsoll_policy::{Candidates, OfferOptions, Time, Tried};
#[cfg(test)]
use plimsoll_policy::{Kind, TargetId};

use super::asks::{AsksBackends, PollNews};
use super::state::{Decided, OfferedRequest, PollOver, State};
use super::{Assignment, Dispatch, Offer, Ticket};

impl Dispatch {
    /// Offers a request of this kind for `target` from the client with this identity.
    #[cfg(test)]
    pub(crate) fn offer(self: &Arc<Self>, target: TargetId, kind: Kind, client: u64) -> Offer {
        self.offer_again(OfferedRequest { target, kind, client, class: 0, session: None }, Tried::NONE, None)
    }

    /// Offers a request after these back-ends failed it.
    pub(crate) fn offer_again(
        self: &Arc<Self>,
        offered: OfferedRequest,
        tried: Tried,
        asks: Option<&Arc<dyn AsksBackends>>,
    ) -> Offer {
        // Who was asked for it once knows enough: no request waits for answers twice.
        let polls = asks.is_some() && tried == Tried::NONE;
        let mut state = self.lock();
        let now = self.now(&mut state);
        let request = state.request(offered);
        let before = state.explained(request.target);
        let options = OfferOptions { tried, ..OfferOptions::PLAIN };
        let offered = state.core.offer_with(&request, &options, now);
        let number = request.number;
        match state.carry_out(&request, offered, before, polls, now) {
            Decided::Assigned(made) => {
                let probes = state.probes(asks.is_some(), now);
                drop(state);
                probe(asks, probes);
                Offer::Assigned(Assignment::new(self, made))
            }
            Decided::Polls(candidates) => {
                let polls_for = asks.map_or(Duration::ZERO, |asks| asks.timeout());
                let receiver = state.senders.add(number, asks.cloned(), now);
                let alone = state.is_alone();
                drop(state);
                let ticket =
                    Ticket { dispatch: Arc::clone(self), number, receiver, briefly: false, polls_for };
                if let Some(asks) = asks {
                    asks.poll(number, candidates, alone);
                }
                Offer::Polls(ticket)
            }
            Decided::Waits => {
                state.counts.waited += 1;
                if state.core.waiting() <= 1 {
                    state.patience.is_empty(now);
                }
                state.look(now);
                let briefly = state.is_brief();
                let receiver = state.senders.add(number, asks.cloned(), now);
                let polls_for = asks.map_or(Duration::ZERO, |asks| asks.timeout());
                let ticket = Ticket { dispatch: Arc::clone(self), number, receiver, briefly, polls_for };
                // Time may have made room for those that waited already.
                self.serve_waiting(state, now);
                Offer::Waits(ticket)
            }
            Decided::Rejected(reason) => {
                state.counts.refused += 1;
                self.serve_waiting(state, now);
                Offer::Refused(reason)
            }
        }
    }

    /// A request waits no more for back-ends that were asked; these have told their loads. No effect if it waits for none any more.
    #[cfg(test)]
    pub(crate) fn answer(self: &Arc<Self>, number: u64, heard: Candidates) {
        self.take_in([PollNews::Ended { number, heard }].into_iter());
    }

    /// Takes what came of polls, in this order and under one lock: most answers end a poll.
    pub(crate) fn take_in(self: &Arc<Self>, news: impl Iterator<Item = PollNews>) {
        let mut ended = Vec::new();
        let mut state = self.lock();
        let now = self.now(&mut state);
        for one in news {
            match one {
                PollNews::Told(report) => state.told(&report, now),
                PollNews::Ended { number, heard } => ended.extend(state.ended(number, heard, now)),
            }
        }
        self.serve_waiting(state, now);
        for PollOver { owner, outcome, probes } in ended {
            let assignment = outcome.map(|made| Assignment::new(self, made));
            // An owner that has gone returns its assignment.
            if let Some(owner) = owner {
                probe(owner.asks.as_ref(), probes);
                drop(owner.sender.send(assignment));
            }
        }
    }

    /// Starts waiting requests where only time has passed: an adaptive limit may have made room. Those are refused that have
    /// waited briefly where no more is worth while. Called several times a second.
    pub(crate) fn serve_waiting_now(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.core.waiting() == 0 {
            return;
        }
        let now = self.now(&mut state);
        state.core.advance(now);
        state.look(now);
        let late = state.late(now);
        let reason = state.reason_after_waiting(true);
        self.serve_waiting(state, now);
        for owner in late {
            // An owner that has gone needs no reason.
            drop(owner.sender.send(Err(reason)));
        }
    }

    /// The client of a waiting request has gone, or its time is up.
    pub(super) fn give_up(&self, number: u64) {
        let mut state = self.lock();
        if !state.senders.remove(number) {
            return;
        }
        state.polled.remove(&number);
        let now = self.now(&mut state);
        if state.core.give_up(number, now) {
            state.counts.refused += 1;
        }
    }

    /// Starts waiting requests while there is room, then notifies their owners without the lock: an owner
    /// that has gone returns its assignment by another call.
    pub(super) fn serve_waiting(self: &Arc<Self>, mut state: MutexGuard<'_, State<Assignment>>, now: Time) {
        if state.core.waiting() == 0 || !state.core.has_room() {
            return;
        }
        let mut served = Vec::new();
        let mut asked = Vec::new();
        while let Some((request, before)) = state.next_waiting()
            && let Some(started) = state.core.start_next(now)
        {
            debug_assert_eq!(started.number, request.number, "the first one starts first");
            let asks = state.senders.asks(request.number);
            match state.carry_out(&request, started.offered, before, asks.is_some(), now) {
                Decided::Assigned(made) => {
                    let probes = state.probes(asks.is_some(), now);
                    served.push((state.senders.take(request.number), Ok(made)));
                    asked.push((asks, None, probes));
                }
                Decided::Polls(candidates) => asked.push((asks, Some(request.number), candidates)),
                // It stays in the queue.
                Decided::Waits => break,
                Decided::Rejected(reason) => {
                    state.counts.refused += 1;
                    served.push((state.senders.take(request.number), Err(reason)));
                }
            }
        }
        drop(state);
        for (owner, made) in served {
            let assignment = made.map(|made| Assignment::new(self, made));
            // An owner that has gone returns its assignment.
            if let Some(owner) = owner {
                drop(owner.sender.send(assignment));
            }
        }
        for (asks, number, candidates) in asked {
            match (asks, number) {
                (Some(asks), Some(number)) => asks.poll(number, candidates, false),
                (asks, _) => probe(asks.as_ref(), candidates),
            }
        }
    }
}

fn probe(asks: Option<&Arc<dyn AsksBackends>>, probes: Candidates) {
    if let Some(asks) = asks.filter(|_| !probes.as_slice().is_empty()) {
        asks.probe(probes);
    }
}
