//! The report's conclusion in plain words.

use crate::{
    format::{duration, number, percent},
    run::Run,
    runs_report::groups::{backend_counts, on_backends, policies, typical},
};

/// Two throughputs or delays closer than this factor are called equal.
const TELLING: f64 = 1.02;

/// One policy's medians over seeds on one number of back-ends.
struct PolicyMedians<'a> {
    policy: &'a str,
    throughput_rps: f64,
    miss_ratio: Option<f64>,
    idle_ratio: Option<f64>,
    p99_s: Option<f64>,
}

/// One to three sentences: which policy had the highest throughput on the most back-ends and why, how it
/// scaled, and the tail of the delay. Empty without runs.
pub(super) fn conclusion(runs: &[Run], name: impl Fn(&str) -> String) -> Vec<String> {
    let counts = backend_counts(runs);
    let Some(&most) = counts.last() else {
        return Vec::new();
    };
    let scores = scores(runs, most);
    let mut out = Vec::new();
    if let [first, others @ ..] = &scores[..] {
        if others.is_empty() {
            let place = on_backends(most);
            let rate = number(first.throughput_rps);
            out.push(format!("{} served {rate} requests/s {place}.", name(first.policy)));
        } else {
            out.push(comparison(first, others, most, &name));
            out.extend(tail(&scores, most, &name));
        }
        let best = best(&scores);
        out.extend(scaling(runs, best.policy, &counts, &name));
    }
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
            p99_s: median(&|run| run.response_time_s.map(|summary| summary.p99)),
        })
    };
    policies(runs).into_iter().filter_map(score).collect()
}

/// The highest throughput; the first of equals.
fn best<'a, 'b>(scores: &'b [PolicyMedians<'a>]) -> &'b PolicyMedians<'a> {
    scores
        .iter()
        .reduce(|best, score| if score.throughput_rps > best.throughput_rps { score } else { best })
        .expect("called with at least one score")
}

/// Compares the best policy with the first one, or with the runner-up if the first is the best.
fn comparison(
    first: &PolicyMedians<'_>,
    others: &[PolicyMedians<'_>],
    backends: usize,
    name: impl Fn(&str) -> String,
) -> String {
    let place = on_backends(backends);
    let rival = best(others);
    let (winner, loser) =
        if rival.throughput_rps > first.throughput_rps { (rival, first) } else { (first, rival) };
    let ratio = winner.throughput_rps / loser.throughput_rps;
    let slowest = others.iter().map(|score| score.throughput_rps).fold(first.throughput_rps, f64::min);
    if winner.throughput_rps < slowest * TELLING {
        return format!(
            "All policies served the same throughput {place} within 2 %, {} requests/s.",
            number(winner.throughput_rps)
        );
    }
    if !ratio.is_finite() {
        return format!(
            "{} served {} requests/s {place}.",
            name(winner.policy),
            number(winner.throughput_rps)
        );
    }
    let (winner_name, loser_name) = (name(winner.policy), name(loser.policy));
    if ratio < TELLING {
        return format!(
            "{winner_name} and {loser_name} served the most {place}, {} requests/s, within 2 % of each \
             other.",
            number(winner.throughput_rps)
        );
    }
    let reason = reason(winner, loser).map_or_else(String::new, |reason| format!(", because {reason}"));
    format!("{winner_name} served {} times as many requests/s as {loser_name} {place}{reason}.", times(ratio))
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

/// The best and the worst 99th percentile, where they differ.
fn tail(scores: &[PolicyMedians<'_>], backends: usize, name: impl Fn(&str) -> String) -> Option<String> {
    let mut delays: Vec<(f64, &str)> =
        scores.iter().filter_map(|score| Some((score.p99_s?, score.policy))).collect();
    delays.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (&(low, quick), &(high, slow)) = (delays.first()?, delays.last()?);
    let place = on_backends(backends);
    (high > low * TELLING).then(|| {
        format!(
            "The slowest hundredth of requests took {} or more with {} and {} or more with {} {place}.",
            duration(low),
            name(quick),
            duration(high),
            name(slow)
        )
    })
}

/// How a policy's throughput grew from the fewest back-ends to the most.
fn scaling(runs: &[Run], policy: &str, counts: &[usize], name: impl Fn(&str) -> String) -> Option<String> {
    let of = |backends| typical(runs, policy, backends, &|run| Some(run.throughput_rps));
    let mut measured = counts.iter().filter_map(|&backends| Some((backends, of(backends)?)));
    let (few, low) = measured.next()?;
    let (many, high) = measured.next_back()?;
    let growth = high / low;
    growth.is_finite().then(|| {
        format!(
            "From {few} to {many} back-ends ({} times as many), the throughput of {} grew {} times.",
            times(many as f64 / few as f64),
            name(policy),
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
