//! An advice in sentences, for people who decide.

use plimsoll_report::format::{bytes, capital, count, duration, number, percent};

use super::advice::Advice;
use super::config_text::nginx_lines;
use super::contestants::{BASELINE, CONTESTANTS};
use super::finals::FinalFigures;
use super::intervals::GainInterval;
use super::notes::{back_ends, not_counted, notes};
use super::plan::MOST_BACKENDS;
use super::sizing::MOST_UTILIZATION;
use super::stress::{StressMeasure, StressOutcome};
use super::verdict::{PolicyGain, VerdictReason, WORTH};

/// Another policy is said to be better under a condition from this factor on.
const BETTER: f64 = 1.03;
/// A setting matters from this change of the throughput on.
const MATTERS: f64 = 0.05;
/// Below this share of what a cluster can serve, nobody will notice which policy it has.
const SMALL_LOAD: f64 = 0.1;
/// But for one with which answers take this many times as long, or which does not carry the load.
const NOTICED: f64 = 2.0;

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdviceWords {
    /// The answer, the most important sentence first.
    pub answer: Vec<String>,
    /// Where it would be wrong.
    pub loses: Vec<String>,
    /// What matters, the most first.
    pub matters: Vec<String>,
    /// What to know of how it was found.
    pub notes: Vec<String>,
}

/// The sentences of an advice.
#[must_use]
pub fn advice_words(advice: &Advice) -> AdviceWords {
    let mut answer = vec![recommendation(advice), load(advice)];
    answer.extend(not_counted(advice));
    answer.extend(too_short(advice));
    answer.extend(small_load(advice));
    answer.extend(advice.verdict.gains.iter().enumerate().map(|(place, of)| {
        let explained = if place == 0 { " In brackets: the 95 % interval." } else { "" };
        gain(advice, of) + explained
    }));
    answer.extend(undecided(advice));
    answer.extend(needs(advice));
    AdviceWords { answer, loses: loses(advice), matters: matters(advice), notes: notes(advice) }
}

fn recommendation(advice: &Advice) -> String {
    let policy = advice.verdict.policy;
    let cluster = format!(
        "{} with {} of memory for documents each",
        back_ends(advice.backends),
        bytes(advice.memory_bytes as f64)
    );
    match advice.verdict.reason {
        _ if advice.holds_all => format!(
            "Take any balancer, e.g. with {policy}, on {cluster}: all {} of the log's documents fit into the memory of every back-end, so that neither \
             hashing nor locality saves reads once they are there.",
            bytes(advice.facts.documents_bytes as f64)
        ),
        VerdictReason::Locality => format!("Take {policy} on {cluster}."),
        VerdictReason::Carries => format!(
            "Take {policy} on {cluster}: it carries the load. The policy that would be taken otherwise does not on so many back-ends."
        ),
        VerdictReason::Hashing => format!(
            "Hash what is asked for ({policy}) on {cluster}. {} will do: nothing was found that is surely better than hashing.",
            if nginx_lines(advice).is_some() { "HAProxy or nginx" } else { "HAProxy" }
        ),
        VerdictReason::Any => format!(
            "Take any balancer, e.g. with {policy}, on {cluster}: neither hashing nor locality was found to be surely better."
        ),
    }
}

