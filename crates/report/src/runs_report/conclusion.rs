//! The report's conclusion in plain words.

use crate::{
    format::{duration, number, percent},
    run::Run,
    runs_report::groups::{backend_counts, on_backends, policies, typical},
};

/// Two throughputs or delays closer than this factor are called equal.
const TELLING: f64 = 1.02;
/// A delay that grows by less is not worth a sentence.
const WORSE: f64 = 1.2;

/// One policy's medians over seeds on one number of back-ends.
struct PolicyMedians<'a> {
    policy: &'a str,
    throughput_rps: f64,
    miss_ratio: Option<f64>,
    idle_ratio: Option<f64>,
    p50_s: Option<f64>,
    p99_s: Option<f64>,
}

/// Up to four sentences: which policy had the highest throughput on the most back-ends, beside the best one that other
/// balancers offer too, and why; what gets worse with it; how delays differ; how it scaled. Empty without runs.
///
/// `saturated`: as many requests as the admission limit allows were under way all the time.
pub(super) fn conclusion(runs: &[Run], saturated: bool) -> Vec<String> {
    let counts = backend_counts(runs);
    let Some(&most) = counts.last() else {
        return Vec::new();
    };
    let scores = scores(runs, most);
    let Some(winner) = best(scores.iter()) else { return Vec::new() };
    let mut out = Vec::new();
    match rival(&scores, winner) {
        None => {
            let (name, rate) = (winner.policy, number(winner.throughput_rps));
            out.push(format!("{name} served {rate} requests/s {}.", on_backends(most)));
        }
        Some(rival) => {
            out.push(comparison(winner, rival, &scores, most));
            out.extend(worse(winner, rival, saturated));
            out.extend(tail(&scores, most));
        }
    }
    out.extend(scaling(runs, winner.policy, &counts));
    out
}

fn scores(runs: &[Run], backends: usize) -> Vec<PolicyMedians<'_>> {
    let score = |policy| {
        let median = |value: &dyn Fn(&Run) -> Option<f64>| typical(runs, policy, backends, value);
        Some(PolicyMedians {
            policy,
            throughput_rps: median(&|run| Some(run.throughput_rps))?,
            miss_ratio: median(&|run| run.miss_ratio),
            idle_ratio: median(&|run| Some(run.idle_ratio)),
            p50_s: median(&|run| run.response_time_s.map(|summary| summary.p50)),
            p99_s: median(&|run| run.response_time_s.map(|summary| summary.p99)),
        })
    };
    policies(runs).into_iter().filter_map(score).collect()
}

/// The highest throughput; the first of equals.
fn best<'a, 'b>(mut scores: impl Iterator<Item = &'b PolicyMedians<'a>>) -> Option<&'b PolicyMedians<'a>>
where
    'a: 'b,
{
    let first = scores.next()?;
    Some(
        scores
            .fold(first, |best, score| if score.throughput_rps > best.throughput_rps { score } else { best }),
    )
}

fn is_ordinary(score: &PolicyMedians<'_>) -> bool {
    crate::runs_table::is_ordinary(score.policy)
}

/// What the reader would do otherwise: the best other policy that other balancers offer; without one, the best other policy.
fn rival<'a, 'b>(
    scores: &'b [PolicyMedians<'a>],
    winner: &PolicyMedians<'_>,
) -> Option<&'b PolicyMedians<'a>> {
    let others = || scores.iter().filter(|score| score.policy != winner.policy);
    best(others().filter(|score| is_ordinary(score))).or_else(|| best(others()))
}

