//! Choices that are made ahead of connections, for a mechanism that cannot ask when one comes.

use plimsoll_policy::{
    Assigned, BackendId, Ending, Kind, Nanos, Outcome, Request, SniffedKind, SniffedRequest, TargetId,
};

use super::Dispatch;

impl Dispatch {
    /// Chooses for a connection that has not come yet; it counts as load. `None` at the admission limit, or when the policy finds
    /// nobody. It ends by [`Dispatch::withdraw_ahead`], or by [`Dispatch::take_ahead`] and [`Dispatch::end_ahead`].
    pub(crate) fn choose_ahead(&self) -> Option<Assigned> {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let number = state.number();
        let chosen = state.core.prepare(number, now);
        // Nobody carries probes: the loads that are known answer them.
        state.probes(false, now);
        chosen
    }

    /// The connection of this client has taken the choice.
    pub(crate) fn take_ahead(&self, chosen: &mut Assigned, client: u64) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let request = Request { kind: Kind::Connection, client, ..Request::of(chosen.number, TargetId(0)) };
        state.core.take(chosen, &request, now);
        state.counts.assigned += 1;
    }

    /// No connection will take the choice.
    pub(crate) fn withdraw_ahead(&self, chosen: Assigned) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.core.withdraw(chosen, now);
    }

    /// Counts a connection that a back-end has got without the policy.
    pub(crate) fn count_ahead(&self, backend: BackendId) -> Assigned {
        let mut state = self.lock();
        let now = self.now(&mut state);
        let number = state.number();
        state.core.stay(backend, number, TargetId(0), now)
    }

    /// The connection is over.
    pub(crate) fn end_ahead(&self, assigned: &Assigned, outcome: Outcome) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        if state.core.policy().capabilities().can_sniff() {
            // Its last packet is work, too.
            let closing = SniffedRequest {
                backend: assigned.backend,
                kind: SniffedKind::Connection,
                target: TargetId(0),
                class: 0,
                size_bytes: None,
                round_trip: Nanos::ZERO,
            };
            state.core.sniffed(&closing, now);
        }
        state.core.complete(assigned, Ending::of(outcome), now);
        state.counts.completed += 1;
    }

    /// A request has passed on a connection, on its way to a back-end.
    pub(crate) fn sniffed(&self, sniffed: &SniffedRequest) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        if sniffed.backend.index() < state.core.view().len() {
            state.core.sniffed(sniffed, now);
        }
    }
}
