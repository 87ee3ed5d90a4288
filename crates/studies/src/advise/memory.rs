//! How much memory back-ends should have for documents.

use plimsoll_sim::hardware::{HardwareSpec, PAPER};
use serde::Serialize;

use super::contestants::CONTESTANTS;
use super::plan::{AdviseBench, AdviseLoad, RunPlan};
use crate::scenario::ScenarioError;

/// The least memory that is tried.
const LEAST_BYTES: u64 = 1 << 20;
/// The least that a machine of today has to spare for documents: nobody saves memory below that.
const SPARE_BYTES: u64 = 256 << 20;
/// The same of the papers' machine: what each back-end had for documents there.
const PAPER_SPARE_BYTES: u64 = 32 << 20;
/// Sizes that are tried, each twice the one before; the largest one holds all documents.
const STEPS: u32 = 7;
/// Enough memory is with which so much of the throughput is reached that all the documents in every memory would give.
const ENOUGH: f64 = 0.9;

/// What the policies can serve with some memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryStep {
    /// Memory for documents of each back-end in bytes.
    pub memory_bytes: u64,
    /// Requests per second at saturation, by policy in their order.
    pub capacity_rps: Vec<f64>,
}

impl MemoryStep {
    fn best_rps(&self) -> f64 {
        self.capacity_rps.iter().copied().fold(0.0, f64::max)
    }
}

/// The least memory that is advised for back-ends of this hardware.
pub(super) fn spare_bytes(hardware: &HardwareSpec) -> u64 {
    if hardware.name == PAPER.name { PAPER_SPARE_BYTES } else { SPARE_BYTES }
}

/// The memory to begin with, before the number of back-ends is known: a quarter of all documents.
pub(super) fn provisional_bytes(documents_bytes: u64, least_bytes: u64) -> u64 {
    (documents_bytes / 4).max(least_bytes).checked_next_power_of_two().unwrap_or(1 << 63)
}

/// The sizes to try.
fn ladder(documents_bytes: u64) -> Vec<u64> {
    let largest = documents_bytes.max(LEAST_BYTES).checked_next_power_of_two().unwrap_or(1 << 63);
    (0..STEPS).rev().map(|halvings| largest >> halvings).filter(|&bytes| bytes >= LEAST_BYTES).collect()
}

/// What the policies can serve on so many back-ends with less and with more memory.
pub(super) fn steps(
    bench: &AdviseBench<'_>,
    documents_bytes: u64,
    backends: usize,
    seed: u64,
) -> Result<Vec<MemoryStep>, ScenarioError> {
    let sizes = ladder(documents_bytes);
    let plan = |&memory_bytes: &u64| {
        let of = move |policy| RunPlan::new(policy, backends, memory_bytes, AdviseLoad::Saturated, seed);
        CONTESTANTS.iter().map(move |contestant| of(contestant.policy))
    };
    let plans: Vec<RunPlan> = sizes.iter().flat_map(plan).collect();
    let figures = bench.run_all(&plans)?;
    let of_size = figures.chunks(CONTESTANTS.len());
    let step =
        |(memory_bytes, of_size): (u64, &[_])| MemoryStep { memory_bytes, capacity_rps: rates(of_size) };
    Ok(sizes.iter().copied().zip(of_size).map(step).collect())
}

fn rates(figures: &[super::plan::RunFigures]) -> Vec<f64> {
    figures.iter().map(|figures| figures.throughput_rps).collect()
}

/// The least memory that is enough, whatever policy makes the best of it, and no less than this.
pub(super) fn enough_bytes(steps: &[MemoryStep], least_bytes: u64) -> Option<u64> {
    let most = steps.iter().map(MemoryStep::best_rps).fold(0.0, f64::max);
    let is_enough = |step: &&MemoryStep| step.best_rps() >= ENOUGH * most && step.memory_bytes >= least_bytes;
    steps.iter().find(is_enough).map(|step| step.memory_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_double_until_all_documents_fit() {
        assert_eq!(ladder(100 << 20).last(), Some(&(128 << 20)));
        assert_eq!(ladder(100 << 20).first(), Some(&(2 << 20)));
        assert_eq!(ladder(3 << 20), [1 << 20, 2 << 20, 4 << 20]);
        assert_eq!(ladder(0), [1 << 20]);
        assert_eq!(provisional_bytes(100 << 20, 1 << 20), 32 << 20);
        assert_eq!(provisional_bytes(100 << 20, 256 << 20), 256 << 20);
        assert_eq!(provisional_bytes(u64::MAX, 1 << 20), 1 << 62);
    }

    #[test]
    fn enough_is_the_least_that_reaches_nine_tenths() {
        let step = |memory_bytes, rps| MemoryStep { memory_bytes, capacity_rps: vec![1.0, rps] };
        let steps = [step(1, 10.0), step(2, 89.0), step(4, 95.0), step(8, 100.0)];
        assert_eq!(enough_bytes(&steps, 1), Some(4));
        assert_eq!(enough_bytes(&steps, 5), Some(8));
        assert_eq!(enough_bytes(&[], 1), None);
    }
}
