//! Which resource limits simulated runs.

use crate::format::capital;
use crate::{
    format::percent,
    run::{PerBackend, Run},
    runs_report::groups::{backend_counts, on_backends, policies, typical},
};

/// A resource that is busy for at least this share of the time is the limit of a saturated run: of several disks the busiest are
/// the limit before all are busy.
const LIMIT: f64 = 0.8;
/// Under a given load requests queue earlier: from this share on, a resource is near its limit.
const NEAR: f64 = 0.75;
/// Of more policies that have one limit only the number is told, where they are the most.
const MOST_NAMES: usize = 4;
/// Load is uneven where a back-end has at least this many times the mean.
const UNEVEN: f64 = 2.0;
/// Use is uneven where a back-end's is at least this many times the mean: below, all are about as near to the limit.
const UNEVEN_USE: f64 = 1.25;
/// Throughputs that differ by less are as good as equal.
const SLIGHT: f64 = 0.05;
/// With fewer requests in progress on a back-end, disks and CPU wait for requests and not the other way round.
const FEW: f64 = 4.0;
/// A run in which as many requests as are under way at once are served fewer times than this is mostly start and end.
const SHORT: f64 = 20.0;
/// From this share of the response time on, waiting at the front-end makes the delay.
const MOSTLY: f64 = 0.5;
/// Bytes per second of Ethernet of 10 Gbit/s.
const ETHERNET_BYTES_PER_S: f64 = 1.25e9;

/// What limits one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunLimit {
    Cpus,
    Disks,
    /// Some back-ends are full while others are not.
    Busiest,
    /// The front-end lets in too few requests.
    Admission,
    Nothing,
}

/// Sentences on what limits the policies on the most back-ends, and so what decides between them: CPUs, disks and with them
/// caches, uneven load, or the load that is given; and on networks, which the model `lard` does not count. `None` for runs whose
/// costs are not those of some hardware.
///
/// `saturated`: as many requests as the admission limit allows were under way all the time.
#[must_use]
pub fn bottleneck(runs: &[Run], saturated: bool) -> Option<String> {
    let most = *backend_counts(runs).last()?;
    if runs.iter().any(|run| run.hardware().is_none()) {
        return None;
    }
    let mut groups: Vec<(RunLimit, Vec<&str>)> = Vec::new();
    for policy in policies(runs) {
        let limit = limit(runs, policy, most, saturated)?;
        match groups.iter_mut().find(|(of, _)| *of == limit) {
            Some((_, names)) => names.push(policy),
            None => groups.push((limit, vec![policy])),
        }
    }
    // What is not near any limit comes last.
    groups.sort_by_key(|(limit, _)| *limit == RunLimit::Nothing);
    let place = on_backends(most);
    let first = match groups.as_slice() {
        [] => return None,
        [(RunLimit::Nothing, _)] if saturated => {
            format!(
                "Nothing is the limit {place}: neither CPUs nor disks are busy most of the time, as with few requests. Give a longer log."
            )
        }
        [(RunLimit::Nothing, _)] => {
            format!(
                "Neither CPUs nor disks are near their limit {place}: what arrives is served, so compare delays."
            )
        }
        [(only, _)] => {
            let (noun, is) = (capital(noun(runs, *only)), limit_word(saturated));
            format!("{noun} are {is} {place} whatever the policy{}.", alone(runs, *only, most, saturated))
        }
        [(head, names), rest @ ..] => {
            let (noun_of, is) = (|limit| noun(runs, limit), limit_word(saturated));
            let rest = rest
                .iter()
                .map(|(limit, names)| format!("; {} with {}", noun_of(*limit), counted(names, &groups)));
            format!(
                "{} are {is} {place} with {}{}: {}.",
                capital(noun_of(*head)),
                counted(names, &groups),
                rest.collect::<String>(),
                conclusion(&groups, saturated)
            )
        }
    };
    Some(match network(runs, most) {
        Some(second) => format!("{first} {second}"),
        None => first,
    })
}

/// The policies of a group: their names, or their number where they are many and the others are fewer.
fn counted(names: &[&str], groups: &[(RunLimit, Vec<&str>)]) -> String {
    let all: usize = groups.iter().map(|(_, names)| names.len()).sum();
    if names.len() > MOST_NAMES && 2 * names.len() > all {
        return format!("{} of {all} policies", names.len());
    }
    words(names)
}

fn limit_word(saturated: bool) -> &'static str {
    if saturated { "the limit" } else { "near their limit" }
}

/// Of what there is too little.
fn noun(runs: &[Run], limit: RunLimit) -> &'static str {
    match limit {
        // The model `adaptload` has one queue for both.
        RunLimit::Cpus if runs.iter().all(|run| run.model == "adaptload") => "networks",
        RunLimit::Cpus => "CPUs",
        RunLimit::Disks => "disks",
        RunLimit::Busiest => "the busiest back-ends",
        RunLimit::Admission => "the requests let in at once",
        RunLimit::Nothing => "nothing",
    }
}

/// What decides between policies that have several limits.
fn conclusion(groups: &[(RunLimit, Vec<&str>)], saturated: bool) -> &'static str {
    let has = |limit| groups.iter().any(|(of, _)| *of == limit);
    match (has(RunLimit::Disks), has(RunLimit::Busiest)) {
        (true, true) => "what the caches hold decides, and how evenly load is spread",
        (true, false) => "what the caches hold decides",
        (false, true) if saturated => "how evenly load is spread decides, not the caches",
        (false, _) => "compare delays",
    }
}

