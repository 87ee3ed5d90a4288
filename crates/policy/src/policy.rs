//! The trait that every policy implements, and the declaration of its capabilities.
//!
//! The core asks the policy for them ([`Policy::capabilities`]). A policy implements only the traits of the
//! capabilities that it has.

use std::any::Any;
use std::fmt;

use crate::capability::{
    BadState, Polls, Probes, SavesState, SharesState, ShowsState, Sniffs, TakesMetrics, TakesReports,
};
use crate::cluster::{BackendId, Change, ClusterView};
use crate::decision::{Completion, Decision, PolicyTable};
use crate::request::{Request, TargetId};
use crate::time::{Nanos, Time};

/// A request-distribution policy: hears of requests, completions, membership and time, and answers which
/// back-end serves a request.
///
/// A policy reads no clock, does no I/O and takes its randomness from the seed it was built with: equal calls
/// in equal order give equal answers. So simulator, live front-end and replay can drive the same policy
/// object through [`Core`](crate::Core).
///
/// Optional capabilities (poll, take load reports, share, show or save state) are traits of their own, see
/// [`Capabilities`].
///
/// Contract of the core: after `Assign(b)` it counts the request in the view, then calls `on_assign`; each
/// assignment ends in exactly one `on_complete`, after the view has been changed; membership changes arrive after
/// the view shows them; `now` never goes back.
pub trait Policy: Any + Send {
    /// Chooses a back-end for `request`, never one that takes no new requests.
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision;

    /// `request` was assigned to `backend`.
    fn on_assign(&mut self, request: &Request, backend: BackendId, view: &ClusterView, now: Time) {
        let _ = (request, backend, view, now);
    }

    /// A request ended.
    fn on_complete(&mut self, completion: &Completion, view: &ClusterView, now: Time) {
        let _ = (completion, view, now);
    }

    /// Membership, health or weight of `backend` changed.
    fn on_membership(&mut self, backend: BackendId, change: Change, view: &ClusterView, now: Time) {
        let _ = (backend, change, view, now);
    }

    /// Called every [`Policy::tick_interval`].
    fn on_tick(&mut self, view: &ClusterView, now: Time) {
        let _ = (view, now);
    }

    /// How often [`Policy::on_tick`] wants to be called; `None` for never.
    fn tick_interval(&self) -> Option<Nanos> {
        None
    }

