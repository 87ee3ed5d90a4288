//! Claims of section 2.1, on the age of load information, and the calibration of slow answers.

use plimsoll_report::{Claim, Measured};

use super::plan::{DISCARD_MS, FineGrainRun, Grain};
use super::results::{FineGrainResults, least, most};
use super::rule::{FineGrainClaimSpec, Value, unexplained};
use super::theory;
use crate::judge::PaperReference::{Figure, Section};
use crate::judge::{AHEAD, MATCHES, MeasuredClaim, NEAR, Rule};

/// The greatest age, at which two queue lengths have nothing to do with one another any more.
const OLD: f64 = 200.0;

pub(super) const SPECS: &[FineGrainClaimSpec] = &[
    FineGrainClaimSpec {
        id: "f1",
        place: Figure(2),
        statement: "the inaccuracy of an old index is 2ρ/(1−ρ²) with Poisson/Exp at 50 % (requests)",
        paper: Some(4.0 / 3.0),
        paper_text: "1.33",
        unit: "",
        rule: Rule::Within(MATCHES),
        value: Value::Once(|r| r.inaccuracy(Grain::PoissonExp, 50, OLD)),
        explanation: unexplained,
    },
    FineGrainClaimSpec {
        id: "f2",
        place: Figure(2),
        statement: "at 50 % it reaches that bound quickly (after 10 service times, over the bound)",
        paper: None,
        paper_text: "quickly",
        unit: "×",
        // "Reaches" is "comes near"; the paper's axis ends at a hundred service times, of which ten are the first tenth.
        rule: Rule::AtLeast(1.0 - NEAR),
        value: Value::Once(|r| {
            Some(r.inaccuracy(Grain::PoissonExp, 50, 10.0)? / theory::inaccuracy_bound(0.5))
        }),
        explanation: unexplained,
    },
    FineGrainClaimSpec {
        id: "f3",
        place: Figure(2),
        statement: "at 90 % the error is around 3 after 10 service times (the workload nearest to it)",
        paper: Some(3.0),
        paper_text: "around 3",
        unit: "",
        // "Around" a figure that was read off a drawn curve: what is near it. The sentence names no workload.
        rule: Rule::Within(NEAR),
        value: Value::Once(|r| {
            let values = Grain::PAPER.map(|grain| r.inaccuracy(grain, 90, 10.0));
            values.into_iter().flatten().min_by(|a, b| (a - 3.0).abs().total_cmp(&(b - 3.0).abs()))
        }),
        explanation: |seeds| {
            let of = |grain| {
                let values = seeds.iter().filter_map(|r| r.inaccuracy(grain, 90, 10.0));
                let values: Vec<String> = values.map(|value| format!("{value:.2}")).collect();
                format!("{}: {}", Grain::title(grain), values.join(", "))
            };
            format!(
                "After 10 service times the error is {}. It grows with the deviation of the service times, of which table 1 gives \
                 mean and deviation alone.",
                Grain::PAPER.map(of).join("; ")
            )
        },
    },
    FineGrainClaimSpec {
        id: "f4",
        place: Figure(2),
        statement: "it is much more significant at 90 % than at 50 % (after 10 service times; the least ratio of the workloads)",
        paper: None,
        paper_text: "much more",
        unit: "×",
        // "Much more" is told in multiples: twice.
        rule: Rule::AtLeast(2.0),
        value: Value::Once(|r| {
            least(
                Grain::PAPER
                    .map(|grain| Some(r.inaccuracy(grain, 90, 10.0)? / r.inaccuracy(grain, 50, 10.0)?)),
            )
        }),
        explanation: unexplained,
    },
    FineGrainClaimSpec {
        id: "f5",
        place: Figure(2),
        statement: "at 90 % it is still growing after 10 service times (at 50 over at 10; the least ratio)",
        paper: None,
        paper_text: "drawn",
        unit: "×",
        rule: AHEAD,
        value: Value::Once(|r| {
            least(
                Grain::PAPER
                    .map(|grain| Some(r.inaccuracy(grain, 90, 50.0)? / r.inaccuracy(grain, 90, 10.0)?)),
            )
        }),
        explanation: unexplained,
    },
    FineGrainClaimSpec {
        id: "f6",
        place: Figure(2),
        statement: "for Poisson/Exp the bound is one: no age exceeds it (the largest inaccuracy at 50 %, over the bound)",
        paper: None,
        paper_text: "upper bound",
        unit: "×",
        // What a sampled mean of a whole run may exceed its expectation by: less than what curves can be told apart by.
        rule: Rule::AtMost(1.0 + MATCHES),
        value: Value::Once(|r| {
            let of =
                |age: &f64| Some(r.inaccuracy(Grain::PoissonExp, 50, *age)? / theory::inaccuracy_bound(0.5));
            most(super::results::AGES.iter().map(of))
        }),
        explanation: unexplained,
    },
];

/// The profile of slow answers, to which the simulation is calibrated.
pub(super) fn calibration(seeds: &[FineGrainResults]) -> Vec<Claim> {
    let rows = [
        ("c1", "polls of three not completed within 10 ms, 90 % (%)", DISCARD_MS, 8.1, "8.1 %"),
        ("c2", "polls of three not completed within 20 ms, 90 % (%)", 2 * DISCARD_MS, 5.6, "5.6 %"),
    ];
    let one = |(id, statement, discard_ms, paper, paper_text)| {
        let run = FineGrainRun::late(Grain::Fine, 3, discard_ms);
        let measured = seeds.iter().filter_map(|r| {
            let traffic = r.runs.get(&run)?.load_traffic.as_ref()?;
            let value = 100.0 * traffic.polls_cut_short as f64 / traffic.polls as f64;
            Some(Measured {
                workload: "fine_grain".to_owned(),
                seed: r.seed,
                condition: String::new(),
                value,
            })
        });
        let finding = MeasuredClaim {
            id,
            place: Section("3.2", None),
            statement,
            paper: Some(paper),
            paper_text,
            unit: "%",
            rule: Rule::Within(MATCHES),
            measured: measured.collect(),
            explanation: String::new(),
        };
        finding.claim()
    };
    rows.into_iter().filter_map(one).collect()
}
