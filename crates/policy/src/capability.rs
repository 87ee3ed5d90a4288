//! Optional capabilities of a policy. Each policy declares its own once, in a static that the policy object
//! and its registry entry share.
//!
//! The core asks the policy for them ([`Policy::capabilities`]). A policy implements only the traits of the
//! capabilities that it has.

use std::any::Any;
use std::fmt;

use crate::cluster::{BackendId, ClusterView};
use crate::policy::{Decision, LoadReport, Policy, PolicyTable, PollAnswer, assign_or_reject};
use crate::request::{Request, TargetId};
use crate::time::Time;

/// Answers [`Decision::Poll`] and decides from the answers.
pub trait Polls {
    /// The answers to the poll that [`Policy::choose`] asked for: those that came in time, perhaps none. By default
    /// [`least_polled`].
    fn on_poll(
        &mut self,
        request: &Request,
        answers: &[PollAnswer],
        view: &ClusterView,
        now: Time,
    ) -> Decision {
        let _ = (request, now);
        least_polled(answers, view)
    }
}

/// Takes load information that back-ends send by themselves.
pub trait TakesReports {
    /// A back-end reported its load.
    fn on_report(&mut self, report: &LoadReport, view: &ClusterView, now: Time);
}

/// Shares its observations, so that several front-ends distribute by the sum of what all have seen.
pub trait SharesState {
    /// What this front-end has seen lately: amounts by key, sorted by key. Front-ends add up their amounts.
    fn seen(&self) -> Vec<(u64, u64)>;

    /// Takes the sum over all front-ends, this one included.
    fn on_shared(&mut self, sum: &[(u64, u64)], now: Time);
}

/// Shows its inner state.
pub trait ShowsState {
    /// The back-ends that serve `target` now, where the policy keeps such an assignment.
    fn server_set(&self, target: TargetId) -> Vec<BackendId> {
        let _ = target;
        Vec::new()
    }

    /// Targets of which the policy keeps state; never above its configured capacity.
    fn tracked_targets(&self) -> usize {
        0
    }

    /// The policy's own counters, by stable name.
    fn stats(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Further state, such as boundaries, histograms and recent adjustments. Computed on each call, so not
    /// meant to be called per request.
    fn tables(&self) -> Vec<PolicyTable> {
        Vec::new()
    }
}

/// Saves its state. A fresh object that restores it decides as this one would have.
pub trait SavesState {
    /// The state as bytes, to be restored by an object with the same parameters.
    fn save(&self) -> Vec<u8>;

    /// Restores what another object saved.
    ///
    /// # Errors
    /// When no object with these parameters can have saved these bytes. The state is then unchanged.
    fn restore(&mut self, saved: &[u8]) -> Result<(), BadState>;
}

/// Why a saved state cannot be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadState(pub &'static str);

impl fmt::Display for BadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the saved state cannot be restored: {}", self.0)
    }
}

impl std::error::Error for BadState {}

type DynPolicy = dyn Policy + 'static;
type Cast<T> = fn(&mut DynPolicy) -> &mut T;
type CastRef<T> = fn(&DynPolicy) -> &T;

/// The capabilities of a policy. [`Capabilities::NONE`] shows how to declare them.
#[derive(Clone, Copy)]
pub struct Capabilities {
    polls: Option<Cast<dyn Polls>>,
    takes_reports: Option<Cast<dyn TakesReports>>,
    shares_state: Option<(CastRef<dyn SharesState>, Cast<dyn SharesState>)>,
    shows_state: Option<CastRef<dyn ShowsState>>,
    saves_state: Option<(CastRef<dyn SavesState>, Cast<dyn SavesState>)>,
}

impl Capabilities {
    /// No capability. Each one is added by the method of its name, for the policy's own type:
    /// `Capabilities::NONE.polls::<Mine>().shows_state::<Mine>()`.
    pub const NONE: Self =
        Self { polls: None, takes_reports: None, shares_state: None, shows_state: None, saves_state: None };

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

    /// The names of its capabilities, for lists.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let all = [
            (self.polls.is_some(), "polls"),
            (self.takes_reports.is_some(), "takes_reports"),
            (self.shares_state.is_some(), "shares_state"),
            (self.shows_state.is_some(), "shows_state"),
            (self.saves_state.is_some(), "saves_state"),
        ];
        all.into_iter().filter_map(|(has, name)| has.then_some(name)).collect()
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

fn own<P: Policy>(policy: &DynPolicy) -> &P {
    let any: &dyn Any = policy;
    any.downcast_ref().expect(OWN)
}

fn own_mut<P: Policy>(policy: &mut DynPolicy) -> &mut P {
    let any: &mut dyn Any = policy;
    any.downcast_mut().expect(OWN)
}

impl dyn Policy {
    pub(crate) fn as_polls(&mut self) -> Option<&mut dyn Polls> {
        Some(self.capabilities().polls?(self))
    }

    pub(crate) fn as_takes_reports(&mut self) -> Option<&mut dyn TakesReports> {
        Some(self.capabilities().takes_reports?(self))
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

    /// [`ShowsState::stats`]; empty for policies that show nothing.
    #[must_use]
    pub fn stats(&self) -> Vec<(&'static str, f64)> {
        self.shown().map(ShowsState::stats).unwrap_or_default()
    }

    /// [`ShowsState::tables`]; empty for policies that show nothing.
    #[must_use]
    pub fn tables(&self) -> Vec<PolicyTable> {
        self.shown().map(ShowsState::tables).unwrap_or_default()
    }
}

/// The default rule for polls: the back-end that answered with the least load, lowest index on ties; without
/// any answer, the least loaded one by the front-end's own count.
#[must_use]
pub fn least_polled(answers: &[PollAnswer], view: &ClusterView) -> Decision {
    let polled = answers.iter().filter(|a| view.is_eligible(a.backend)).min_by_key(|a| (a.load, a.backend));
    assign_or_reject(polled.map(|a| a.backend).or_else(|| view.least_loaded()))
}