    /// Its capabilities: the same static as in its registry entry.
    fn capabilities(&self) -> &'static Capabilities {
        &Capabilities::NONE
    }

    /// The policy that this one is around: its capabilities are those of that one.
    fn wrapped(&self) -> Option<&(dyn Policy + 'static)> {
        None
    }

    /// The same, mutably.
    fn wrapped_mut(&mut self) -> Option<&mut (dyn Policy + 'static)> {
        None
    }

    /// What a policy around another one counts besides.
    fn stats_of_wrapper(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

type Object = dyn Policy + 'static;
type Cast<T> = fn(&mut Object) -> &mut T;
type CastRef<T> = fn(&Object) -> &T;

/// The capabilities of a policy. [`Capabilities::NONE`] shows how to declare them.
#[derive(Clone, Copy)]
pub struct Capabilities {
    polls: Option<Cast<dyn Polls>>,
    takes_reports: Option<Cast<dyn TakesReports>>,
    probes: Option<Cast<dyn Probes>>,
    sniffs: Option<(CastRef<dyn Sniffs>, Cast<dyn Sniffs>)>,
    takes_metrics: Option<(CastRef<dyn TakesMetrics>, Cast<dyn TakesMetrics>)>,
    shares_state: Option<(CastRef<dyn SharesState>, Cast<dyn SharesState>)>,
    shows_state: Option<CastRef<dyn ShowsState>>,
    saves_state: Option<(CastRef<dyn SavesState>, Cast<dyn SavesState>)>,
    uses_classes: bool,
    needs_content: Option<&'static str>,
}

impl Capabilities {
    /// No capability. Each one is added by the method of its name, for the policy's own type:
    /// `Capabilities::NONE.polls::<Mine>().shows_state::<Mine>()`.
    pub const NONE: Self = Self {
        polls: None,
        takes_reports: None,
        probes: None,
        sniffs: None,
        takes_metrics: None,
        shares_state: None,
        shows_state: None,
        saves_state: None,
        uses_classes: false,
        needs_content: None,
    };

    /// Adds [`Polls`].
    #[must_use]
    pub const fn polls<P: Policy + Polls>(self) -> Self {
        Self { polls: Some(|policy| own_mut::<P>(policy)), ..self }
    }

    /// Adds [`TakesReports`].
    #[must_use]
    pub const fn takes_reports<P: Policy + TakesReports>(self) -> Self {
        Self { takes_reports: Some(|policy| own_mut::<P>(policy)), ..self }
    }

    /// Adds [`Probes`], and [`TakesReports`] with it.
    #[must_use]
    pub const fn probes<P: Policy + Probes>(self) -> Self {
        Self { probes: Some(|policy| own_mut::<P>(policy)), ..self.takes_reports::<P>() }
    }

    /// Adds [`Sniffs`].
    #[must_use]
    pub const fn sniffs<P: Policy + Sniffs>(self) -> Self {
        Self { sniffs: Some((|policy| own::<P>(policy), |policy| own_mut::<P>(policy))), ..self }
    }

    /// Adds [`TakesMetrics`].
    #[must_use]
    pub const fn takes_metrics<P: Policy + TakesMetrics>(self) -> Self {
        Self { takes_metrics: Some((|policy| own::<P>(policy), |policy| own_mut::<P>(policy))), ..self }
    }

    /// Adds [`SharesState`].
    #[must_use]
    pub const fn shares_state<P: Policy + SharesState>(self) -> Self {
        Self { shares_state: Some((|policy| own::<P>(policy), |policy| own_mut::<P>(policy))), ..self }
    }

    /// Adds [`ShowsState`].
    #[must_use]
    pub const fn shows_state<P: Policy + ShowsState>(self) -> Self {
        Self { shows_state: Some(|policy| own::<P>(policy)), ..self }
    }

    /// Adds [`SavesState`].
    #[must_use]
    pub const fn saves_state<P: Policy + SavesState>(self) -> Self {
        Self { saves_state: Some((|policy| own::<P>(policy), |policy| own_mut::<P>(policy))), ..self }
    }

    /// Says that its decisions depend on the classes of requests: it begins anew when classes change.
    #[must_use]
    pub const fn uses_classes(self) -> Self {
        Self { uses_classes: true, ..self }
    }

    /// Says that it decides by what a request asks for, and so cannot decide about a connection whose requests are not known yet;
    /// `why` says what it asks of a request, as the end of "it decides by ...".
    #[must_use]
    pub const fn needs_content(self, why: &'static str) -> Self {
        Self { needs_content: Some(why), ..self }
    }

    /// The names of its capabilities, for lists.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let all = [
            (self.polls.is_some(), "polls"),
            (self.takes_reports.is_some(), "takes_reports"),
            (self.probes.is_some(), "probes"),
            (self.sniffs.is_some(), "sniffs"),
            (self.takes_metrics.is_some(), "takes_metrics"),
            (self.shares_state.is_some(), "shares_state"),
            (self.shows_state.is_some(), "shows_state"),
            (self.saves_state.is_some(), "saves_state"),
            (self.uses_classes, "uses_classes"),
            (self.needs_content.is_some(), "needs_content"),
        ];
        all.into_iter().filter_map(|(has, name)| has.then_some(name)).collect()
    }

    /// Whether it decides from the answers to polls of its own.
    #[must_use]
    pub const fn can_poll(&self) -> bool {
        self.polls.is_some()
    }

    /// Whether it probes back-ends ahead of requests.
    #[must_use]
    pub const fn can_probe(&self) -> bool {
        self.probes.is_some()
    }

    /// Whether it hears of requests that pass on connections.
    #[must_use]
    pub const fn can_sniff(&self) -> bool {
        self.sniffs.is_some()
    }

    /// Whether its decisions depend on the classes of requests.
    #[must_use]
    pub const fn depends_on_classes(&self) -> bool {
        self.uses_classes
    }

    /// By what of a request it decides; `None` for a policy that can decide about a connection whose requests are not known yet.
    #[must_use]
    pub const fn content_needed(&self) -> Option<&'static str> {
        self.needs_content
    }

    /// Whether front-ends can share its state.
    #[must_use]
    pub const fn can_share_state(&self) -> bool {
        self.shares_state.is_some()
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

const OWN: &str = "a policy object names the capabilities of its own type";
const WRAPPED: &str = "a policy that is around another one is always so";

fn own<P: Policy>(policy: &Object) -> &P {
    let any: &dyn Any = policy.wrapped().unwrap_or(policy);
    any.downcast_ref().expect(OWN)
}

fn own_mut<P: Policy>(policy: &mut Object) -> &mut P {
    let wraps = policy.wrapped().is_some();
    let any: &mut dyn Any = if wraps { policy.wrapped_mut().expect(WRAPPED) } else { policy };
    any.downcast_mut().expect(OWN)
}

impl dyn Policy {
    pub(crate) fn as_polls(&mut self) -> Option<&mut dyn Polls> {
        Some(self.capabilities().polls?(self))
    }

    pub(crate) fn as_takes_reports(&mut self) -> Option<&mut dyn TakesReports> {
        Some(self.capabilities().takes_reports?(self))
    }

    pub(crate) fn as_probes(&mut self) -> Option<&mut dyn Probes> {
        Some(self.capabilities().probes?(self))
    }

    pub(crate) fn as_sniffs(&mut self) -> Option<&mut dyn Sniffs> {
        Some(self.capabilities().sniffs?.1(self))
    }

    pub(crate) fn as_takes_metrics(&mut self) -> Option<&mut dyn TakesMetrics> {
        Some(self.capabilities().takes_metrics?.1(self))
    }

    /// Whether the request that passed last is expected to be read from disk; `None` where nothing is predicted.
    #[must_use]
    pub fn expects_miss(&self) -> Option<bool> {
        self.capabilities().sniffs?.0(self).expects_miss()
    }

    /// How often it wants the back-ends to be measured; `None` for policies that take no metrics.
    #[must_use]
    pub fn metrics_interval(&self) -> Option<Nanos> {
        Some(self.capabilities().takes_metrics?.0(self).metrics_interval())
    }

    pub(crate) fn as_shares_state(&mut self) -> Option<&mut dyn SharesState> {
        Some(self.capabilities().shares_state?.1(self))
    }

    /// What this front-end has seen; `None` for policies that share nothing.
    #[must_use]
    pub fn seen(&self) -> Option<Vec<(u64, u64)>> {
        Some(self.capabilities().shares_state?.0(self).seen())
    }

    /// The state as bytes; `None` for policies that do not save it.
    #[must_use]
    pub fn save(&self) -> Option<Vec<u8>> {
        Some(self.capabilities().saves_state?.0(self).save())
    }

    /// Restores saved state into a fresh object; `None` for policies that do not save it.
    ///
    /// # Errors
    /// Like [`SavesState::restore`].
    pub fn restore(&mut self, saved: &[u8]) -> Option<Result<(), BadState>> {
        Some(self.capabilities().saves_state?.1(self).restore(saved))
    }

    /// The policy's [`ShowsState`], if it has it.
    #[must_use]
    pub fn shown(&self) -> Option<&dyn ShowsState> {
        Some(self.capabilities().shows_state?(self))
    }

    /// [`ShowsState::server_set`]; empty for policies that show nothing.
    #[must_use]
    pub fn server_set(&self, target: TargetId) -> Vec<BackendId> {
        self.shown().map(|shown| shown.server_set(target)).unwrap_or_default()
    }

    /// [`ShowsState::tracked_targets`]; 0 for policies that show nothing.
    #[must_use]
    pub fn tracked_targets(&self) -> usize {
        self.shown().map_or(0, ShowsState::tracked_targets)
    }

    /// [`ShowsState::assigned_targets`]; 0 for policies that show nothing.
    #[must_use]
    pub fn assigned_targets(&self) -> usize {
        self.shown().map_or(0, ShowsState::assigned_targets)
    }

    /// [`ShowsState::stats`]; empty for policies that show nothing.
    #[must_use]
    pub fn stats(&self) -> Vec<(&'static str, f64)> {
        let mut stats = self.shown().map(ShowsState::stats).unwrap_or_default();
        stats.extend(self.stats_of_wrapper());
        stats
    }

    /// [`ShowsState::tables`]; empty for policies that show nothing.
    #[must_use]
    pub fn tables(&self) -> Vec<PolicyTable> {
        self.shown().map(ShowsState::tables).unwrap_or_default()
    }
}
