//! Claims on what the paper leaves open: faster networks and cheaper messages (section 5), equal intervals of broadcasts (section 2.2),
//! other distributions (section 1.1).

use super::plan::{
    FineGrainRun, Grain, INTERVALS_US, POLL_LATENCY_US, READINGS, SWEEP_INTERVALS_US, swept, swept_broadcast,
};
use super::results::{FineGrainResults, least, mean, most};
use super::rule::{FineGrainClaimSpec, Value};
use crate::judge::PaperReference::Section;
use crate::judge::{AHEAD, CLEARLY_MORE, NEAR, Rule};

/// CPU times of messages at their server. Polls of 8 at 500 µs would be more than a server that is 90 % busy has.
const CHEAP_US: u32 = 10;
const DEAR_US: u32 = 100;
const VERY_DEAR_US: u32 = 500;

/// Broadcast over ideal at the best interval of the sweep, where an announcement takes this CPU time.
pub(super) fn best_over_ideal(r: &FineGrainResults, latency_us: u32, cpu_us: u32) -> Option<f64> {
    least(
        SWEEP_INTERVALS_US.map(|interval_us| r.over_ideal(swept_broadcast(interval_us, latency_us, cpu_us))),
    )
}

/// A poll of 8 over one of 2, where an inquiry takes this CPU time.
fn eight_over_two(r: &FineGrainResults, cpu_us: u32) -> Option<f64> {
    let [eight, two] = [8, 2].map(|size| swept(size, POLL_LATENCY_US, cpu_us));
    r.ratio(eight, two)
}

/// Equal intervals over drawn ones.
pub(super) fn fixed_over_drawn(r: &FineGrainResults, interval_us: u32) -> Option<f64> {
    let drawn = FineGrainRun::broadcast(Grain::PoissonExp, 90, interval_us, READINGS[0]);
    r.ratio(FineGrainRun::fixed_broadcast(Grain::PoissonExp, interval_us), drawn)
}

/// Random over a poll of two.
fn gain_of_two(r: &FineGrainResults, grain: Grain) -> Option<f64> {
    r.ratio(FineGrainRun::random(grain, 90), FineGrainRun::polled(grain, 90, 2))
}

pub(super) const SPECS: &[FineGrainClaimSpec] = &[
    FineGrainClaimSpec {
        id: "f35",
        place: Section("5", None),
        statement: "cheap messages make frequent broadcasts more feasible (Fine-Grain, 90 %, 6 clients that count, the best interval from \
                    2 ms: at 500 µs of CPU an announcement, over that at 10 µs)",
        paper: None,
        paper_text: "more feasible",
        unit: "×",
        rule: AHEAD,
        value: Value::Once(|r| {
            let [dear, cheap] = [VERY_DEAR_US, CHEAP_US].map(|us| best_over_ideal(r, POLL_LATENCY_US, us));
            Some(dear? / cheap?)
        }),
        explanation: |seeds| broadcast_costs(seeds),
    },
    FineGrainClaimSpec {
        id: "f36",
        place: Section("5", None),
        statement: "so far that they are close to ideal (at 10 µs, the best interval)",
        paper: None,
        paper_text: "feasible",
        unit: "×",
        // As claim f11, whose frequency the paper calls prohibitive.
        rule: Rule::AtMost(1.0 + NEAR),
        value: Value::Once(|r| best_over_ideal(r, POLL_LATENCY_US, CHEAP_US)),
        explanation: |seeds| broadcast_costs(seeds),
    },
    FineGrainClaimSpec {
        id: "f69",
        place: Section("5", None),
        statement: "cheap messages make a large poll less severe (8 over 2: at 100 µs of CPU an inquiry, over that at 10 µs)",
        paper: None,
        paper_text: "not as severe",
        unit: "×",
        rule: AHEAD,
        value: Value::Once(|r| Some(eight_over_two(r, DEAR_US)? / eight_over_two(r, CHEAP_US)?)),
        explanation: |seeds| {
            let of = |cpu_us| mean(seeds, |r| eight_over_two(r, cpu_us)).unwrap_or(f64::NAN);
            format!(
                "A poll of 8 takes {:.2} times as long as one of 2 at 100 µs, {:.2} times at 10 µs.",
                of(DEAR_US),
                of(CHEAP_US)
            )
        },
    },
    FineGrainClaimSpec {
        id: "f39",
        place: Section("2.2", None),
        statement: "drawn intervals are important: equal ones, of all servers at once, are slower (Poisson/Exp, 90 %, the largest \
                    ratio of the intervals)",
        paper: None,
        paper_text: "important",
        unit: "×",
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: Value::Once(|r| most(INTERVALS_US.map(|interval_us| fixed_over_drawn(r, interval_us)))),
        explanation: |seeds| fixed_words(seeds),
    },
    FineGrainClaimSpec {
        id: "f68",
        place: Section("1.1", None),
        statement: "of service times with a low variance the distribution does not matter: a poll of two gains as much over random with \
                    Weibull as with gamma distributions (Fine-Grain, 90 %, the first gain over the second)",
        paper: Some(1.0),
        paper_text: "low variance",
        unit: "×",
        rule: Rule::Within(NEAR),
        value: Value::Once(|r| Some(gain_of_two(r, Grain::FineWeibull)? / gain_of_two(r, Grain::Fine)?)),
        explanation: |seeds| {
            let of = |grain| mean(seeds, |r| gain_of_two(r, grain)).unwrap_or(f64::NAN);
            format!(
                "Random over a poll of two: {:.2} with Weibull, {:.2} with gamma distributions.",
                of(Grain::FineWeibull),
                of(Grain::Fine)
            )
        },
    },
];

/// What broadcasts reach by the CPU time of an announcement.
pub(super) fn broadcast_costs(seeds: &[FineGrainResults]) -> String {
    let of = |cpu_us: u32| {
        let best = mean(seeds, |r| best_over_ideal(r, POLL_LATENCY_US, cpu_us)).unwrap_or(f64::NAN);
        format!("{best:.2} at {cpu_us} µs")
    };
    let two = mean(seeds, |r| r.over_ideal(FineGrainRun::polled(Grain::Fine, 90, 2))).unwrap_or(f64::NAN);
    format!(
        "Broadcast over ideal at the best interval, by the CPU time of an announcement at its server: {}. A poll of two whose \
         inquiries cost nothing: {two:.2}.",
        super::plan::SWEEP_CPU_US.map(of).join(", ")
    )
}

/// Equal intervals over drawn ones, for each interval.
pub(super) fn fixed_words(seeds: &[FineGrainResults]) -> String {
    let of = |interval_us: u32| {
        let ratio = mean(seeds, |r| fixed_over_drawn(r, interval_us)).unwrap_or(f64::NAN);
        format!("{ratio:.2} at {} ms", f64::from(interval_us) / 1e3)
    };
    format!(
        "Response times with equal intervals over those with drawn ones: {}.",
        INTERVALS_US.map(of).join(", ")
    )
}
