//! How far each policy is behind the best one.

use std::collections::BTreeMap;

use super::contenders::{ABLATIONS, HASHING};
use super::run::{CellOutcome, CellResult};

/// A policy over the cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Name of the policy.
    pub policy: String,
    /// Whether in each cell the best of its parameters counts that were tried, and not its defaults.
    pub searched: bool,
    /// By cell, in their order: its share behind the best policy with its best parameters, in throughput at saturation and in mean
    /// slowdown below.
    pub regrets: Vec<f64>,
    /// The same of the 99th percentile of slowdown, in the cells below saturation.
    pub p99_regrets: Vec<f64>,
    /// By cell: how many times as good as the best hashing with its best parameters.
    pub over_hashing: Vec<f64>,
    /// By cell whose bound is known: as a share of what no policy can exceed.
    pub of_bound: Vec<f64>,
}

/// The value at this share of the way from the least to the largest; 0 of none.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((share * last as f64).round() as usize).copied().unwrap_or(0.0)
}

/// The policy as it is listed, and whether it counts with its parameters as they are: one with a rule left out stands for itself.
fn listed(of: &CellOutcome) -> (String, bool) {
    match left_out(of) {
        Some(rule) => (format!("{} without {rule}", of.policy), true),
        None => (of.policy.clone(), of.params.is_empty()),
    }
}

/// The rule that was left out of the policy, which is not one that anybody would run.
fn left_out(of: &CellOutcome) -> Option<&'static str> {
    let number: u32 = of.params.strip_prefix("without=")?.parse().ok()?;
    ABLATIONS.iter().find(|(known, _)| *known == number).map(|(_, rule)| *rule)
}

/// What is better if larger.
fn merit(result: &CellResult, of: &CellOutcome) -> f64 {
    if result.cell.is_saturated() { of.throughput_rps } else { inverse(of.slowdown_mean) }
}

/// One that answered nothing has no merit.
fn inverse(slowdown: f64) -> f64 {
    if slowdown > 0.0 { 1.0 / slowdown } else { 0.0 }
}

fn best(merits: impl Iterator<Item = f64>) -> f64 {
    merits.fold(0.0, f64::max)
}

fn behind(merit: f64, best: f64) -> f64 {
    if best > 0.0 { 1.0 - merit / best } else { 0.0 }
}

/// The policies over these cells, those with a search twice; the least 90th percentile of regret first.
#[must_use]
pub fn standings(results: &[CellResult]) -> Vec<Standing> {
    let mut all: BTreeMap<(String, bool), Standing> = BTreeMap::new();
    for result in results {
        let whole = || result.outcomes.iter().filter(|of| left_out(of).is_none());
        let best_merit = best(whole().map(|of| merit(result, of)));
        let best_p99 = best(whole().map(|of| inverse(of.slowdown_p99)));
        let hashing = result.outcomes.iter().filter(|of| HASHING.contains(&of.policy.as_str()));
        let best_hashing = best(hashing.map(|of| merit(result, of)));
        for (policy, searched, counted) in variants(result) {
            let best_own = best(counted.iter().map(|of| merit(result, of)));
            let p99_own = best(counted.iter().map(|of| inverse(of.slowdown_p99)));
            let key = (policy.clone(), searched);
            let standing = all.entry(key).or_insert_with(|| Standing {
                policy,
                searched,
                regrets: Vec::new(),
                p99_regrets: Vec::new(),
                over_hashing: Vec::new(),
                of_bound: Vec::new(),
            });
            standing.regrets.push(behind(best_own, best_merit));
            if !result.cell.is_saturated() {
                standing.p99_regrets.push(behind(p99_own, best_p99));
            }
            if result.bound > 0.0 {
                let bound = if result.cell.is_saturated() { result.bound } else { inverse(result.bound) };
                standing.of_bound.push(best_own / bound);
            }
            if best_hashing > 0.0 {
                standing.over_hashing.push(best_own / best_hashing);
            }
        }
    }
    let mut out: Vec<Standing> = all.into_values().collect();
    out.sort_by(|a, b| quantile(&a.regrets, 0.9).total_cmp(&quantile(&b.regrets, 0.9)));
    out
}

