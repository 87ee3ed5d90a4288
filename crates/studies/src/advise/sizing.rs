//! How many back-ends each policy needs.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::contestants::CONTESTANTS;
use super::plan::{AdviseBench, AdviseLoad, MOST_BACKENDS, RunPlan};
use super::verdict::PREFERRED;
use crate::scenario::ScenarioError;

/// A cluster is large enough where the peak is at most this share of what it can serve.
pub const MOST_UTILIZATION: f64 = 0.7;

/// Numbers of back-ends for which every policy's capacity is shown.
const SHOWN: &[usize] = &[1, 2, 4, 8, 16];
/// Further ones that are tried where these do not suffice.
const BEYOND: &[usize] = &[32, MOST_BACKENDS];

/// These and the most that this log suffices for.
fn up_to(tried: &[usize], most: usize) -> impl Iterator<Item = usize> + '_ {
    let last = most.min(MOST_BACKENDS);
    tried.iter().copied().filter(move |&backends| backends < last).chain([last])
}

/// What is to be carried, and how well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Demand {
    /// Requests per second at the peak.
    pub(super) peak_rps: f64,
    /// The longest 99th percentile of response times in seconds; `None` for any.
    pub(super) p99_s: Option<f64>,
}

/// What one policy can serve and needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicySize {
    /// Name of the policy.
    pub policy: &'static str,
    /// The fewest back-ends that carry the peak; `None` where the most that were tried do not, or where nothing is known of the peak.
    pub fewest: Option<usize>,
    /// What clusters of some sizes can serve, in requests per second, by number of back-ends.
    pub capacity_rps: BTreeMap<usize, f64>,
}

/// One policy while its size is looked for.
struct Search<'a> {
    bench: &'a AdviseBench<'a>,
    policy: &'static str,
    memory_bytes: u64,
    seed: u64,
    capacity_rps: BTreeMap<usize, f64>,
}

impl Search<'_> {
    fn capacity_rps(&mut self, backends: usize) -> Result<f64, ScenarioError> {
        if let Some(&known) = self.capacity_rps.get(&backends) {
            return Ok(known);
        }
        let found = self.bench.run(&self.plan(backends, AdviseLoad::Saturated))?.throughput_rps;
        self.capacity_rps.insert(backends, found);
        Ok(found)
    }

    fn plan(&self, backends: usize, load: AdviseLoad) -> RunPlan {
        RunPlan::new(self.policy, backends, self.memory_bytes, load, self.seed)
    }

    fn carries(&mut self, backends: usize, peak_rps: f64) -> Result<bool, ScenarioError> {
        Ok(MOST_UTILIZATION * self.capacity_rps(backends)? >= peak_rps)
    }

    /// The fewest back-ends whose capacity suffices.
    fn by_capacity(&mut self, peak_rps: f64) -> Result<Option<usize>, ScenarioError> {
        let mut too_few = 0;
        let tried: Vec<usize> = SHOWN.iter().chain(BEYOND).copied().collect();
        for backends in up_to(&tried, self.bench.most_backends()) {
            if !self.carries(backends, peak_rps)? {
                too_few = backends;
                continue;
            }
            return fewest_between(too_few, backends, |middle| self.carries(middle, peak_rps)).map(Some);
        }
        Ok(None)
    }

    /// As many as keep the 99th percentile, from this number on.
    fn by_p99(&mut self, from: usize, peak_rps: f64, p99_s: f64) -> Result<Option<usize>, ScenarioError> {
        let most = self.bench.most_backends();
        let keeps = |backends| {
            let figures = self.bench.run(&self.plan(backends, AdviseLoad::Poisson(peak_rps)));
            figures.map(|figures| figures.p99_s <= p99_s)
        };
        fewest_from(from, most, keeps)
    }

    fn fewest(&mut self, demand: Demand) -> Result<Option<usize>, ScenarioError> {
        let by_capacity = self.by_capacity(demand.peak_rps)?;
        match (by_capacity, demand.p99_s) {
            (Some(from), Some(p99_s)) => self.by_p99(from, demand.peak_rps, p99_s),
            (fewest, _) => Ok(fewest),
        }
    }
}

/// The fewest from this number to the most that keep a bound: by leaps of a quarter, then by halves between the last that did not and the
/// first that did.
fn fewest_from<E>(
    from: usize,
    most: usize,
    mut keeps: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let (mut too_few, mut enough) = (from.saturating_sub(1), from);
    while !keeps(enough)? {
        if enough >= most {
            return Ok(None);
        }
        too_few = enough;
        enough = (enough + enough.div_ceil(4)).min(most);
    }
    fewest_between(too_few, enough, keeps).map(Some)
}

