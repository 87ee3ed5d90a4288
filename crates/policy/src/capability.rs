//! Optional capabilities of policies, each a trait of its own.
//!
//! A policy declares them once, in [`Capabilities`](crate::Capabilities).

use std::fmt;

use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Candidates, Decision, LoadReport, PolicyTable, PollAnswer, assign_or_reject};
use crate::request::{Request, TargetId};
use crate::sniffed::{HostMetrics, SniffedRequest};
use crate::time::{Nanos, Time};

/// Answers [`Decision::Poll`] and decides from the answers.
pub trait Polls {
    /// The answers to the poll that [`Policy::choose`](crate::Policy::choose) asked for: those that came in time, perhaps none. By default
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

/// Takes load information that no request waits for.
pub trait TakesReports {
    /// A back-end reported its load.
    fn on_report(&mut self, report: &LoadReport, view: &ClusterView, now: Time);
}

/// Hears of the requests that pass on connections after their back-end was chosen.
pub trait Sniffs {
    /// `sniffed` passed.
    fn on_sniffed(&mut self, sniffed: &SniffedRequest, view: &ClusterView, now: Time);

    /// Whether the request that passed last is expected to be read from disk; `None` where nothing is predicted.
    fn expects_miss(&self) -> Option<bool> {
        None
    }
}

/// Decides from what is measured at back-ends periodically.
pub trait TakesMetrics {
    /// How often the back-ends are to be measured.
    fn metrics_interval(&self) -> Nanos;

    /// A back-end was measured.
    fn on_metrics(&mut self, metrics: &HostMetrics, view: &ClusterView, now: Time);
}

/// Asks back-ends for their load ahead of the requests that will need it. The answers arrive as reports.
pub trait Probes: TakesReports {
    /// The back-ends to ask now: called after each assignment.
    fn probe(&mut self, view: &ClusterView, now: Time) -> Candidates;
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

    /// Targets for which the policy keeps assignments: those that it tracks, unless it tracks them for something else.
    fn assigned_targets(&self) -> usize {
        self.tracked_targets()
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

/// The default rule for polls: the back-end that answered with the least load, lowest index on ties; without
/// any answer, the least loaded one by the front-end's own count.
#[must_use]
pub fn least_polled(answers: &[PollAnswer], view: &ClusterView) -> Decision {
    let polled = answers.iter().filter(|a| view.is_eligible(a.backend)).min_by_key(|a| (a.load, a.backend));
    assign_or_reject(polled.map(|a| a.backend).or_else(|| view.least_loaded()))
}
