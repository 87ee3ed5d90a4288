//! The shared state of a connection: its task, the links and the agent's shutdown communicate through it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_datapath::Flow;
use plimsoll_wire::message::{Conn, FromAgent};
use tokio::sync::Notify;

use super::closing::Closing;
use super::config::FrontEnd;
use super::link::FrontEndLink;

/// The front-end's decision about a further request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlacementDecision {
    Stay,
    Return,
}

/// How a connection is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Another machine has it: nothing may be sent to the client.
    Silent,
    /// The client gets a RST.
    Reset,
}

/// A connection that was taken over.
pub(super) struct Connection {
    pub(super) flow: Flow,
    /// The agent's number for it, independent of links.
    pub(super) number: u64,
    /// The front-end that handed it off.
    pub(super) front_end: Arc<FrontEnd>,
    state: Mutex<ConnectionState>,
    wake: Notify,
    cut: Notify,
}

struct ConnectionState {
    /// The link to report on, and its number there.
    link: Option<(Arc<FrontEndLink<Connection>>, Conn)>,
    /// The number of the link that has offered it to its front-end.
    offered: Option<u64>,
    /// Whether further requests are asked about.
    ask: bool,
    confirmed: bool,
    lease_until_ns: u64,
    request: u32,
    active: bool,
    /// The request that was asked about, as long as nothing was decided.
    asked: Option<u32>,
    decision: Option<PlacementDecision>,
    closing: bool,
    cut: Option<Cut>,
    over: bool,
}

impl Closing for Connection {
    fn is_closing(&self) -> bool {
        self.state().closing
    }

    /// Waits until something may have changed: a decision, a request to close, the link.
    async fn woken(&self) {
        self.wake.notified().await;
    }
}

/// The initial state of a connection.
pub(super) struct Birth {
    pub(super) link: Arc<FrontEndLink<Connection>>,
    pub(super) conn: Conn,
    pub(super) request: u32,
    pub(super) lease_until_ns: u64,
    pub(super) ask: bool,
}

impl Connection {
    pub(super) fn new(flow: Flow, number: u64, front_end: Arc<FrontEnd>, birth: Birth) -> Self {
        Self {
            flow,
            number,
            front_end,
            state: Mutex::new(ConnectionState {
                link: Some((birth.link, birth.conn)),
                offered: None,
                ask: birth.ask,
                confirmed: false,
                lease_until_ns: birth.lease_until_ns,
                request: birth.request,
                active: true,
                asked: None,
                decision: None,
                closing: false,
                cut: None,
                over: false,
            }),
            wake: Notify::new(),
            cut: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports, if there is a link.
    pub(super) fn tell<'m>(&self, message: impl FnOnce(Conn) -> FromAgent<'m>) {
        let link = self.state().link.clone();
        if let Some((link, conn)) = link {
            link.push(&message(conn));
        }
    }

    /// Reports something that is not urgent.
    pub(super) fn tell_later<'m>(&self, message: impl FnOnce(Conn) -> FromAgent<'m>) {
        let link = self.state().link.clone();
        if let Some((link, conn)) = link {
            link.push_later(&message(conn));
        }
    }

    /// Counts a further request and returns its number.
    pub(super) fn next_request(&self) -> u32 {
        let mut state = self.state();
        state.request = state.request.wrapping_add(1);
        state.active = true;
        state.request
    }

    pub(super) fn request(&self) -> u32 {
        self.state().request
    }

    pub(super) fn is_active(&self) -> bool {
        self.state().active
    }

    /// Its request has been answered.
    pub(super) fn answered(&self) {
        self.state().active = false;
    }

    /// Whether to ask about this request, as about each that is not for the agent; from now on decisions about it are
    /// taken. `None` when nobody is there.
    pub(super) fn asks(&self, request: u32, foreign: bool) -> Option<bool> {
        let mut state = self.state();
        state.link.as_ref()?;
        let ask = state.ask || foreign;
        if ask {
            (state.asked, state.decision) = (Some(request), None);
        }
        Some(ask)
    }

