//! Replays a log through fresh policies and proves that each decision comes out as it was logged.

use plimsoll_policy::{BackendId, Decision, Request, TargetId, Time};

use crate::event::{HeaderError, RunHeader, What};
use crate::frame::Position;
use crate::reader::{Item, LogReader, Missing, ReadError};
use crate::replayed_run::ReplayedRun;

/// A log that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The policy of a run cannot be built.
    #[error("{position}: the run cannot be replayed: {error}")]
    Header {
        /// Where the run starts.
        position: Position,
        /// Why.
        error: HeaderError,
    },
    /// It tells what cannot have happened.
    #[error("{position}: {what}")]
    Inconsistent {
        /// Where.
        position: Position,
        /// What.
        what: String,
    },
}

/// An assignment that a policy made again, for lists of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedDecision {
    /// [`Request::number`].
    pub request: u64,
    /// When.
    pub now: Time,
    /// What was asked for.
    pub target: TargetId,
    /// Who answers.
    pub backend: BackendId,
}

/// What the replay of one run found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProof {
    /// The run, with its back-ends as they were at its start, or where the log goes on.
    pub header: RunHeader,
    /// Its events.
    pub events: u64,
    /// Decisions of the policy, all compared.
    pub decisions: u64,
    /// Those that came out as logged.
    pub identical: u64,
    /// Whether the log has the run from its start; otherwise a fresh policy had to stand in for one whose state nobody
    /// knows, and equal decisions prove nothing.
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
    /// What the log says.
    pub logged: Decision,
    /// What came out now.
    pub replayed: Decision,
    /// The back-ends that the replayed policy has serve the target, after the decision.
    pub server_set: Vec<BackendId>,
    /// The load of each back-end before the decision, in requests.
    pub loads: Vec<u32>,
    /// The names of the back-ends.
    pub names: Vec<String>,
}

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// Run by run; a run that the log loses and finds again counts twice.
    pub runs: Vec<RunProof>,
    /// Events in all.
    pub events: u64,
    /// The first decision that differs.
    pub first_difference: Option<Difference>,
    /// Where something is missing, and what.
    pub missing: Vec<(Position, Missing)>,
    /// Chunks that the writer says it dropped.
    pub dropped_chunks: u64,
    /// Where files end in the middle of a record. What comes before is whole.
    pub truncated: Vec<Position>,
    /// Whether the log stopped because its files were full.
    pub full: bool,
    /// Whether its last writer closed it.
    pub ended: bool,
}

impl Proof {
    /// Whether some decision came out differently in a run that the log has from its start.
    #[must_use]
    pub fn is_refuted(&self) -> bool {
        self.runs.iter().any(|run| run.whole && run.identical != run.decisions)
    }

    /// Whether the log is whole from its start and each of its decisions came out as logged.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        let same = |run: &RunProof| run.whole && run.identical == run.decisions;
        !self.runs.is_empty()
            && self.runs.iter().all(same)
            && self.missing.is_empty()
            && self.dropped_chunks == 0
    }

    /// Decisions compared, and how many of them are identical.
    #[must_use]
    pub fn decisions(&self) -> (u64, u64) {
        self.runs.iter().fold((0, 0), |(all, same), run| (all + run.decisions, same + run.identical))
    }
}

/// Replays a log to its end. Each assignment that the policy makes now is given to `sink`.
///
/// # Errors
/// When the log cannot be read, names what there is not, or contradicts itself.
pub fn replay(reader: &mut LogReader, sink: &mut dyn FnMut(ListedDecision)) -> Result<Proof, ReplayError> {
    let mut proof = Proof::default();
    let mut run: Option<ReplayedRun> = None;
    while let Some(item) = reader.next_item()? {
        proof.ended = matches!(item, Item::Ended);
        match item {
            Item::Event(event) => {
                let number = proof.events;
                proof.events += 1;
                if let What::Run(header) = event.what {
                    finish(&mut proof, run.replace(start(*header, true, reader)?));
                    continue;
                }
                let Some(run) = &mut run else {
                    return Err(inconsistent(reader, "an event comes before the first run".into()));
                };
                let found = run.event(&event, sink).map_err(|what| inconsistent(reader, what))?;
                if let Some(difference) = found.filter(|_| proof.first_difference.is_none()) {
                    let position = reader.place();
                    proof.first_difference = Some(Difference { event: number, position, ..*difference });
                }
            }
            Item::Resumed { missing, run: header, now: _ } => {
                proof.missing.push((reader.place(), missing));
                let next = header.map(|header| start(*header, false, reader)).transpose()?;
                finish(&mut proof, std::mem::replace(&mut run, next));
            }
            Item::Dropped { chunks } => proof.dropped_chunks = proof.dropped_chunks.saturating_add(chunks),
            Item::Truncated => proof.truncated.push(reader.place()),
            Item::Full => proof.full = true,
            Item::Ended => {}
        }
    }
    finish(&mut proof, run);
    Ok(proof)
}

fn start(header: RunHeader, whole: bool, reader: &LogReader) -> Result<ReplayedRun, ReplayError> {
    ReplayedRun::start(header, whole).map_err(|error| ReplayError::Header { position: reader.place(), error })
}

fn finish(proof: &mut Proof, run: Option<ReplayedRun>) {
    proof.runs.extend(run.map(ReplayedRun::into_proof));
}

pub(crate) fn inconsistent(reader: &LogReader, what: String) -> ReplayError {
    ReplayError::Inconsistent { position: reader.place(), what }
}

/// A back-end that there is, or what is wrong.
pub(crate) fn known(b: BackendId, backends: usize) -> Result<(), String> {
    if b.index() < backends {
        return Ok(());
    }
    Err(format!("the log is damaged: it names back-end {} of {backends}", b.0))
}
