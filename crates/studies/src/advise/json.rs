//! An advice as JSON, with stable keys.

use serde_json::{Value, json};

use super::advice::Advice;
use super::config_text::{haproxy_lines, nginx_lines, plimsoll_toml};
use super::contestants::CONTESTANTS;
use super::words::advice_words;

/// One object.
#[must_use]
pub fn advice_json(advice: &Advice, command: &str) -> Value {
    let words = advice_words(advice);
    let by_policy = |values: &[f64]| -> Value {
        CONTESTANTS.iter().zip(values).map(|(of, value)| (of.policy.to_owned(), json!(value))).collect()
    };
    let memory = advice.memory_steps.iter().map(
        |step| json!({"memory_bytes": step.memory_bytes, "capacity_rps": by_policy(&step.capacity_rps)}),
    );
    let stress = advice.stress.iter().map(|outcome| {
        json!({"condition": outcome.condition, "measure": outcome.measure, "values": by_policy(&outcome.values)})
    });
    let target = advice.target;
    json!({
        "log": advice.facts,
        "simulated_requests": advice.sampled.unwrap_or(advice.facts.requests),
        "hardware": advice.hardware.name,
        "costs": advice.costs,
        "seed": advice.seed,
        "network_rps": advice.network_rps,
        "target": {
            "peak_rps": target.peak_rps,
            "times_own_peak": target.times_own_peak,
            "assumed": target.assumed,
            "p99_s": target.p99_s,
            "idle_p99_s": target.idle_p99_s,
        },
        "policy": advice.verdict.policy,
        "reason": advice.verdict.reason,
        "backends": advice.backends,
        "most_backends": advice.most_backends,
        "memory_backends": advice.memory_backends,
        "memory_bytes": advice.memory_bytes,
        "holds_all": advice.holds_all,
        "carries": advice.carries(),
        "verdict": advice.verdict,
        "sizes": advice.sizes,
        "policies": advice.finals,
        "memory": memory.collect::<Vec<_>>(),
        "levers": advice.levers,
        "stress": stress.collect::<Vec<_>>(),
        "answer": words.answer,
        "loses": words.loses,
        "matters": words.matters,
        "notes": words.notes,
        "plimsoll_toml": plimsoll_toml(advice, command),
        "haproxy": haproxy_lines(advice),
        "nginx": nginx_lines(advice),
    })
}
