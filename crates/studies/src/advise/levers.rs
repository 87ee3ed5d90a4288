//! What matters: how the throughput of the advised cluster changes with each thing that an operator can set.

use plimsoll_policy::params::{ParamSpec, ParamValue};
use serde::Serialize;

use super::plan::{AdviseBench, AdviseLoad, RunPlan, under_way};
use crate::scenario::{ScenarioError, Strategy};

/// A setting that was changed alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdviseLever {
    /// What was changed, in words.
    pub change: String,
    /// Requests per second at saturation.
    pub capacity_rps: f64,
    /// The same over that of the advised cluster.
    pub ratio: f64,
}

/// Parameters that have to do with how much a policy remembers, and not with what it decides.
const BOUNDS: &[&str] = &["max_targets", "points"];

/// A parameter at half and at twice its default, where it takes that.
fn halves_and_doubles(param: &ParamSpec) -> Vec<String> {
    if BOUNDS.contains(&param.name) {
        return Vec::new();
    }
    let default = param.default.as_f64();
    // A half of nothing is nothing else: so are switches, and rules to be left out.
    if default == 0.0 {
        return Vec::new();
    }
    let texts = [default / 2.0, default * 2.0].map(|value| match param.default {
        ParamValue::Number(_) => value.to_string(),
        _ => format!("{:.0}", value.floor()),
    });
    texts.into_iter().filter(|text| param.read(&text.as_str().into()).is_ok()).collect()
}

/// What each change makes of the advised cluster.
pub(super) fn levers(
    bench: &AdviseBench<'_>,
    policy: &'static str,
    backends: usize,
    memory_bytes: u64,
    seed: u64,
) -> Result<Vec<AdviseLever>, ScenarioError> {
    let advised = RunPlan::new(policy, backends, memory_bytes, AdviseLoad::Saturated, seed);
    let mut changes: Vec<(String, RunPlan)> = vec![
        ("half the memory".into(), RunPlan { memory_bytes: memory_bytes / 2, ..advised.clone() }),
        (
            "twice the memory".into(),
            RunPlan { memory_bytes: memory_bytes.saturating_mul(2), ..advised.clone() },
        ),
        ("one back-end more".into(), RunPlan { backends: backends + 1, ..advised.clone() }),
    ];
    if backends > 1 {
        changes.push(("one back-end fewer".into(), RunPlan { backends: backends - 1, ..advised.clone() }));
    }
    let usual = under_way(backends) as f64 / backends.max(1) as f64;
    for times in [0.25, 3.0] {
        let each = ((times * usual) as u64).max(1);
        let load = AdviseLoad::UnderWay(each);
        let change = format!("{each} requests let in at once for each back-end in place of {usual:.0}");
        changes.push((change, RunPlan { load, ..advised.clone() }));
    }
    let strategy = Strategy::find(policy).map_err(|e| ScenarioError::Setting(e.to_string()))?;
    for param in strategy.policy.params {
        for value in halves_and_doubles(param) {
            let change = format!("{} = {value} in place of {}", param.name, param.default);
            changes.push((change, RunPlan { params: vec![(param.name, value)], ..advised.clone() }));
        }
    }
    let plans: Vec<RunPlan> =
        std::iter::once(advised).chain(changes.iter().map(|(_, plan)| plan.clone())).collect();
    // A change may contradict another parameter: then it is none.
    let mut rates = Vec::new();
    for figures in bench.run_each(&plans) {
        rates.push(match figures {
            Ok(figures) => Some(figures.throughput_rps),
            Err(ScenarioError::Policy(_)) => None,
            Err(error) => return Err(error),
        });
    }
    let base = rates.first().copied().flatten().unwrap_or(0.0);
    let lever = |((change, _), rate): ((String, RunPlan), &Option<f64>)| {
        let capacity_rps = (*rate)?;
        Some(AdviseLever { change, capacity_rps, ratio: if base > 0.0 { capacity_rps / base } else { 1.0 } })
    };
    Ok(changes.into_iter().zip(&rates[1..]).filter_map(lever).collect())
}