fn load(advice: &Advice) -> String {
    let (target, own) = (advice.target, advice.own());
    let peak = format!("{} requests/s", number(target.peak_rps));
    let what = match target.times_own_peak {
        _ if target.assumed => {
            let why = if advice.facts.has_one_time {
                "All times of the log are within one second, so no rate can be told from them, and nobody knows"
            } else {
                "The log has no times, so nobody knows"
            };
            return format!(
                "{why} what is to be carried: the cluster serves {} requests/s at most, and at {peak} 99 of 100 \
                 answers take less than {}.",
                number(own.capacity_rps),
                duration(own.peak_p99_s)
            );
        }
        Some(1.0) => format!("the log's busiest minute, {peak}"),
        Some(times) => format!("{peak}, {} times the log's busiest minute", number(times)),
        None => peak,
    };
    let used = format!(
        "{} of the {} requests/s that it can serve",
        percent(target.peak_rps / own.capacity_rps),
        number(own.capacity_rps)
    );
    if advice.overloads(own) {
        return format!(
            "That falls short of {what}: it would be {used}, so that queues grow as long as the peak lasts."
        );
    }
    if !advice.carries() {
        let wanted = match target.idle_p99_s {
            None => format!(", where {} are wanted", duration(target.p99_s)),
            Some(_) => String::new(),
        };
        return format!(
            "That falls short of {what}: it would be {used}, where 70 % is the most, and one answer of 100 would take longer than \
             {}{wanted}.",
            duration(own.peak_p99_s)
        );
    }
    let mut text = format!(
        "That carries {what}: {used}. 99 of 100 answers then take less than {}",
        duration(own.peak_p99_s)
    );
    if let Some(own_s) = own.own_p99_s {
        text += &format!(", or {} where requests come at the log's own times", duration(own_s));
    }
    text += ".";
    let fewer = (advice.backends.saturating_sub(1)) as f64 / advice.backends as f64 * own.capacity_rps;
    let is_fewest = !advice.backends_given && advice.fewest(own.policy) == Some(advice.backends);
    if is_fewest && advice.backends > 2 && target.peak_rps < 0.9 * MOST_UTILIZATION * fewer {
        text += " The 99th percentile asks for so many; for the throughput alone fewer would do.";
    }
    if !advice.backends_given && advice.fewest(own.policy) == Some(1) {
        text += " One back-end would do; the second one is there so that one may fail.";
    }
    text
}

/// A ratio with its interval.
pub(super) fn interval(of: GainInterval) -> String {
    if of.high.is_infinite() {
        return format!("{:.2} (no interval: too few blocks)", of.ratio);
    }
    format!("{:.2} ({:.2} to {:.2})", of.ratio, of.low, of.high)
}

fn small_load(advice: &Advice) -> Option<String> {
    let own = advice.own();
    let is_small = advice.target.peak_rps < SMALL_LOAD * own.capacity_rps;
    let does_as_well =
        |of: &FinalFigures| advice.is_carried_by(of) && of.peak_mean_s < NOTICED * own.peak_mean_s;
    (is_small && advice.finals.iter().all(does_as_well)).then(|| {
        "That load is small: what follows is about growth. Today nobody would notice which policy the cluster has.".to_owned()
    })
}

fn gain(advice: &Advice, of: &PolicyGain) -> String {
    let PolicyGain { policy, over, capacity, response } = *of;
    let what = if over == advice.verdict.best_hashing { ", the best hashing" } else { "" };
    let mut text = format!("{policy} serves {} times as many requests/s as {over}{what}", interval(capacity));
    let of_other = advice.finals.iter().find(|figures| figures.policy == over);
    text += &match response {
        Some(response) => {
            format!("; at the peak, answers take {} times as long with {over}", interval(response))
        }
        None if of_other.is_some_and(|other| advice.overloads(other)) => {
            format!(", which does not bear the peak on {}", back_ends(advice.backends))
        }
        None => String::new(),
    };
    if advice.verdict.reason == VerdictReason::Hashing && over == advice.verdict.best_hashing {
        text += &format!(": neither is surely better in all, and {policy} is simpler");
    } else if !of.is_clear() {
        text += if capacity.high < 1.0 { ": it is behind" } else { ": not surely better" };
    }
    text + "."
}

/// Where hashing is advised: how far locality is ahead, if only as a guess.
fn undecided(advice: &Advice) -> Option<String> {
    let of = advice.verdict.aware_over_hashing;
    (advice.verdict.reason == VerdictReason::Hashing).then(|| {
        format!(
            "{} would serve {} times as many requests/s as {}: {}.",
            advice.verdict.best_aware,
            interval(of.capacity),
            of.over,
            standing(of)
        )
    })
}

