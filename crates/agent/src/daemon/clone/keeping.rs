//! A clone that keeps the connection while the next requests are its node's own, as its original sees it.
//!
//! All packets are led to the clone, and the original stays frozen, at its old numbers. It gets the connection back with the
//! state that the clone has by then, or hears that the clone has ended it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_datapath::tcp::TcpState;
use plimsoll_wire::cloning::FromClone;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::super::client::ClientConnection;
use super::cloning::{CarriedOver, Cloning};
use super::counters::CloneCounters;
use super::peer_link::PendingClone;
use super::shared::NodePhase;
use super::under_way::UnderWay;

/// For how long packets of a connection that was ended are led to its clone: FINs and their acknowledgments may be lost, and sent
/// again.
const CLOSING: Duration = Duration::from_secs(3);

/// How a clone gives up a connection that it kept.
enum Yielded {
    /// It is in this state.
    Back(Box<TcpState>),
    /// It is closed.
    Closed,
    Lost(&'static str),
}

impl<'a> Cloning<'a> {
    /// Leaves the connection to the clone until that gives it up.
    pub(super) async fn keep(
        mut self,
        mut pending: PendingClone,
        slot: &mut Option<ClientConnection>,
        under_way: &mut UnderWay<'_>,
    ) -> CarriedOver<'a> {
        match self.yielded(&mut pending, under_way).await {
            Yielded::Back(mut state) => {
                let rest = std::mem::take(&mut state.receive_queue);
                CloneCounters::count(&self.entered.shared.counters.given_back);
                self.before = Some(pending);
                self.go_on(slot, *state, &rest, true)
            }
            Yielded::Closed => self.closed(&pending),
            Yielded::Lost(why) => self.lost(why),
        }
    }

    async fn yielded(&self, pending: &mut PendingClone, under_way: &mut UnderWay<'_>) -> Yielded {
        let shared = self.entered.shared;
        let mut phase = shared.phase.subscribe();
        let mut told = false;
        if let Err(why) = self.leave_to(pending) {
            return Yielded::Lost(why);
        }
        loop {
            let said = tokio::select! {
                biased;
                said = pending.hear() => said,
                _ = phase.wait_for(|phase| *phase != NodePhase::Running), if !told => {
                    pending.close();
                    told = true;
                    continue;
                }
            };
            match said {
                Some(FromClone::Ended { ended, .. }) if ended.complete => {
                    under_way.answered(ended.status, ended.content_bytes);
                }
                Some(FromClone::Return { .. }) => {
                    if !shared.router.lead_here(&self.entered.flow).unwrap_or(false) {
                        return Yielded::Lost("the packet router lost it");
                    }
                    self.entered.original.lead_here();
                    pending.give();
                }
                Some(FromClone::Back { state, kept, .. }) => {
                    self.count(kept);
                    return match TcpState::decode(&state) {
                        Ok(state) if state.flow == self.entered.flow => Yielded::Back(Box::new(state)),
                        _ => Yielded::Lost("its clone has handed another connection back"),
                    };
                }
                Some(FromClone::Stays { .. }) => {
                    if let Err(why) = self.leave_to(pending) {
                        return Yielded::Lost(why);
                    }
                }
                Some(FromClone::Closed { kept, whole, .. }) => {
                    self.count(kept);
                    let lost = Yielded::Lost("its clone did not answer to the end");
                    return if whole { Yielded::Closed } else { lost };
                }
                Some(FromClone::Ended { .. }) => return Yielded::Lost("its clone did not answer to the end"),
                Some(_) => {}
                None => return Yielded::Lost("the link to its clone was lost"),
            }
        }
    }

    /// From now on the clone gets all packets.
    fn leave_to(&self, pending: &PendingClone) -> Result<(), &'static str> {
        let shared = self.entered.shared;
        if !shared.router.lead_all(&self.entered.flow, &pending.next_hop, false).unwrap_or(false) {
            return Err("its packets cannot be led to the clone");
        }
        self.entered.original.leave_to(&shared.router, pending.next_hop);
        Ok(())
    }

    /// Requests that the clone has answered after the first one.
    fn count(&self, kept: u64) {
        let counters = &self.entered.shared.counters;
        for counter in [&counters.kept, &counters.requests, &counters.clone_answers] {
            counter.fetch_add(kept, Ordering::Relaxed);
        }
    }

    /// The clone has ended the connection. What its client still says is led there for a while.
    fn closed(self, pending: &PendingClone) -> CarriedOver<'a> {
        let Self { frozen, entered, .. } = self;
        // Before the client may begin another connection from the same port.
        frozen.close();
        let shared = Arc::clone(entered.shared);
        let flow = entered.flow;
        if !shared.router.lead_all(&flow, &pending.next_hop, true).unwrap_or(false) {
            return CarriedOver::Lost;
        }
        entered.leave_closing();
        spawn_local(async move {
            sleep(CLOSING).await;
            // Another connection may have its place.
            shared.originals.unless_there(&flow, || {
                if let Ok(Some(entry)) = shared.router.get(&flow)
                    && entry.closing
                    && let Err(error) = shared.router.remove(&flow)
                {
                    tracing::error!(%error, ?flow, "the packet router keeps a connection");
                }
            });
        });
        CarriedOver::Closed
    }
}
