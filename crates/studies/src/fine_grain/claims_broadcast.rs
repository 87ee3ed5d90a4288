//! Claims of section 2.2, on loads that back-ends announce.

use super::plan::{CLIENTS, FineGrainRun, Grain, INTERVALS_US, SERVERS};
use super::results::{FineGrainResults, least, most};
use super::rule::{BroadcastReading, FineGrainClaimSpec, Value, unexplained};
use crate::judge::PaperReference::{Figure, Section};
use crate::judge::{CLEARLY_MORE, NEAR, Rule};

/// The longest interval of figure 3, and the shortest.
const LONGEST_US: u32 = INTERVALS_US[5];
const SHORTEST_US: u32 = INTERVALS_US[0];

fn slowed(
    r: &FineGrainResults,
    grain: Grain,
    load: u32,
    interval_us: u32,
    of: BroadcastReading,
) -> Option<f64> {
    r.over_ideal(FineGrainRun::broadcast(grain, load, interval_us, of))
}

/// Mean of the seeds under each condition.
fn by_condition(
    seeds: &[FineGrainResults],
    value: fn(&FineGrainResults, BroadcastReading) -> Option<f64>,
) -> String {
    let one = |condition: BroadcastReading| {
        let values: Vec<f64> = seeds.iter().filter_map(|r| value(r, condition)).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let (clients, counts) = condition;
        let counting = if counts { "counting" } else { "not counting" };
        format!("{mean:.2} with {clients} client{} {counting}", if clients == 1 { "" } else { "s" })
    };
    super::plan::READINGS.map(one).join(", ")
}

/// An order of magnitude: on a logarithmic scale nearer to ten times than to once or a hundred times.
const ORDER_OF_MAGNITUDE: Rule = Rule::Between(3.162, 31.62);

/// Requests that arrive in the shortest interval at 90 %.
fn arriving(grain: Grain) -> f64 {
    let run = FineGrainRun::ideal(grain, 90);
    0.9 * SERVERS as f64 / run.service_s() * f64::from(SHORTEST_US) / 1e6
}

const OPEN: &str = "The paper says neither how many clients figure 3 has nor whether they count what they send between two \
                    announcements";