/// What to think of one that was not taken.
fn standing(of: PolicyGain) -> &'static str {
    let GainInterval { low, high, .. } = of.capacity;
    match (low > WORTH, of.response.is_some_and(|response| response.high < 1.0)) {
        _ if high < 1.0 => "it is behind",
        _ if low > 0.995 && high < 1.005 => "no difference",
        (true, true) => "but at the peak its answers take longer",
        (true, false) if of.response.is_none() => "but not surely better in all",
        (true, false) => "but not surely without longer answers at the peak",
        _ if low > 1.0 => "too little to pay for a change",
        _ => "within the uncertainty",
    }
}

/// How many back-ends the others need for the same peak.
fn needs(advice: &Advice) -> Option<String> {
    if advice.target.assumed {
        return None;
    }
    let policies = [advice.verdict.policy, advice.verdict.best_hashing, advice.verdict.best_aware, BASELINE];
    let mut seen: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    for policy in policies {
        if !seen.contains(&policy) {
            seen.push(policy);
            let fewest = advice.fewest(policy).map_or_else(
                || format!("more than {}", advice.most_backends.min(MOST_BACKENDS)),
                |n| n.to_string(),
            );
            parts.push(format!("{policy} {fewest}"));
        }
    }
    Some(format!("Back-ends needed for this peak: {}.", parts.join(", ")))
}

/// The best other policy under a condition, and how many times as good it is.
pub(super) fn best_other(outcome: &StressOutcome, policy: &str) -> Option<(&'static str, f64)> {
    let own = CONTESTANTS.iter().position(|of| of.policy == policy)?;
    let times = outcome.times_as_good(own);
    let others = CONTESTANTS.iter().zip(times).filter(|(of, _)| of.policy != policy);
    others
        .map(|(of, times)| (of.policy, 1.0 / times))
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
}

fn loses(advice: &Advice) -> Vec<String> {
    let policy = advice.verdict.policy;
    let lost = advice.stress.iter().filter_map(|outcome| {
        let (other, times) = best_other(outcome, policy).filter(|(_, times)| *times >= BETTER)?;
        let better = match outcome.measure {
            StressMeasure::Throughput => format!("serves {times:.2} times as many requests/s"),
            StressMeasure::Slowdown => format!("answers {times:.2} times as fast"),
        };
        Some(format!("{}: {other} {better} as {policy}.", capital(outcome.condition)))
    });
    let mut out: Vec<String> = lost.collect();
    if out.is_empty() {
        out.push(format!(
            "Under none of {} other conditions was another policy more than 3 % better than {policy}.",
            advice.stress.len()
        ));
    }
    out
}

fn matters(advice: &Advice) -> Vec<String> {
    let mut all: Vec<_> = advice.levers.iter().filter(|lever| (lever.ratio - 1.0).abs() >= MATTERS).collect();
    all.sort_by(|a, b| (b.ratio.ln().abs()).total_cmp(&a.ratio.ln().abs()));
    let mut out: Vec<String> = all
        .iter()
        .map(|lever| format!("{}: {:+.0} % requests/s.", capital(&lever.change), 100.0 * (lever.ratio - 1.0)))
        .collect();
    if out.is_empty() {
        out.push(
            "Nothing that was changed by half or twice changes the throughput by 5 % or more.".to_owned(),
        );
    }
    out
}

/// Where the log cannot judge as many back-ends as it should.
fn too_short(advice: &Advice) -> Option<String> {
    let most = advice.most_backends;
    let requests = count(advice.sampled.unwrap_or(advice.facts.requests));
    if advice.backends > most {
        return Some(format!(
            "{requests} requests are too few to judge {} back-ends: they have about as many under way as there are to compare by. Figures hold for {most} \
             at most; take a longer log, or a larger --sample.",
            advice.backends
        ));
    }
    let missing = advice.sizes.iter().any(|size| size.fewest.is_none()) && !advice.target.assumed;
    (missing && most < MOST_BACKENDS).then(|| {
        format!("{requests} requests are too few to judge more than {most} back-ends, so no more were tried.")
    })
}