/// The fewest that do, by halves; `too_few` do not, and `enough` do.
fn fewest_between<E>(
    mut too_few: usize,
    mut enough: usize,
    mut does: impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    while enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        if does(middle)? {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Ok(enough)
}

/// The sizes of all policies with this memory for each back-end; without a demand only what they can serve. Where `shown`, that is told for all numbers
/// that are shown, else for those that were tried.
pub(super) fn sizes(
    bench: &AdviseBench<'_>,
    memory_bytes: u64,
    demand: Option<Demand>,
    shown: bool,
    seed: u64,
) -> Result<Vec<PolicySize>, ScenarioError> {
    let size = |policy: &'static str| {
        let mut search = Search { bench, policy, memory_bytes, seed, capacity_rps: BTreeMap::new() };
        let shown = SHOWN.iter().copied().filter(|&backends| shown && backends <= bench.most_backends());
        let shown: Vec<usize> = shown.collect();
        let plans: Vec<RunPlan> =
            shown.iter().map(|&backends| search.plan(backends, AdviseLoad::Saturated)).collect();
        let rates = bench.run_all(&plans)?.into_iter().map(|figures| figures.throughput_rps);
        search.capacity_rps.extend(shown.into_iter().zip(rates));
        let fewest = demand.map_or(Ok(None), |demand| search.fewest(demand))?;
        Ok(PolicySize { policy, fewest, capacity_rps: search.capacity_rps })
    };
    CONTESTANTS.par_iter().with_max_len(1).map(|contestant| size(contestant.policy)).collect()
}

/// Where this policy does not carry the demand on up to so many back-ends, and others do: which one to take in its place. It needs the fewest; of
/// equals it is the simplest, and of equally simple ones that without parameters.
pub(super) fn carrier_instead(sizes: &[PolicySize], policy: &str, most: usize) -> Option<&'static str> {
    let carries = |size: &&PolicySize| size.fewest.is_some_and(|fewest| fewest <= most);
    if sizes.iter().filter(carries).any(|size| size.policy == policy) {
        return None;
    }
    let rank = |size: &&PolicySize| {
        let kind = CONTESTANTS.iter().find(|contestant| contestant.policy == size.policy).map(|of| of.kind);
        (size.fewest, kind, !PREFERRED.contains(&size.policy))
    };
    sizes.iter().filter(carries).min_by_key(rank).map(|size| size.policy)
}

/// The 99th percentile of an idle cluster in seconds: no number of back-ends gets below it.
pub(super) fn idle_p99_s(
    bench: &AdviseBench<'_>,
    memory_bytes: u64,
    seed: u64,
) -> Result<f64, ScenarioError> {
    let policy = "uri_hash";
    let plan = |load| RunPlan::new(policy, bench.most_backends().min(8), memory_bytes, load, seed);
    let capacity_rps = bench.run(&plan(AdviseLoad::Saturated))?.throughput_rps;
    Ok(bench.run(&plan(AdviseLoad::Poisson(capacity_rps / 50.0)))?.p99_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_that_keep_a_bound_are_found() {
        for fewest in 3..=64 {
            let found = fewest_from(3, 64, |backends| Ok::<_, ()>(backends >= fewest));
            assert_eq!(found, Ok(Some(fewest)));
        }
        assert_eq!(fewest_from(3, 64, |_| Ok::<_, ()>(false)), Ok(None));
        assert_eq!(fewest_from(3, 64, |_| Err(7)), Err(7));
    }

    #[test]
    fn in_place_of_who_does_not_carry_the_load_the_one_that_needs_the_fewest_is_taken() {
        let of = |fewest: [Option<usize>; 6]| -> Vec<PolicySize> {
            let size = |(of, fewest): (&super::super::Contestant, _)| PolicySize {
                policy: of.policy,
                fewest,
                capacity_rps: BTreeMap::new(),
            };
            CONTESTANTS.iter().zip(fewest).map(size).collect()
        };
        let unlike = of([None, None, Some(3), Some(3), Some(2), Some(2)]);
        assert_eq!(carrier_instead(&unlike, "round_robin", 99), Some("lard_auto"));
        assert_eq!(carrier_instead(&unlike, "uri_hash", 99), None);
        assert_eq!(carrier_instead(&unlike, "uri_hash", 2), Some("lard_auto"), "it needs a third one");
        assert_eq!(carrier_instead(&unlike, "uri_hash", 1), None, "nobody carries it");
        let alike = of([None, Some(4), Some(4), None, Some(4), Some(4)]);
        assert_eq!(carrier_instead(&alike, "round_robin", 99), Some("least_connections"));
        assert_eq!(carrier_instead(&of([None; 6]), "round_robin", 99), None);
    }

    #[test]
    fn no_more_are_tried_than_the_log_suffices_for() {
        let of = |most| up_to(&[1, 2, 4, 8, 16, 32, 64], most).collect::<Vec<_>>();
        assert_eq!(of(64), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(of(5), [1, 2, 4, 5]);
        assert_eq!(of(1), [1]);
        assert_eq!(of(200), of(64));
    }
}