pub(super) const SPECS: &[FineGrainClaimSpec] = &[
    FineGrainClaimSpec {
        id: "f7",
        place: Figure(3),
        statement: "announcing every second at 90 % is an order of magnitude slower than ideal, Poisson/Exp",
        paper: Some(10.0),
        paper_text: "order of magnitude",
        unit: "×",
        rule: ORDER_OF_MAGNITUDE,
        value: Value::EachReading(|r, c| slowed(r, Grain::PoissonExp, 90, LONGEST_US, c)),
        explanation: |seeds| {
            let value = |r: &FineGrainResults, c| slowed(r, Grain::PoissonExp, 90, LONGEST_US, c);
            format!("{OPEN}. It is {}.", by_condition(seeds, value))
        },
    },
    FineGrainClaimSpec {
        id: "f8",
        place: Figure(3),
        statement: "so it is for the Fine-Grain trace",
        paper: Some(10.0),
        paper_text: "order of magnitude",
        unit: "×",
        rule: ORDER_OF_MAGNITUDE,
        value: Value::EachReading(|r, c| slowed(r, Grain::Fine, 90, LONGEST_US, c)),
        explanation: |seeds| {
            let value = |r: &FineGrainResults, c| slowed(r, Grain::Fine, 90, LONGEST_US, c);
            format!("{OPEN}. It is {}.", by_condition(seeds, value))
        },
    },
    FineGrainClaimSpec {
        id: "f9",
        place: Figure(3),
        statement: "at 50 % the degradation is less severe, up to 3 times (the largest of all workloads and intervals)",
        paper: Some(3.0),
        paper_text: "up to 3",
        unit: "×",
        // "Up to" names the end of the drawn curves: within 15 % of it, or below.
        rule: Rule::AtMost(3.45),
        value: Value::EachReading(|r, c| {
            most(
                Grain::PAPER
                    .into_iter()
                    .flat_map(|grain| INTERVALS_US.map(|interval| slowed(r, grain, 50, interval, c))),
            )
        }),
        explanation: |seeds| {
            let value =
                |r: &FineGrainResults, c| most(Grain::PAPER.map(|grain| slowed(r, grain, 50, LONGEST_US, c)));
            format!("{OPEN}. At intervals of a second it is {}.", by_condition(seeds, value))
        },
    },
    FineGrainClaimSpec {
        id: "f10",
        place: Figure(3),
        statement: "but still significant (the largest at 50 %, intervals of a second)",
        paper: None,
        paper_text: "significant",
        unit: "×",
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: Value::EachReading(|r, c| most(Grain::PAPER.map(|g| slowed(r, g, 50, LONGEST_US, c)))),
        explanation: unexplained,
    },
    FineGrainClaimSpec {
        id: "f11",
        place: Figure(3),
        statement: "announcing every 31.25 ms is close to ideal (90 %, the largest of the workloads)",
        paper: None,
        paper_text: "close",
        unit: "×",
        rule: Rule::AtMost(1.0 + NEAR),
        value: Value::EachReading(|r, c| most(Grain::PAPER.map(|g| slowed(r, g, 90, SHORTEST_US, c)))),
        explanation: |seeds| {
            let of = |grain: Grain| {
                let values: Vec<f64> = super::plan::READINGS
                    .into_iter()
                    .flat_map(|c| seeds.iter().filter_map(move |r| slowed(r, grain, 90, SHORTEST_US, c)))
                    .collect();
                let (low, high) = values.iter().fold((f64::INFINITY, 0.0), |(low, high), &value| {
                    (f64::min(low, value), f64::max(high, value))
                });
                format!("{low:.2} to {high:.2} for {}", grain.title())
            };
            format!(
                "{}. In 31.25 ms {:.0} requests of the Fine-Grain trace arrive, {:.0} of Poisson/Exp and {:.0} of the Medium-Grain \
                 trace, and all clients send them to the servers that seemed least loaded.",
                Grain::PAPER.map(of).join(", "),
                arriving(Grain::Fine),
                arriving(Grain::PoissonExp),
                arriving(Grain::Medium)
            )
        },
    },
    FineGrainClaimSpec {
        id: "f12",
        place: Figure(3),
        statement: "finer services suffer more (a second at 90 %: Fine-Grain over Medium-Grain)",
        paper: None,
        paper_text: "fine-grain",
        unit: "×",
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: Value::EachReading(|r, c| {
            Some(slowed(r, Grain::Fine, 90, LONGEST_US, c)? / slowed(r, Grain::Medium, 90, LONGEST_US, c)?)
        }),
        explanation: unexplained,
    },
    FineGrainClaimSpec {
        id: "f13",
        place: Figure(3),
        statement: "flocking aggravates it: a client that does not count what it sends is slower than one that does (a second, \
                    90 %, 6 clients, the least of the workloads)",
        paper: None,
        paper_text: "severely",
        unit: "×",
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: Value::Once(|r| {
            least(Grain::PAPER.map(|grain| {
                Some(
                    slowed(r, grain, 90, LONGEST_US, (CLIENTS, false))?
                        / slowed(r, grain, 90, LONGEST_US, (CLIENTS, true))?,
                )
            }))
        }),
        explanation: unexplained,
    },
    FineGrainClaimSpec {
        id: "f14",
        place: Section("2.2", Some(3)),
        statement: "16 servers that announce every 31.25 ms force each client to take a message every 2 ms (ms)",
        paper: Some(2.0),
        paper_text: "2 ms",
        unit: "ms",
        rule: Rule::Within(0.05),
        value: Value::Once(|r| {
            let run = FineGrainRun::broadcast(Grain::Fine, 90, SHORTEST_US, (CLIENTS, false));
            Some(1000.0 * f64::from(CLIENTS) / r.messages_rps(run)?)
        }),
        explanation: unexplained,
    },
];

const _: () = assert!(SERVERS == 16, "claim f14 speaks of sixteen servers");
