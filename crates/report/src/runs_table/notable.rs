//! Which policies matter most where there are too many for one table.

use crate::{
    labelled::policy_of,
    run::Run,
    runs_report::groups::{backend_counts, policies, typical},
};

/// Up to this many policies all are shown, in the order in which they were named.
const ALL_UP_TO: usize = 8;
/// The best so many are shown.
const BEST: usize = 3;
/// And of those that other balancers have the best so many.
const BEST_ORDINARY: usize = 2;

/// What other balancers offer: what a reader who does not take the winner would do.
const ORDINARY: [&str; 8] = [
    "bounded_load_hash",
    "uri_hash",
    "least_connections",
    "weighted_least_connections",
    "power_of_two",
    "weighted_round_robin",
    "round_robin",
    "random",
];

/// Whether other balancers have a policy of this name, too.
pub(crate) fn is_ordinary(policy: &str) -> bool {
    ORDINARY.contains(&policy_of(policy))
}

/// Policies by how much they matter to a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ranking<'a> {
    /// Those to show: the best on each number of back-ends, and on the most the next best, the best that other balancers have, the
    /// reader's first one and the worst.
    pub(crate) notable: Vec<&'a str>,
    /// All others, the best first.
    pub(crate) others: Vec<&'a str>,
}

impl<'a> Ranking<'a> {
    /// All policies in their order where there are few, the best first where there are many.
    pub(crate) fn of(runs: &'a [Run], saturated: bool) -> Self {
        let named = policies(runs);
        let counts = backend_counts(runs);
        let (Some(&most), true) = (counts.last(), named.len() > ALL_UP_TO) else {
            return Self { notable: named, others: Vec::new() };
        };
        let sorted = best_first(runs, most, saturated);
        let mut chosen: Vec<&str> = sorted.iter().take(BEST).copied().collect();
        chosen.extend(sorted.iter().copied().filter(|policy| is_ordinary(policy)).take(BEST_ORDINARY));
        chosen.extend(named.first().into_iter().chain(sorted.last()).copied());
        chosen.extend(counts.iter().filter_map(|&count| best_first(runs, count, saturated).first().copied()));
        let (notable, others) = sorted.iter().partition(|policy| chosen.contains(*policy));
        Self { notable, others }
    }

    /// Whether some policies are not shown.
    pub(crate) fn is_folded(&self) -> bool {
        !self.others.is_empty()
    }

    /// The runs on a number of back-ends: of the policies to show, or of all; the best first where there are many, otherwise in
    /// their order.
    pub(crate) fn rows(&self, runs: &'a [Run], backends: usize, saturated: bool, all: bool) -> Vec<&'a Run> {
        let on = || runs.iter().filter(|run| run.backends == backends);
        if !self.is_folded() {
            return on().collect();
        }
        let shown = best_first(runs, backends, saturated);
        let shown = shown.into_iter().filter(|policy| all || self.notable.contains(policy));
        shown.flat_map(|policy| on().filter(move |run| run.policy == policy)).collect()
    }
}

/// By throughput where the cluster was saturated, otherwise by mean delay; those without a figure last, of equals the one that
/// was named first.
fn best_first(runs: &[Run], backends: usize, saturated: bool) -> Vec<&str> {
    let badness = |policy: &str| {
        let of = |value: &dyn Fn(&Run) -> Option<f64>| typical(runs, policy, backends, value);
        let value = match saturated {
            true => of(&|run| Some(-run.throughput_rps)),
            false => of(&|run| run.response_time_s.map(|summary| summary.mean)),
        };
        value.filter(|value| value.is_finite()).unwrap_or(f64::INFINITY)
    };
    let mut sorted: Vec<(f64, &str)> =
        policies(runs).into_iter().map(|policy| (badness(policy), policy)).collect();
    sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
    sorted.into_iter().map(|(_, policy)| policy).collect()
}