/// What follows where all policies have one limit.
fn alone(runs: &[Run], limit: RunLimit, most: usize, saturated: bool) -> String {
    match limit {
        RunLimit::Cpus => cpus_alone(runs, most, saturated),
        RunLimit::Disks => ": throughput follows the misses, which memory and locality decide".to_owned(),
        RunLimit::Busiest => ": how evenly load is spread decides".to_owned(),
        RunLimit::Admission if saturated => ": a higher --admission serves more".to_owned(),
        RunLimit::Admission => ": most of the delay is waiting to be let in (--admission)".to_owned(),
        RunLimit::Nothing => String::new(),
    }
}

fn cpus_alone(runs: &[Run], backends: usize, saturated: bool) -> String {
    let of = |value: &dyn Fn(&Run) -> Option<f64>| -> Vec<f64> {
        policies(runs).into_iter().filter_map(|policy| typical(runs, policy, backends, value)).collect()
    };
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let rates = of(&|run| Some(run.throughput_rps));
    let busy = percent(least(&of(&|run| Some(run.utilization.cpu))));
    let differ = if saturated { largest(&rates) / least(&rates) - 1.0 } else { 0.0 };
    let said = match rates.len() {
        2.. if saturated => format!(" and throughput differs by {} at most", percent(differ)),
        _ => String::new(),
    };
    let decides = if differ > SLIGHT {
        "what requests cost the CPUs and how evenly load is spread decide"
    } else {
        "misses cost little here, so choose by delays"
    };
    format!(" (busy {busy} of the time or more){said}: {decides}")
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn limit(runs: &[Run], policy: &str, backends: usize, saturated: bool) -> Option<RunLimit> {
    let value = |of: &dyn Fn(&Run) -> Option<f64>| typical(runs, policy, backends, of);
    let cpu = value(&|run| Some(run.utilization.cpu))?;
    let disk = value(&|run| run.utilization.disk)?;
    let limit = if saturated { LIMIT } else { NEAR };
    if cpu >= limit || disk >= limit {
        return Some(if cpu >= disk { RunLimit::Cpus } else { RunLimit::Disks });
    }
    let each = |run: &Run, of: fn(&PerBackend) -> f64| run.per_backend.iter().map(of).collect::<Vec<_>>();
    let mean_load = value(&|run| {
        Some(each(run, |backend| backend.mean_load).iter().sum::<f64>() / run.per_backend.len().max(1) as f64)
    })?;
    if !saturated {
        let is_full = |of: fn(&PerBackend) -> f64, mean: f64| {
            let most = value(&|run| Some(largest(&each(run, of))));
            most.is_some_and(|most| most >= limit.max(UNEVEN_USE * mean))
        };
        let some_are_full =
            is_full(|backend| backend.cpu, cpu) || is_full(|backend| backend.disk.unwrap_or(0.0), disk);
        let waiting = value(&|run| {
            let under_way = run.throughput_rps * run.response_time_s.as_ref()?.mean;
            Some(1.0 - mean_load * run.per_backend.len() as f64 / under_way)
        });
        return Some(match waiting {
            _ if some_are_full => RunLimit::Busiest,
            Some(share) if share >= MOSTLY => RunLimit::Admission,
            _ => RunLimit::Nothing,
        });
    }
    let most_load = value(&|run| Some(largest(&each(run, |backend| backend.mean_load))))?;
    let is_dynamic = |run: &Run| {
        run.policy == policy && run.model == "adaptload" && run.params.contains_key("dynamic_share")
    };
    if runs.iter().any(is_dynamic) {
        // Requests can wait for the server of dynamic requests, too, of whose use nothing is known.
        return None;
    }
    Some(if most_load >= UNEVEN * mean_load {
        RunLimit::Busiest
    } else if mean_load < FEW {
        RunLimit::Admission
    } else if (cpu > disk && cpu + disk < limit) || is_short(runs, policy, backends) {
        // Most are under way at the start or at the end, when few back-ends have any.
        RunLimit::Nothing
    } else {
        // Requests are at a CPU or at a disk, and it is not the CPU that they wait for.
        RunLimit::Disks
    })
}

/// Whether requests are so few that the start and the end of a policy's runs make up much of them.
fn is_short(runs: &[Run], policy: &str, backends: usize) -> bool {
    let rounds = typical(runs, policy, backends, &|run| {
        let at_once: f64 = run.per_backend.iter().map(|backend| backend.mean_load).sum();
        Some(run.completed as f64 / at_once)
    });
    rounds.is_some_and(|rounds| rounds < SHORT)
}

/// What the networks of the back-ends would have to carry, where that is more than Ethernet of 10 Gbit/s can. `None` for models that
/// count it.
fn network(runs: &[Run], backends: usize) -> Option<String> {
    if runs.iter().any(|run| run.model == "adaptload") {
        return None;
    }
    // What each one sent is not known, but how many requests it had.
    let share = |run: &Run| {
        let requests = || run.per_backend.iter().map(|backend| backend.requests);
        requests().max().unwrap_or(0) as f64 / requests().sum::<u64>().max(1) as f64
    };
    let rate = |run: &Run| run.sent_bytes as f64 / run.simulated_s * share(run);
    let rates = runs.iter().filter(|run| run.backends == backends && run.simulated_s > 0.0).map(rate);
    let most = rates.fold(0.0, f64::max);
    (most > ETHERNET_BYTES_PER_S).then(|| {
        format!(
            "With answers as large as the mean, the busiest back-end sends up to {:.1} Gbit/s, more than Ethernet of 10 Gbit/s carries: the model does not count \
             networks.",
            most * 8e-9
        )
    })
}

/// `a`, `a and b`, `a, b and c`.
fn words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
