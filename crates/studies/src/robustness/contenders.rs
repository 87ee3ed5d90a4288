//! The policies that are compared: every registered one with its defaults, and some with parameters that a search tries.

use plimsoll_policy::REGISTRY;

use crate::scenario::ScenarioError;
use crate::spec::StrategyChoice;

/// Policies for other back-ends: they choose for connections, or by what is measured at hosts.
const ELSEWHERE: &[&str] = &["csld", "weighted_round_robin_host"];

/// What the search tries beside the defaults.
const SEARCHED: &[&str] = &[
    "lard:t_low=1,t_high=3",
    "lard:t_low=4,t_high=10",
    "lard:t_low=10,t_high=26",
    "lard:t_low=60,t_high=150",
    "lard_r:t_low=1,t_high=3",
    "lard_r:t_low=2,t_high=6",
    "lard_r:t_low=4,t_high=10",
    "lard_r:t_low=10,t_high=26",
    "lard_r:t_low=60,t_high=150",
    "lard_r:t_low=4,t_high=10,k_s=1",
    "bounded_load_hash:balance=1.05",
    "bounded_load_hash:balance=1.5",
    "bounded_load_hash:balance=2",
    "bounded_load_hash:balance=4",
    "adaptload:batch=4096,alpha=0.5",
    "peak_ewma:decay_s=1",
    "least_time:decay_s=1",
];

/// The few that a quick run compares.
const QUICK: &[&str] = &[
    "weighted_round_robin",
    "uri_hash",
    "bounded_load_hash",
    "bounded_load_hash:balance=2",
    "lard",
    "lard_r",
    "lard_r:t_low=4,t_high=10",
    "lard_auto",
    "join_shortest_queue",
];

/// The policies with nothing but a hash of the target, bounded or not: what users ask about first.
pub const HASHING: &[&str] = &["uri_hash", "bounded_load_hash", "maglev"];

/// The rules of `lard_auto` that can be left out: the value of its parameter `without`, and what it leaves out.
pub const ABLATIONS: &[(u32, &str)] = &[
    (1, "evictions"),
    (2, "hold-up by reads"),
    (4, "joining"),
    (8, "noise"),
    (16, "room"),
    (32, "share"),
    (64, "margin"),
    (128, "mixing"),
    (256, "long hits"),
    (512, "content"),
];

/// `lard_auto` without each of its rules.
///
/// # Errors
/// When it does not take the parameter.
pub fn ablations() -> Result<Vec<StrategyChoice>, ScenarioError> {
    let all: Vec<String> =
        ABLATIONS.iter().map(|(number, _)| format!("lard_auto:without={number}")).collect();
    StrategyChoice::list(&all.join(","))
}

/// All that a full run compares, or the few of a quick one.
///
/// # Errors
/// When a policy does not take the parameters that the search tries.
pub fn contenders(quick: bool) -> Result<Vec<StrategyChoice>, ScenarioError> {
    if quick {
        return StrategyChoice::list(&QUICK.join(","));
    }
    let defaults = REGISTRY.iter().map(|spec| spec.name).filter(|name| !ELSEWHERE.contains(name));
    StrategyChoice::list(&defaults.chain(SEARCHED.iter().copied()).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_exists_and_the_quick_ones_are_among_all() {
        let texts = |quick| {
            let all = contenders(quick).unwrap();
            all.iter().map(|c| (format!("{:?}", c.strategy), c.params.clone())).collect::<Vec<_>>()
        };
        assert_eq!(ablations().unwrap().len(), ABLATIONS.len());
        let (few, all) = (texts(true), texts(false));
        assert!(few.iter().all(|one| all.contains(one)), "{few:?}");
        assert!(HASHING.iter().all(|name| all.iter().any(|(known, _)| known == name)));
    }
}
