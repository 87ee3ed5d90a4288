//! What the estimator is built from.

use super::aggregate::LoadThresholds;
use super::cost_table::CostTable;
use crate::time::Nanos;

/// Weight of the latest period in averages over recent ones.
pub(super) const LATEST: f64 = 1.0 / 16.0;

/// How the estimator predicts whether a document comes from disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissPredictor {
    /// The paper's: by a table of the bytes read in each second of the last six hours.
    History,
    /// By the bytes that had been read when the document was last asked for, which stand in place of the time: no table, and exact.
    Stamp,
    /// Nothing is ever missed.
    AlwaysHit,
}

/// What the estimator is built from.
#[derive(Debug, Clone)]
pub struct EstimatorSetup {
    /// P: the time between two estimates.
    pub period: Nanos,
    /// Span of a slot of the boards.
    pub slot: Nanos,
    /// Slots of a board.
    pub slots: usize,
    /// What requests cost.
    pub costs: CostTable,
    /// Memory cache of a back-end in bytes.
    pub cache_bytes: u64,
    /// Documents whose references are kept.
    pub documents: usize,
    /// How misses are predicted.
    pub predictor: MissPredictor,
    /// Where loads count as low or high.
    pub thresholds: LoadThresholds,
    /// Whether what is past is cleared from the boards. Without it the past comes back after a board's length; the paper leaves
    /// open whether it does.
    pub clear_past: bool,
    /// As in [`LruMap::with_seed`](crate::LruMap::with_seed).
    pub table_seed: u64,
}
