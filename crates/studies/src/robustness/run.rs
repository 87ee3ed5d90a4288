//! Runs the policies of a cell.

use plimsoll_policy::Health;
use plimsoll_report::Run;
use plimsoll_sim::{Arrivals, FaultAction, TimeShape};
use serde::{Deserialize, Serialize};

use super::bound::bound;
use super::cell::{ClusterShape, Load, MatrixCell};
use super::setting::{at, fixed, saturated};
use super::trained::trained;
use super::workloads::{self, Traces};
use crate::execute::execute;
use crate::scenario::{Admission, Scenario, ScenarioError, Strategy};
use crate::spec::StrategyChoice;
use crate::study_error::StudyError;
use crate::workload::Workload;

/// What one policy did in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellOutcome {
    /// Name of the policy.
    pub policy: String,
    /// Its parameters that are not defaults, such as `t_low=4,t_high=10`.
    pub params: String,
    /// Requests answered per second.
    pub throughput_rps: f64,
    /// Mean slowdown.
    pub slowdown_mean: f64,
    /// 99th percentile of slowdown.
    pub slowdown_p99: f64,
    /// Disk reads per request.
    pub miss_ratio: f64,
}

/// What all policies did in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The cell.
    pub cell: MatrixCell,
    /// What the cluster was found to serve at saturation, its cold start included, in requests per second.
    pub capacity_rps: f64,
    /// What no policy can exceed, see `bound.rs`: requests per second at saturation, mean slowdown below.
    #[serde(default)]
    pub bound: f64,
    /// By policy, in the order in which they were asked for.
    pub outcomes: Vec<CellOutcome>,
}

/// Policies whose best throughput at saturation is taken for what the cluster can serve.
const CAPACITY_BY: &[&str] = &["lard_r", "bounded_load_hash", "weighted_round_robin"];
/// The runs that find it out, and the one of the rule.
pub(super) const RUNS_BESIDE: u64 = CAPACITY_BY.len() as u64 + 1;
/// The name in tables of LARD/R with the thresholds of `trained`.
pub const RULE: &str = "lard_r (section 2.4)";
/// Requests under way for each back-end while that is found out, fewer than LARD's thresholds.
const CAPACITY_UNDER_WAY: f64 = 24.0;

/// Runs these policies in a cell, whose workload may be one of `traces`. `advance` hears of every run that has ended.
///
/// # Errors
/// When the workload cannot be made, or a run fails.
pub fn run_cell(
    cell: &MatrixCell,
    contenders: &[StrategyChoice],
    traces: &Traces,
    advance: &dyn Fn(u64),
) -> Result<CellResult, StudyError> {
    let workload = workloads::find(traces, &cell.workload, cell.requests, cell.seed)?;
    let capacity_rps = capacity_rps(cell, &workload, advance)?;
    let mut outcomes = Vec::new();
    for choice in contenders {
        outcomes.push(run_policy(cell, &workload, capacity_rps, choice)?);
        advance(cell.requests);
    }
    let by_rule = trained(cell, &workload)?;
    let of_rule = run_policy(cell, &workload, capacity_rps, &by_rule)?;
    outcomes.push(CellOutcome { policy: RULE.to_owned(), params: String::new(), ..of_rule });
    advance(cell.requests);
    let model = saturated(cell, by_rule.strategy, &workload, CAPACITY_UNDER_WAY)?;
    let bound = bound(cell, &workload, &model.model_params).map_err(ScenarioError::from)?;
    let bound = bound.map_or(0.0, |of| if cell.is_saturated() { of.throughput_rps } else { of.slowdown });
    Ok(CellResult { cell: cell.clone(), capacity_rps, bound, outcomes })
}

/// Runs one policy on the workload of a cell whose capacity is known.
///
/// # Errors
/// When the policy does not take its parameters, or the run fails.
pub fn run_policy(
    cell: &MatrixCell,
    workload: &Workload,
    capacity_rps: f64,
    choice: &StrategyChoice,
) -> Result<CellOutcome, StudyError> {
    let mut scenario = saturated(cell, choice.strategy, workload, CAPACITY_UNDER_WAY)?;
    scenario.set_policy(choice.params.given().map(|(key, value)| (key, value.into())))?;
    put_under_load(&mut scenario, cell, capacity_rps);
    scenario.warmup = cell.requests * 2 / 5;
    let run = execute(&scenario, workload, &mut ())?;
    let params: Vec<String> = choice.params.given().map(|(key, value)| format!("{key}={value}")).collect();
    Ok(outcome(choice.strategy.name, params.join(","), &run))
}

fn outcome(policy: &str, params: String, run: &Run) -> CellOutcome {
    let slowdown = run.slowdown.as_ref();
    CellOutcome {
        policy: policy.to_owned(),
        params,
        throughput_rps: run.throughput_rps,
        slowdown_mean: slowdown.map_or(0.0, |summary| summary.mean),
        slowdown_p99: slowdown.map_or(0.0, |summary| summary.p99),
        miss_ratio: run.miss_ratio.unwrap_or(0.0),
    }
}

fn capacity_rps(cell: &MatrixCell, workload: &Workload, advance: &dyn Fn(u64)) -> Result<f64, StudyError> {
    let mut best = 0.0_f64;
    for name in CAPACITY_BY {
        let strategy = Strategy::find(name).map_err(|e| ScenarioError::Setting(e.to_string()))?;
        let run = execute(&saturated(cell, strategy, workload, CAPACITY_UNDER_WAY)?, workload, &mut ())?;
        advance(cell.requests);
        best = best.max(run.throughput_rps);
    }
    Ok(best)
}

/// Sets arrivals and what happens to back-ends.
fn put_under_load(s: &mut Scenario, cell: &MatrixCell, capacity_rps: f64) {
    let (rate_rps, arrivals) = match cell.load {
        Load::Closed { under_way } => {
            s.admission = fixed(under_way, cell.backends);
            (capacity_rps, Arrivals::Closed)
        }
        Load::Poisson { share } => {
            let rate_rps = share * capacity_rps;
            (rate_rps, Arrivals::Poisson { rate_rps })
        }
        Load::Bursts { share, cv } => {
            let rate_rps = share * capacity_rps;
            (rate_rps, Arrivals::Renewal { rate_rps, shape: TimeShape::Gamma { cv } })
        }
    };
    if !cell.is_saturated() {
        s.admission = Admission::Unlimited;
    }
    s.arrivals = arrivals;
    let lasts_s = cell.requests as f64 / rate_rps;
    let (down, up) = (FaultAction::Health(Health::Down), FaultAction::Health(Health::Up));
    match cell.cluster {
        ClusterShape::Equal | ClusterShape::TwoSpeeds | ClusterShape::TwoMemories => {}
        ClusterShape::OneSlows => s.faults.push(at(lasts_s / 3.0, 0, FaultAction::Speed(0.25))),
        ClusterShape::OneReturns => {
            s.faults.extend([at(lasts_s / 3.0, 0, down), at(lasts_s / 2.0, 0, up)]);
        }
        ClusterShape::Grows => {
            let last = (cell.backends - cell.backends.div_ceil(4))..cell.backends;
            s.faults.extend(last.clone().map(|b| at(0.0, b, down)));
            s.faults.extend(last.map(|b| at(lasts_s / 3.0, b, up)));
        }
    }
}
