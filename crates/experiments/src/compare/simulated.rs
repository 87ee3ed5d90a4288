//! What the simulator says of a cell.

use plimsoll_studies::scenario::{Admission, Scenario, Strategy};
use plimsoll_studies::{Workload, execute};

use super::cells::CompareCell;
use super::measure::CompareTimes;
use crate::ExperimentError;
use crate::loopback::{REQUESTS, with_overrides};

/// Requests per second of these policies in a cell, in their order: the same requests, memories and costs, with the warm-up left out.
///
/// # Errors
/// When a run fails.
pub fn simulated_rps(
    cell: &CompareCell,
    policies: &[&str],
    times: &CompareTimes,
) -> Result<Vec<f64>, ExperimentError> {
    let failed = |error: &dyn std::fmt::Display| ExperimentError::Failed(error.to_string());
    let workload = with_overrides(cell.workload, |overrides| {
        Workload::synthesize_first(cell.workload, overrides, times.seed, Some(REQUESTS as u64))
    });
    let workload = workload.map_err(|e| failed(&e))?;
    let one = |policy: &&str| {
        let strategy = Strategy::find(policy).map_err(|e| failed(&e))?;
        let mut scenario = Scenario::lard(strategy, cell.backends, times.seed);
        scenario.cache_bytes = cell.cache_bytes;
        scenario.admission = Admission::Fixed(cell.connections() as u64);
        scenario.warmup = REQUESTS as u64 * 2 / 5;
        let run = execute(&scenario, &workload, &mut ()).map_err(|e| failed(&e))?;
        Ok(run.throughput_rps * times.speed)
    };
    policies.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{CELLS, CellLoser, SYSTEMS};
    use super::*;

    #[test]
    fn every_cell_can_be_simulated() {
        let times = CompareTimes { warmup_s: 1.0, measured_s: 1.0, speed: 2.0, seed: 1 };
        let policies: Vec<&str> = SYSTEMS.iter().map(|system| system.simulated_as).collect();
        for (cell, number) in CELLS.iter().zip(1..) {
            let rps = simulated_rps(cell, &policies, &times).unwrap();
            assert!(rps.iter().all(|&rps| rps > 100.0), "{rps:?}");
            assert_eq!(cell.number, number);
            // What is said to lose does, though by how much depends on what the policies do inside.
            let loser = match cell.loser {
                CellLoser::Hashing => "uri_hash",
                CellLoser::BoundedHashing => "bounded_load_hash",
                CellLoser::LardR => "lard_r",
            };
            let of_loser = policies.iter().zip(&rps).find(|(policy, _)| **policy == loser);
            let most = rps.iter().copied().fold(0.0, f64::max);
            assert!(of_loser.is_some_and(|(_, &rps)| rps < 0.95 * most), "cell {number}: {rps:?}");
        }
    }
}
