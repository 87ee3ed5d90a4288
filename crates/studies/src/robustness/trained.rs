//! Thresholds by the rule of the LARD paper, section 2.4: `T_low` from a training phase, `T_high` from a wanted difference of delays.
//!
//! ```text
//! training: k requests under way for each back-end, k = 1, 2, 4, ...: throughput X(k)
//! T_low  <- the least k with X(k) >= 0.95 * max X        below it back-ends idle
//! R      <- back-ends / max X                            mean service time
//! T_high <- max(T_low + 1, (T_low + D/R) / 2)
//! ```

use plimsoll_policy::Thresholds;

use super::cell::MatrixCell;
use super::setting::saturated;
use crate::execute::{Extent, execute_recording};
use crate::scenario::ScenarioError;
use crate::scenario::Strategy;
use crate::spec::StrategyChoice;
use crate::study_error::StudyError;
use crate::workload::Workload;

/// The wanted difference D of delays: what 25 and 65 mean where a request takes 3 ms, as on the paper's hardware.
const DELAY_DIFFERENCE_S: f64 = 0.3;
/// Requests under way for each back-end that are tried.
const UNDER_WAY: &[u32] = &[1, 2, 4, 8, 16, 32, 64];
/// This share of the best throughput is as good.
const AS_GOOD: f64 = 0.95;
/// The part of the requests that are served for training, each time.
const TRAINING: u64 = 5;
/// The policy whose thresholds are found.
pub(super) const TRAINED: &str = "lard_r";

/// LARD/R with these thresholds, for the back-ends of this cell.
///
/// # Errors
/// When a run fails.
pub(super) fn trained(cell: &MatrixCell, workload: &Workload) -> Result<StrategyChoice, StudyError> {
    let strategy = Strategy::find(TRAINED).map_err(|e| ScenarioError::Setting(e.to_string()))?;
    let extent = Extent { requests: Some((cell.requests / TRAINING).max(1)), ..Extent::default() };
    let mut measured: Vec<(u32, f64)> = Vec::new();
    for &under_way in UNDER_WAY {
        let scenario = saturated(cell, strategy, workload, f64::from(under_way))?;
        let (run, _) = execute_recording(&scenario, workload, extent, &mut ())?;
        measured.push((under_way, run.throughput_rps));
    }
    let most_rps = measured.iter().fold(0.0, |most: f64, &(_, rps)| most.max(rps));
    let t_low = measured.iter().find(|&&(_, rps)| rps >= AS_GOOD * most_rps).map_or(1, |&(k, _)| k);
    let service_s = cell.backends as f64 / most_rps.max(1e-9);
    let t_high = Thresholds::t_high_for_delay(t_low, DELAY_DIFFERENCE_S, service_s).min(1_000_000);
    let mut found = StrategyChoice::list(&format!("{TRAINED}:t_low={t_low},t_high={t_high}"))?;
    Ok(found.swap_remove(0))
}