    /// What has been decided; [`PlacementDecision::Stay`] when nobody is there any more who would.
    pub(super) fn decision(&self) -> Option<PlacementDecision> {
        let mut state = self.state();
        let decision =
            state.decision.take().or_else(|| state.link.is_none().then_some(PlacementDecision::Stay))?;
        state.asked = None;
        Some(decision)
    }

    /// Ends the wait for a decision; a later one is ignored.
    pub(super) fn give_up_asking(&self) {
        self.state().asked = None;
    }

    /// Takes the front-end's decision. False when this request was not asked about.
    pub(super) fn decide(&self, request: u32, decision: PlacementDecision) -> bool {
        let mut state = self.state();
        if state.asked != Some(request) || state.decision.is_some() {
            return false;
        }
        state.decision = Some(decision);
        drop(state);
        self.wake.notify_one();
        true
    }

    /// Closes it once the request under way is answered.
    pub(super) fn close(&self) {
        self.state().closing = true;
        self.wake.notify_one();
    }

    /// Makes the lease endless. Returns false if the link that says so was taken from it meanwhile: then the lease ends.
    pub(super) fn confirm(&self) -> bool {
        let mut state = self.state();
        state.confirmed |= state.link.is_some() || state.over;
        state.confirmed
    }

    pub(super) fn cut(&self, how: Cut) {
        let mut state = self.state();
        state.cut = state.cut.or(Some(how));
        drop(state);
        self.cut.notify_one();
    }

    /// Waits until it is cut off.
    pub(super) async fn is_cut(&self) -> Cut {
        loop {
            if let Some(how) = self.cut_now() {
                return how;
            }
            self.cut.notified().await;
        }
    }

    pub(super) fn cut_now(&self) -> Option<Cut> {
        self.state().cut
    }

    /// The link of this number is lost. If that was its link, and its lease was never confirmed: the end of the lease.
    pub(super) fn unlink(&self, number: u64) -> Option<u64> {
        let mut state = self.state();
        if state.link.as_ref().is_some_and(|(link, _)| link.number != number) {
            return None;
        }
        state.link = None;
        // What was decided about a request counts no more: there would be nobody to give the connection back to.
        state.decision = None;
        let doubtful = (!state.confirmed).then_some(state.lease_until_ns);
        drop(state);
        self.wake.notify_one();
        doubtful
    }

    /// Takes it for the link of this number, if it has none and no other one has offered it: the number of its latest request,
    /// and whether that is being answered.
    pub(super) fn offer(&self, number: u64) -> Option<(u32, bool)> {
        let mut state = self.state();
        if state.link.is_some() || state.offered.is_some() || !state.confirmed || state.cut.is_some() {
            return None;
        }
        state.offered = Some(number);
        Some((state.request, state.active))
    }

    /// Whether it has no link, and was confirmed before.
    pub(super) fn is_orphan(&self) -> bool {
        let state = self.state();
        state.link.is_none() && state.confirmed
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.state().over
    }

    /// The link of this number is lost, which has offered it.
    pub(super) fn withdraw(&self, number: u64) {
        let mut state = self.state();
        state.offered = state.offered.filter(|by| *by != number);
    }

    /// Whoever has offered it: another front-end is the active one.
    pub(super) fn withdraw_from_all(&self) {
        self.state().offered = None;
    }

    /// Marks it as adopted by the front-end, whichever link it had. False when it is over or about to be.
    pub(super) fn adopt(&self, link: Arc<FrontEndLink<Connection>>, conn: Conn) -> bool {
        let mut state = self.state();
        if state.over || state.cut.is_some() {
            return false;
        }
        state.offered = None;
        let before = state.link.replace((link, conn));
        drop(state);
        if let Some((link, conn)) = before {
            link.forget(conn);
        }
        true
    }

    /// Marks it as over. Returns the link to report on, if any, and its number there.
    pub(super) fn leave(&self) -> Option<(Arc<FrontEndLink<Connection>>, Conn)> {
        let mut state = self.state();
        state.over = true;
        state.link.take()
    }
}
