//! What a cell's back-ends and loads are, as a scenario.

use plimsoll_policy::params::GivenValue;
use plimsoll_policy::{BackendId, Nanos, Time};
use plimsoll_sim::hardware::find_hardware;
use plimsoll_sim::{Fault, FaultAction};

use super::cell::{ClusterShape, MatrixCell};
use crate::scenario::{Admission, Scenario, ScenarioError, Strategy};
use crate::workload::Workload;

/// Saturated, on back-ends as they are from the beginning.
pub(super) fn saturated(
    cell: &MatrixCell,
    strategy: Strategy,
    workload: &Workload,
    under_way: f64,
) -> Result<Scenario, ScenarioError> {
    let mut s = Scenario::lard(strategy, cell.backends, cell.seed);
    s.hardware = find_hardware(&cell.hardware).map_err(ScenarioError::Setting)?;
    let model = s.model;
    let mut costs: Vec<(&str, GivenValue)> = s.hardware_of(model.name, model.params).collect();
    costs.push(("cached_results", 1_u64.into()));
    s.set_model(costs)?;
    let each = cell.memory * workload.working_set_bytes() as f64 / cell.backends as f64;
    s.cache_bytes = each as u64;
    s.admission = fixed(under_way, cell.backends);
    let half = cell.backends / 2;
    match cell.cluster {
        ClusterShape::TwoSpeeds => s.faults.extend((0..half).map(|b| at(0.0, b, FaultAction::Speed(0.5)))),
        ClusterShape::TwoMemories => {
            let bytes = |b| (if b < half { 0.5 } else { 1.5 } * each) as u64;
            s.faults.extend((0..2 * half).map(|b| at(0.0, b, FaultAction::MemoryBytes(bytes(b)))));
        }
        _ => {}
    }
    Ok(s)
}

/// So many requests under way for each back-end.
pub(super) fn fixed(under_way: f64, backends: usize) -> Admission {
    Admission::Fixed(((under_way * backends as f64).round() as u64).max(1))
}

/// What happens to a back-end after so many seconds.
pub(super) fn at(s: f64, backend: usize, action: FaultAction) -> Fault {
    let at = Time::ZERO + Nanos::from_secs_f64(s).unwrap_or(Nanos::ZERO);
    Fault { at, backend: BackendId::new(backend), action }
}
