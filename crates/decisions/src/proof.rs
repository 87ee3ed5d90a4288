//! What a replay finds.

use plimsoll_policy::{BackendId, Decision, Request, TargetId, Time};

use crate::event::RunHeader;
use crate::frame::Position;
use crate::reader::Missing;

/// A replayed assignment, for lists of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedDecision {
    /// [`Request::number`].
    pub request: u64,
    /// When.
    pub now: Time,
    /// What was asked for.
    pub target: TargetId,
    /// The chosen back-end.
    pub backend: BackendId,
}

/// The result of replaying one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProof {
    /// The run, with its back-ends as they were at its start, or where the log goes on.
    pub header: RunHeader,
    /// Its events.
    pub events: u64,
    /// Decisions of the policy, all compared.
    pub decisions: u64,
    /// Decisions equal to the logged ones.
    pub identical: u64,
    /// Whether the log has the run from its start. Otherwise a fresh policy had to stand in for one of
    /// unknown state, and equal decisions prove nothing.
    pub whole: bool,
}

/// A decision that came out differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Number of the event in the log, from 0.
    pub event: u64,
    /// Where it stands.
    pub position: Position,
    /// When it happened.
    pub now: Time,
    /// The request.
    pub request: Request,
    /// The logged decision.
    pub logged: Decision,
    /// The replayed decision.
    pub replayed: Decision,
    /// The target's server set in the replayed policy, after the decision.
    pub server_set: Vec<BackendId>,
    /// The load of each back-end before the decision, in requests.
    pub loads: Vec<u32>,
    /// The names of the back-ends.
    pub names: Vec<String>,
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// By run; a run with a gap counts twice.
    pub runs: Vec<RunProof>,
    /// Events in all.
    pub events: u64,
    /// The first decision that differs.
    pub first_difference: Option<Difference>,
    /// Where something is missing, and what.
    pub missing: Vec<(Position, Missing)>,
    /// Chunks that the writer reported as dropped.
    pub dropped_chunks: u64,
    /// Where files end in the middle of a record, and how many bytes were not read. Everything before is complete.
    pub truncated: Vec<(Position, u64)>,
    /// Where logs stop that were not closed: what may follow is unknown.
    pub endless: Vec<Position>,
    /// Whether the log stopped because its files were full.
    pub full: bool,
    /// Whether its last writer closed it.
    pub ended: bool,
}

impl Proof {
    /// Whether a decision differs in a run that the log has from its start.
    #[must_use]
    pub fn is_refuted(&self) -> bool {
        self.runs.iter().any(|run| run.whole && run.identical != run.decisions)
    }

    /// Whether the log is complete from its start to its end and every decision equals the logged one.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        let same = |run: &RunProof| run.whole && run.identical == run.decisions;
        !self.runs.is_empty()
            && self.runs.iter().all(same)
            && self.missing.is_empty()
            && self.dropped_chunks == 0
            && self.truncated.is_empty()
            && self.endless.is_empty()
    }

    /// Decisions compared, and how many of them are identical.
    #[must_use]
    pub fn decisions(&self) -> (u64, u64) {
        self.runs.iter().fold((0, 0), |(all, same), run| (all + run.decisions, same + run.identical))
    }
}

/// Checks that back-end `b` exists.
pub(crate) fn known(b: BackendId, backends: usize) -> Result<(), String> {
    if b.index() < backends {
        return Ok(());
    }
    Err(format!("the log is damaged: it names back-end {} of {backends}", b.0))
}
