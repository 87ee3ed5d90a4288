//! What to know of how an advice was found.

use plimsoll_report::format::{bytes, count, duration, number, percent};

use super::advice::Advice;
use super::contestants::{BASELINE, CONTESTANTS};
use super::stress::WARM;

/// From this share on, requests that do not count are told of.
const MANY_NOT_COUNTED: f64 = 0.05;

/// A number of back-ends in words.
pub(super) fn back_ends(number: usize) -> String {
    format!("{} back-end{}", count(number as u64), if number == 1 { "" } else { "s" })
}

/// Requests that count are not all that the servers answer.
pub(super) fn not_counted(advice: &Advice) -> Option<String> {
    let share = advice.facts.not_counted_share;
    (share > MANY_NOT_COUNTED).then(|| {
        format!(
            "{} of the log's requests do not count here, though servers have to answer them: the load is higher than is said. With --include-all they \
             count.",
            percent(share)
        )
    })
}

/// What becomes of the gains with warm memories.
fn warm(advice: &Advice) -> Option<String> {
    let outcome = advice.stress.iter().find(|outcome| outcome.condition == WARM)?;
    let rps = |policy: &str| {
        let place = CONTESTANTS.iter().position(|of| of.policy == policy)?;
        outcome.values.get(place).copied().filter(|&rps| rps > 0.0)
    };
    let own = rps(advice.verdict.policy)?;
    let times =
        |over: &'static str| Some(format!("{:.2} times as many requests/s as {over}", own / rps(over)?));
    let others =
        [advice.verdict.best_hashing, BASELINE].into_iter().filter(|&over| over != advice.verdict.policy);
    let gains: Vec<String> = others.filter_map(times).collect();
    Some(format!(
        "In a log many requests are the first for their document. With warm memories (the log a second time) {} serves {}. A site that runs for \
         weeks is between that and the figures above.",
        advice.verdict.policy,
        gains.join(", and ")
    ))
}

/// Where memory was not looked for.
fn holds_all(advice: &Advice) -> String {
    format!(
        "{} is the least that such a machine has to spare for documents, so that less was not tried, and figures are those of memories that hold \
         everything. If the log is only a part of the site's traffic, the site has more documents: say then with --memory what share of the \
         documents a back-end holds, e.g. --memory 25%.",
        bytes(advice.memory_bytes as f64)
    )
}

/// These notes.
pub(super) fn notes(advice: &Advice) -> Vec<String> {
    let (facts, target) = (&advice.facts, advice.target);
    let mut out = Vec::new();
    if let Some(sampled) = advice.sampled {
        out.push(format!(
            "Of {} requests, {} were simulated: neighbours, the busiest minute among them. In a part of a log more requests are the first for their \
             document than in all of it: so figures are too low, gains of locality rather too small, and memory that seems enough may be too little. \
             A larger --sample is surer.",
            count(facts.requests),
            count(sampled)
        ));
    }
    if let Some(briefly) = advice.briefly {
        out.push(format!("Other conditions were tried on {} requests of the log only.", count(briefly)));
    }
    if let Some(idle_s) = target.idle_p99_s {
        out.push(format!(
            "A 99th percentile below {} cannot be had on this hardware: on an idle cluster it is {}, because of large documents and first \
             requests. So the number of back-ends follows from the load alone.",
            duration(target.p99_s),
            duration(idle_s)
        ));
    }
    if !advice.memory_steps.is_empty() && advice.memory_backends != advice.backends {
        out.push(format!(
            "Memory was tried on {}, as many as seemed to be needed before; the other figures are for {}.",
            back_ends(advice.memory_backends),
            back_ends(advice.backends)
        ));
    }
    if let Some(sentence) = not_counted(advice) {
        let reasons: Vec<String> =
            facts.not_counted.iter().map(|(why, requests)| format!("{why}: {}", count(*requests))).collect();
        out.push(format!("{sentence} Not counted: {}.", reasons.join(", ")));
    }
    if advice.holds_all {
        out.push(holds_all(advice));
    } else {
        out.extend(warm(advice));
    }
    if facts.once_share >= 0.2 {
        out.push(format!(
            "{} of the requests ask for documents that nobody asks for again; no policy and no memory helps with these.",
            percent(facts.once_share)
        ));
    }
    if facts.top_share > 1.0 / advice.backends as f64 {
        out.push(format!(
            "{} gets {} of the requests, more than the part of one back-end; with hashing alone all of them go to one.",
            facts.top_target,
            percent(facts.top_share)
        ));
    }
    if advice.own().capacity_rps > 0.99 * advice.network_rps {
        out.push(format!(
            "The networks are the limit: evenly used, they send the answers to {} requests/s at most (--network).",
            number(advice.network_rps)
        ));
    }
    // What the network of one back-end takes for an answer of the mean size.
    let network_s = advice.backends as f64 / advice.network_rps;
    if network_s > 0.1 * advice.own().peak_mean_s {
        out.push(format!(
            "Times are those until an answer is ready: the time that a network takes to send it is not in them, {} for an answer of the mean size.",
            duration(network_s)
        ));
    }
    out.push(
        "Simulated, with costs of the hardware that was named: ratios are surer than absolute figures, and a trial on your servers is surer than both."
            .to_owned(),
    );
    out
}
