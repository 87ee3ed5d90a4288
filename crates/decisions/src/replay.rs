//! Replays a log through fresh policies and proves that each decision equals the logged one.

use crate::event::{HeaderError, RunHeader, What};
use crate::frame::Position;
use crate::proof::{Difference, ListedDecision, Proof};
use crate::reader::{LogItem, LogReadError, LogReader};
use crate::replayed_run::ReplayedRun;

/// A log that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// The policy of a run cannot be built.
    #[error("{position}: the run cannot be replayed: {error}")]
    Header {
        /// Where the run starts.
        position: Position,
        /// Why.
        error: HeaderError,
    },
    /// It contradicts itself.
    #[error("{position}: {what}")]
    Inconsistent {
        /// Where.
        position: Position,
        /// What.
        what: String,
    },
}

/// Replays a log to its end. `sink` gets each replayed assignment.
///
/// # Errors
/// When the log cannot be read, names something unknown, or contradicts itself.
pub fn replay(reader: &mut LogReader, sink: &mut dyn FnMut(ListedDecision)) -> Result<Proof, ReplayError> {
    let mut proof = Proof::default();
    let mut run: Option<ReplayedRun> = None;
    while let Some(item) = reader.next_item()? {
        proof.ended = matches!(item, LogItem::Ended);
        match item {
            LogItem::Event(event) => {
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
            LogItem::Resumed { missing, run: header, now: _ } => {
                proof.missing.push((reader.place(), missing));
                let next = header.map(|header| start(*header, false, reader)).transpose()?;
                finish(&mut proof, std::mem::replace(&mut run, next));
            }
            LogItem::Dropped { chunks } => proof.dropped_chunks = proof.dropped_chunks.saturating_add(chunks),
            LogItem::Truncated { unread_bytes } => proof.truncated.push((reader.place(), unread_bytes)),
            LogItem::NoEnd => proof.endless.push(reader.place()),
            LogItem::Full => proof.full = true,
            LogItem::Ended => {}
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