/// Compares the best policy with its rival.
fn comparison(
    winner: &PolicyMedians<'_>,
    rival: &PolicyMedians<'_>,
    scores: &[PolicyMedians<'_>],
    backends: usize,
) -> String {
    let place = on_backends(backends);
    let rate = number(winner.throughput_rps);
    let ratio = winner.throughput_rps / rival.throughput_rps;
    let slowest = scores.iter().map(|score| score.throughput_rps).fold(f64::INFINITY, f64::min);
    if winner.throughput_rps < slowest * TELLING {
        return format!("All policies served the same throughput {place} within 2 %, {rate} requests/s.");
    }
    if !ratio.is_finite() {
        return format!("{} served {rate} requests/s {place}.", winner.policy);
    }
    if ratio < TELLING {
        return format!(
            "{} and {} served the most {place}, {rate} requests/s, within 2 % of each other.",
            winner.policy, rival.policy
        );
    }
    let reason = reason(winner, rival).map_or_else(String::new, |reason| format!(", because {reason}"));
    let known = match is_ordinary(rival) && scores.len() > 2 && !is_ordinary(winner) {
        true => ", the best of the policies here that other balancers have,",
        false => "",
    };
    let (name, other) = (winner.policy, rival.policy);
    format!("{name} served {} times as many requests/s as {other}{known} {place}{reason}.", times(ratio))
}

/// The measured difference that accompanies a higher throughput: fewer disk reads, or less idling.
fn reason(winner: &PolicyMedians<'_>, loser: &PolicyMedians<'_>) -> Option<String> {
    let lower = |ours: Option<f64>, theirs: Option<f64>| match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours < theirs * 0.9 && theirs - ours > 0.005 => Some((ours, theirs)),
        _ => None,
    };
    let misses = lower(winner.miss_ratio, loser.miss_ratio)
        .map(|(ours, theirs)| format!("its miss ratio was {} against {}", percent(ours), percent(theirs)));
    let idling = || {
        let (ours, theirs) = lower(winner.idle_ratio, loser.idle_ratio)?;
        Some(format!("its back-ends were idle {} of the time against {}", percent(ours), percent(theirs)))
    };
    misses.or_else(idling)
}

/// What the winner does worse than its rival: delays, and more misses.
fn worse(winner: &PolicyMedians<'_>, rival: &PolicyMedians<'_>, saturated: bool) -> Option<String> {
    let slower = |what: &str, ours: Option<f64>, theirs: Option<f64>| {
        let (ours, theirs) = (ours?, theirs?);
        (ours > theirs * WORSE)
            .then(|| format!("its {what} was {} against {}", duration(ours), duration(theirs)))
    };
    let misses = match (winner.miss_ratio, rival.miss_ratio) {
        (Some(ours), Some(theirs)) if ours > theirs * WORSE && ours - theirs > 0.005 => {
            Some(format!("its miss ratio was {} against {}", percent(ours), percent(theirs)))
        }
        _ => None,
    };
    let delays = [
        slower("median response time", winner.p50_s, rival.p50_s),
        slower("99th percentile", winner.p99_s, rival.p99_s),
    ];
    let are_slower = delays.iter().any(Option::is_some);
    let all: Vec<String> = misses.into_iter().chain(delays.into_iter().flatten()).collect();
    if all.is_empty() {
        return None;
    }
    // Under saturation a policy that keeps CPUs busy lets hits wait, which others answer at once while disks are the bottleneck.
    let why = match saturated && are_slower {
        true => {
            " Each policy was given all the load that it bears: compare delays under the same load \
                 (--arrivals poisson:RATE)."
        }
        false => "",
    };
    Some(format!("What is worse with {}: {}.{why}", winner.policy, all.join(", ")))
}

/// The best and the worst 99th percentile, where they differ.
fn tail(scores: &[PolicyMedians<'_>], backends: usize) -> Option<String> {
    let mut delays: Vec<(f64, &str)> =
        scores.iter().filter_map(|score| Some((score.p99_s?, score.policy))).collect();
    delays.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (&(low, quick), &(high, slow)) = (delays.first()?, delays.last()?);
    let place = on_backends(backends);
    (high > low * TELLING).then(|| {
        let (low, high) = (duration(low), duration(high));
        format!(
            "The slowest hundredth of requests took {low} or more with {quick} and {high} or more with {slow} {place}."
        )
    })
}

/// How a policy's throughput grew from the fewest back-ends to the most.
fn scaling(runs: &[Run], policy: &str, counts: &[usize]) -> Option<String> {
    let of = |backends| typical(runs, policy, backends, &|run| Some(run.throughput_rps));
    let mut measured = counts.iter().filter_map(|&backends| Some((backends, of(backends)?)));
    let (few, low) = measured.next()?;
    let (many, high) = measured.next_back()?;
    let growth = high / low;
    growth.is_finite().then(|| {
        format!(
            "From {few} to {many} back-ends ({} times as many), the throughput of {policy} grew {} times.",
            times(many as f64 / few as f64),
            times(growth)
        )
    })
}

/// A factor to two significant digits above 10, one decimal above 1.5, else two.
fn times(ratio: f64) -> String {
    if ratio.fract() == 0.0 || ratio >= 9.95 {
        format!("{ratio:.0}")
    } else if ratio >= 1.5 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.2}")
    }
}