/// Each policy with its defaults, and with all that was tried where that is more.
fn variants(result: &CellResult) -> Vec<(String, bool, Vec<&CellOutcome>)> {
    let mut by_policy: BTreeMap<String, Vec<&CellOutcome>> = BTreeMap::new();
    for outcome in &result.outcomes {
        by_policy.entry(listed(outcome).0).or_default().push(outcome);
    }
    let mut out = Vec::new();
    for (policy, outcomes) in by_policy {
        let defaults: Vec<&CellOutcome> = outcomes.iter().copied().filter(|of| listed(of).1).collect();
        if !defaults.is_empty() {
            out.push((policy.clone(), false, defaults));
        }
        if outcomes.len() > 1 || out.last().is_none_or(|(last, ..)| *last != policy) {
            out.push((policy, true, outcomes));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robustness::known_hard;

    fn outcome(policy: &str, params: &str, throughput_rps: f64, slowdown: f64) -> CellOutcome {
        CellOutcome {
            policy: policy.to_owned(),
            params: params.to_owned(),
            throughput_rps,
            slowdown_mean: slowdown,
            slowdown_p99: 2.0 * slowdown,
            miss_ratio: 0.0,
        }
    }

    #[test]
    fn regrets_by_hand() {
        let cells = known_hard(10, 1);
        let (saturated, below) = (cells[0].clone(), cells[4].clone());
        assert!(saturated.is_saturated() && !below.is_saturated());
        let of = |cell, outcomes| CellResult { cell, capacity_rps: 1.0, bound: 0.0, outcomes };
        let bounded = |of: CellResult, bound| CellResult { bound, ..of };
        let a = vec![
            outcome("a", "", 50.0, 9.0),
            outcome("a", "t=1", 100.0, 9.0),
            outcome("uri_hash", "", 80.0, 9.0),
        ];
        let b = vec![
            outcome("a", "", 1.0, 4.0),
            outcome("a", "t=1", 1.0, 8.0),
            outcome("uri_hash", "", 1.0, 2.0),
        ];
        let standings = standings(&[bounded(of(saturated, a), 200.0), bounded(of(below, b), 1.0)]);
        let find = |policy: &str, searched| {
            standings.iter().find(|s| s.policy == policy && s.searched == searched).unwrap()
        };
        assert_eq!(find("a", false).regrets, [0.5, 0.5]);
        assert_eq!(find("a", true).regrets, [0.0, 0.5]);
        assert_eq!(find("a", true).p99_regrets, [0.5]);
        assert_eq!(find("a", true).over_hashing, [1.25, 0.5]);
        assert!((find("uri_hash", false).regrets[0] - 0.2).abs() < 1e-12);
        assert_eq!(find("a", true).of_bound, [0.5, 0.25]);
        assert_eq!(standings.len(), 3, "uri_hash has no parameters that were tried");
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
    }
    #[test]
    fn a_policy_without_a_rule_stands_for_itself_and_is_never_the_best() {
        let cell = known_hard(10, 1).swap_remove(0);
        let outcomes =
            vec![outcome("lard_auto", "", 80.0, 1.0), outcome("lard_auto", "without=16", 100.0, 1.0)];
        let standings = standings(&[CellResult { cell, capacity_rps: 1.0, bound: 0.0, outcomes }]);
        let names: Vec<_> = standings.iter().map(|s| (s.policy.as_str(), s.searched)).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.contains(&("lard_auto", false)) && names.contains(&("lard_auto without room", false)));
        assert!(standings.iter().all(|s| s.regrets[0] <= 0.0));
    }
}
