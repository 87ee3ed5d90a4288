//! Claims of section 2.4, on how messages and their CPU time scale: with one thing doubled, over what they were before.

use super::plan::{FineGrainRun, SCALED_WITH_LOAD, SCALING, ScalingCase, scaled_broadcast, scaled_polls};
use super::results::{FineGrainResults, mean};
use super::rule::{FineGrainClaimSpec, Value, unexplained};
use crate::judge::PaperReference::Section;
use crate::judge::{EQUAL, NEAR, Rule};

type OfRun = fn(&FineGrainResults, FineGrainRun) -> Option<f64>;

const MESSAGES: OfRun = FineGrainResults::messages_rps;
const SERVERS_CPU: OfRun = FineGrainResults::servers_cpu;

/// A figure of a run where one thing is doubled, over that of the first run.
fn scaled(
    r: &FineGrainResults,
    figure: OfRun,
    run: fn(ScalingCase) -> FineGrainRun,
    case: ScalingCase,
) -> Option<f64> {
    Some(figure(r, run(case))? / figure(r, run(SCALING[0]))?)
}

/// Response over ideal at the first case, and at twice the load with announcements twice as often.
fn kept_up(r: &FineGrainResults) -> [Option<f64>; 2] {
    [SCALING[0], SCALED_WITH_LOAD].map(|case| r.over_ideal(scaled_broadcast(case)))
}

/// A claim on something that is doubled, or not, when one thing is.
macro_rules! scaling {
    ($id:literal, $statement:literal, $paper:literal, $text:literal, $value:expr) => {
        FineGrainClaimSpec {
            id: $id,
            place: Section("2.4", None),
            statement: $statement,
            paper: Some($paper),
            paper_text: $text,
            unit: "×",
            rule: Rule::Within(EQUAL),
            value: Value::Once($value),
            explanation: unexplained,
        }
    };
}

pub(super) const SPECS: &[FineGrainClaimSpec] = &[
    scaling!("f15", "messages of broadcast scale with clients (twice as many)", 2.0, "linearly", |r| {
        scaled(r, MESSAGES, scaled_broadcast, SCALING[1])
    }),
    scaling!("f16", "and with servers (twice as many)", 2.0, "linearly", |r| {
        scaled(r, MESSAGES, scaled_broadcast, SCALING[2])
    }),
    scaling!(
        "f37",
        "and with the level of load, where their frequency does (twice as busy, twice as often)",
        2.0,
        "linearly",
        |r| scaled(r, MESSAGES, scaled_broadcast, SCALED_WITH_LOAD)
    ),
    FineGrainClaimSpec {
        id: "f38",
        place: Section("2.4", None),
        statement: "such a frequency copes with the load: broadcast stays as near to ideal (45 % and 62.5 ms, 90 % and 31.25 ms; \
                    response over ideal, the second over the first)",
        paper: None,
        paper_text: "to cope",
        unit: "×",
        rule: Rule::AtMost(1.0 + NEAR),
        value: Value::Once(|r| {
            let [before, after] = kept_up(r);
            Some(after? / before?)
        }),
        explanation: |seeds| {
            let of = |place: usize| mean(seeds, |r| kept_up(r)[place]).unwrap_or(f64::NAN);
            format!(
                "Announcing every 62.5 ms to 6 clients that do not count what they send takes {:.2} times as long as ideal at 45 %, and \
                 every 31.25 ms {:.2} times at 90 %: the frequency has to grow faster than the load.",
                of(0),
                of(1)
            )
        },
    },
    scaling!(
        "f17",
        "messages of random polling do not scale with clients (twice as many)",
        1.0,
        "not",
        |r| { scaled(r, MESSAGES, scaled_polls, SCALING[1]) }
    ),
    scaling!("f18", "but with servers (twice as many, each as busy)", 2.0, "linearly", |r| {
        scaled(r, MESSAGES, scaled_polls, SCALING[2])
    }),
    scaling!("f19", "and with the level of load (twice as busy)", 2.0, "linearly", |r| {
        scaled(r, MESSAGES, scaled_polls, SCALING[3])
    }),
    scaling!(
        "f62",
        "the CPU time of all servers for broadcast scales with servers",
        2.0,
        "as messages",
        |r| { scaled(r, SERVERS_CPU, scaled_broadcast, SCALING[2]) }
    ),
    scaling!("f63", "and with the level of load, where the frequency does", 2.0, "as messages", |r| {
        scaled(r, SERVERS_CPU, scaled_broadcast, SCALED_WITH_LOAD)
    }),
    scaling!("f64", "but not with clients: an announcement is sent once for all of them", 1.0, "–", |r| {
        scaled(r, SERVERS_CPU, scaled_broadcast, SCALING[1])
    }),
    scaling!("f65", "that of random polling does not scale with clients", 1.0, "as messages", |r| {
        scaled(r, SERVERS_CPU, scaled_polls, SCALING[1])
    }),
    scaling!("f66", "but with servers", 2.0, "as messages", |r| {
        scaled(r, SERVERS_CPU, scaled_polls, SCALING[2])
    }),
    scaling!("f67", "and with the level of load", 2.0, "as messages", |r| {
        scaled(r, SERVERS_CPU, scaled_polls, SCALING[3])
    }),
];
