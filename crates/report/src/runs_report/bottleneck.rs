//! Which resource limits simulated runs.

use crate::{
    format::percent,
    run::Run,
    runs_report::groups::{backend_counts, on_backends, policies, typical},
};

/// A resource that is busy for at least this share of the time is the limit of a saturated run: of several disks the busiest are
/// the limit before all are busy.
const LIMIT: f64 = 0.8;
/// Under a given load requests queue earlier: from this share on, a resource is near its limit.
const NEAR: f64 = 0.75;

/// What limits one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Cpus,
    Disks,
    Neither,
}

/// A sentence on what limits the policies on the most back-ends, and so what decides between them: CPUs, disks and with them
/// caches, or the load. `None` for runs whose costs are not those of some hardware.
///
/// `saturated`: as many requests as the admission limit allows were under way all the time.
#[must_use]
pub fn bottleneck(runs: &[Run], saturated: bool) -> Option<String> {
    let most = *backend_counts(runs).last()?;
    if runs.iter().any(|run| hardware(run).is_none()) {
        return None;
    }
    let limits: Vec<(&str, Limit)> = policies(runs)
        .into_iter()
        .map(|policy| Some((policy, limit(runs, policy, most, saturated)?)))
        .collect::<Option<_>>()?;
    let place = on_backends(most);
    let limit_word = if saturated { "the limit" } else { "near their limit" };
    let under = |limit| limits.iter().filter(move |(_, of)| *of == limit).map(|(policy, _)| *policy);
    let names = |limit| words(&under(limit).collect::<Vec<_>>());
    let (cpus, disks) = (under(Limit::Cpus).count(), under(Limit::Disks).count());
    Some(if cpus == limits.len() {
        all_cpus(runs, most, limit_word)
    } else if disks == limits.len() {
        format!(
            "Disks are {limit_word} {place} whatever the policy: throughput follows the misses, which memory and locality decide."
        )
    } else if disks > 0 {
        let others = words(
            &limits.iter().filter(|(_, of)| *of != Limit::Disks).map(|(name, _)| *name).collect::<Vec<_>>(),
        );
        format!(
            "Disks are {limit_word} {place} with {}, and not with {others}: what the caches hold decides.",
            names(Limit::Disks)
        )
    } else if cpus > 0 {
        format!(
            "CPUs are {limit_word} {place} with {}; with {} neither CPUs nor disks are: how evenly load is spread decides, not \
             the caches.",
            names(Limit::Cpus),
            names(Limit::Neither)
        )
    } else if saturated {
        format!(
            "Neither CPUs nor disks are busy all the time {place}: how evenly load is spread decides, or the admission limit."
        )
    } else {
        format!(
            "Neither CPUs nor disks are near their limit {place}: what arrives is served, so compare delays."
        )
    })
}

/// The hardware whose costs a run has.
pub(super) fn hardware(run: &Run) -> Option<&str> {
    run.params.get("hardware")?.as_str()
}

fn limit(runs: &[Run], policy: &str, backends: usize, saturated: bool) -> Option<Limit> {
    let limit = if saturated { LIMIT } else { NEAR };
    let cpu = typical(runs, policy, backends, &|run| Some(run.utilization.cpu))?;
    let disk = typical(runs, policy, backends, &|run| run.utilization.disk)?;
    Some(match (cpu >= limit, disk >= limit) {
        (false, false) => Limit::Neither,
        (true, false) => Limit::Cpus,
        (false, true) => Limit::Disks,
        (true, true) if cpu >= disk => Limit::Cpus,
        (true, true) => Limit::Disks,
    })
}

/// CPUs limit all policies.
fn all_cpus(runs: &[Run], backends: usize, limit_word: &str) -> String {
    let place = on_backends(backends);
    let of = |value: &dyn Fn(&Run) -> Option<f64>| -> Vec<f64> {
        policies(runs).into_iter().filter_map(|policy| typical(runs, policy, backends, value)).collect()
    };
    let rates = of(&|run| Some(run.throughput_rps));
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let busy = percent(least(&of(&|run| Some(run.utilization.cpu))));
    let differ = match rates.len() {
        0 | 1 => String::new(),
        _ => {
            let share = rates.iter().copied().fold(0.0, f64::max) / least(&rates) - 1.0;
            format!(" and throughput differs by {} at most", percent(share))
        }
    };
    format!(
        "CPUs are {limit_word} {place} whatever the policy (busy {busy} of the time or more){differ}: misses cost little here, so \
         choose by delays."
    )
}

/// `a`, `a and b`, `a, b and c`.
fn words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
