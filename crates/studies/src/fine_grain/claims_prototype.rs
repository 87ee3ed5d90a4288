//! Claims of sections 3.2, 4.1 and 4.2 on the prototype: figure 6 and table 2, by real measurement.

use plimsoll_report::{Claim, Measured};

use super::improvement::{self, MeanTimes};
use super::plan::{Grain, PROTOTYPE_FIGURE};
use super::prototype::{ServiceChoice, ServicePrototype, ServiceRuns, mean_with_error};
use super::results::{least, most};
use crate::judge::PaperReference::{Figure, Section};
use crate::judge::{
    AHEAD, CLEARLY_MORE, GREATLY, MATCHES, MeasuredClaim, NEAR, PaperReference, Rule, SLIGHTLY_MORE,
};

/// The load of table 2, and of the sentences on figure 6.
pub(super) const BUSY: u32 = 90;

const IN_FIGURE: PaperReference = Figure(PROTOTYPE_FIGURE);
const IN_TABLE: PaperReference = Section("4.2", Some(PROTOTYPE_FIGURE));

/// The workloads of which the paper says that they confirm the simulation.
const CONFIRMING: [Grain; 2] = [Grain::Medium, Grain::PoissonExp];

pub(super) fn polled(size: u32) -> ServiceChoice {
    ServiceChoice::Polled { size, discards: false }
}

pub(super) const DISCARDING: ServiceChoice = ServiceChoice::Polled { size: 3, discards: true };

/// A claim on the prototype.
pub(super) struct PrototypeClaimSpec {
    pub(super) id: &'static str,
    pub(super) place: PaperReference,
    pub(super) statement: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) paper_text: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    pub(super) value: fn(&ServiceRuns) -> Option<f64>,
    /// Shown when the claim does not hold.
    pub(super) explanation: fn(&ServicePrototype) -> String,
}

impl PrototypeClaimSpec {
    pub(super) fn measure(&self, prototype: &ServicePrototype) -> Option<Claim> {
        let of_seed = |runs: &ServiceRuns| {
            let value = (self.value)(runs).filter(|value| value.is_finite())?;
            Some(Measured {
                workload: "table 1, in real time".to_owned(),
                seed: runs.seed,
                condition: String::new(),
                value,
            })
        };
        let finding = MeasuredClaim {
            id: self.id,
            place: self.place,
            statement: self.statement,
            paper: self.paper,
            paper_text: self.paper_text,
            unit: self.unit,
            rule: self.rule,
            measured: prototype.seeds.iter().filter_map(of_seed).collect(),
            explanation: (self.explanation)(prototype),
        };
        finding.claim()
    }
}

/// Every claim that was measured.
pub(super) fn claims(prototype: &ServicePrototype) -> Vec<Claim> {
    SPECS.iter().chain(TABLE_2).filter_map(|spec| spec.measure(prototype)).collect()
}

/// Mean response time of one choice over that of another at 90 %.
fn ratio(p: &ServiceRuns, grain: Grain, one: ServiceChoice, other: ServiceChoice) -> Option<f64> {
    Some(p.response_s(grain, BUSY, one)? / p.response_s(grain, BUSY, other)?)
}

/// What asking 8 gains over asking two, as a share of what asking two gains over asking nobody.
fn further_gain(p: &ServiceRuns, grain: Grain) -> Option<f64> {
    let of = |choice| p.response_s(grain, BUSY, choice);
    let (random, two) = (of(ServiceChoice::Random)?, of(polled(2))?);
    Some((two - of(polled(8))?) / (random - two))
}

/// The best of some poll sizes, of those that were measured.
fn best_s(p: &ServiceRuns, grain: Grain, sizes: &[u32]) -> Option<f64> {
    let responses = sizes.iter().filter_map(|&size| p.response_s(grain, BUSY, polled(size)));
    responses.min_by(f64::total_cmp)
}

/// Those of some values that were measured, if any.
fn of_measured(values: impl IntoIterator<Item = Option<f64>>) -> impl Iterator<Item = Option<f64>> {
    values.into_iter().filter(Option::is_some)
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

/// Improvement in per cent by discarding slow answers of polls of three, with the polling time or without it.
pub(super) fn improvement(p: &ServiceRuns, grain: Grain, with_polling: bool) -> Option<f64> {
    let times = |choice| {
        let point = p.point(grain, BUSY, choice)?;
        Some(MeanTimes { response_s: point.response_s, polling_s: point.asking_s })
    };
    Some(improvement::improvement(times(polled(3))?, times(DISCARDING)?, with_polling))
}

/// The mean of that improvement over the seeds, with its standard error: both runs of a seed have the same accesses.
pub(super) fn improvement_words(p: &ServicePrototype, grain: Grain, with_polling: bool) -> String {
    let of_seeds: Vec<f64> =
        p.seeds.iter().filter_map(|runs| improvement(runs, grain, with_polling)).collect();
    match mean_with_error(&of_seeds) {
        (mean, _) if mean.is_nan() => "–".to_owned(),
        (mean, error) if error.is_nan() => format!("{mean:.1}"),
        (mean, error) => format!("{mean:.1} ± {error:.1}"),
    }
}

fn asking_ms(p: &ServiceRuns, grain: Grain, choice: ServiceChoice) -> Option<f64> {
    Some(1e3 * p.point(grain, BUSY, choice)?.asking_s)
}

/// Response and polling times at 90 % of all ways of choosing.
fn times(prototype: &ServicePrototype) -> String {
    let p = &prototype.means();
    let of = |grain: Grain| {
        let at = p.points.iter().filter(|point| point.grain == grain && point.load_percent == BUSY);
        let words = at.map(|point| {
            format!(
                "{} {:.1} ± {:.1} ms (choice {:.2} ms)",
                point.choice.words(),
                1e3 * point.response_s,
                1e3 * point.response_error_s,
                1e3 * point.asking_s
            )
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| format!("{}: {}", grain.title(), words.join(", ")))
    };
    let all: Vec<String> = Grain::PAPER.into_iter().filter_map(of).collect();
    format!("Mean response times at 90 %, with standard errors. {}.", all.join(". "))
}

/// Why this cluster's polls cost less than the paper's.
fn cheaper_polls(prototype: &ServicePrototype) -> String {
    let p = &prototype.means();
    let share = |choice| {
        let point = p.point(Grain::Fine, BUSY, choice)?;
        Some(100.0 * point.asking_s / point.response_s)
    };
    let eight = share(polled(8)).unwrap_or(f64::NAN);
    format!(
        "Polls of 8 take {eight:.0} % of the response time here: an inquiry takes {:.0} µs between idle nodes, where the paper's took \
         290 µs, and its late answers are those of polls of three, to which they are calibrated; that of each inquiry may have grown \
         with their number on the paper's machines, whose CPUs worked for services and inquiries alike, and sleep does not. {}",
        prototype.round_trip_us,
        times(prototype)
    )
}

pub(super) fn discarding(prototype: &ServicePrototype) -> String {
    let p = &prototype.means();
    let of = |grain: Grain| {
        let (all, kept) = (asking_ms(p, grain, polled(3))?, asking_ms(p, grain, DISCARDING)?);
        Some(format!(
            "{}: the improvement is {} %, and {} % without the polling time, which falls from {all:.2} to {kept:.2} ms",
            grain.title(),
            improvement_words(prototype, grain, true),
            improvement_words(prototype, grain, false)
        ))
    };
    let all: Vec<String> = Grain::PAPER.into_iter().filter_map(of).collect();
    format!(
        "{}. Errors are standard errors over the seeds; what is smaller than twice them is not told from nothing.",
        all.join("; ")
    )
}

const SPECS: &[PrototypeClaimSpec] = &[
    PrototypeClaimSpec {
        id: "f40",
        place: IN_FIGURE,
        statement: "Medium-Grain and Poisson/Exp confirm the simulation: a poll of two is much better than random (90 %, the \
                    lower ratio)",
        paper: None,
        paper_text: "largely confirm",
        unit: "×",
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |p| least(CONFIRMING.map(|grain| ratio(p, grain, ServiceChoice::Random, polled(2)))),
        explanation: times,
    },
    PrototypeClaimSpec {
        id: "f41",
        place: IN_FIGURE,
        statement: "and larger polls give little more (90 %: gain of 8 over 2, of that of 2 over random; the larger)",
        paper: None,
        paper_text: "largely confirm",
        unit: "",
        rule: Rule::AtMost(1.0 / GREATLY),
        value: |p| most(CONFIRMING.map(|grain| further_gain(p, grain))),
        explanation: times,
    },
    PrototypeClaimSpec {
        id: "f42",
        place: IN_FIGURE,
        statement: "for the Fine-Grain trace a poll of 8 is far worse than smaller polls (90 %, over the worst of them)",
        paper: None,
        paper_text: "far worse",
        unit: "×",
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |p| {
            let smaller = [2, 3, 4].map(|size| ratio(p, Grain::Fine, polled(8), polled(size)));
            finite(of_measured(smaller).flatten().fold(f64::INFINITY, f64::min))
        },
        explanation: cheaper_polls,
    },
    PrototypeClaimSpec {
        id: "f43",
        place: IN_FIGURE,
        statement: "and even slightly worse than random (90 %)",
        paper: None,
        paper_text: "slightly worse",
        unit: "×",
        rule: SLIGHTLY_MORE,
        value: |p| ratio(p, Grain::Fine, polled(8), ServiceChoice::Random),
        explanation: cheaper_polls,
    },
    PrototypeClaimSpec {
        id: "f44",
        place: IN_FIGURE,
        statement: "a small poll suffices: 2 or 3 is as good as any larger one (90 %, the largest ratio of the workloads)",
        paper: None,
        paper_text: "sufficient",
        unit: "×",
        rule: Rule::AtMost(1.0 + MATCHES),
        value: |p| {
            let of = |grain| Some(best_s(p, grain, &[2, 3])? / best_s(p, grain, &[4, 8])?);
            finite(of_measured(Grain::PAPER.map(of)).flatten().fold(f64::NEG_INFINITY, f64::max))
        },
        explanation: cheaper_polls,
    },
    PrototypeClaimSpec {
        id: "f45",
        place: IN_FIGURE,
        statement: "a larger poll takes longer (90 %, polling time of 8 over that of 2; the least of the workloads)",
        paper: None,
        paper_text: "longer",
        unit: "×",
        rule: AHEAD,
        value: |p| {
            let of = |grain| Some(asking_ms(p, grain, polled(8))? / asking_ms(p, grain, polled(2))?);
            finite(of_measured(Grain::PAPER.map(of)).flatten().fold(f64::INFINITY, f64::min))
        },
        explanation: times,
    },
    PrototypeClaimSpec {
        id: "f46",
        place: IN_FIGURE,
        statement: "a poll of two is better than random at every load that was measured (the least ratio)",
        paper: None,
        paper_text: "largely confirm",
        unit: "×",
        rule: AHEAD,
        value: |p| {
            let of = |(grain, load): (Grain, u32)| {
                Some(
                    p.response_s(grain, load, ServiceChoice::Random)?
                        / p.response_s(grain, load, polled(2))?,
                )
            };
            let every = p.loads().into_iter().flat_map(|load| Grain::PAPER.map(|grain| (grain, load)));
            finite(every.filter_map(of).fold(f64::INFINITY, f64::min))
        },
        explanation: times,
    },
];

/// A figure of table 2: an improvement in per cent, or a time in ms.
macro_rules! figure {
    ($id:literal, $statement:literal, $paper:literal, $text:literal, $unit:literal, $rule:expr, $value:expr) => {
        PrototypeClaimSpec {
            id: $id,
            place: IN_TABLE,
            statement: $statement,
            paper: Some($paper),
            paper_text: $text,
            unit: $unit,
            rule: $rule,
            value: $value,
            explanation: discarding,
        }
    };
}

/// A time that is about the paper's: the calibration fixes two points of a profile, not its mean.
const fn about(ms: f64) -> Rule {
    Rule::Between(ms / GREATLY, ms * GREATLY)
}

/// Improvements by the words of section 4.2: "sizable" is more than the 1 % below which runs are as good as equal, "slight" is less.
const TABLE_2: &[PrototypeClaimSpec] = &[
    figure!(
        "f50",
        "discarding slow answers improves the Fine-Grain trace (polls of 3, 90 %)",
        8.3,
        "8.3 %",
        "%",
        Rule::MoreThan(1.0),
        |p| improvement(p, Grain::Fine, true)
    ),
    figure!("f51", "also without the polling time", 5.2, "5.2 %", "%", Rule::MoreThan(0.0), |p| improvement(
        p,
        Grain::Fine,
        false
    )),
    figure!("f52", "and Poisson/Exp less", 3.2, "3.2 %", "%", Rule::Between(1.0, 8.3), |p| improvement(
        p,
        Grain::PoissonExp,
        true
    )),
    figure!("f53", "also without the polling time", 1.2, "1.2 %", "%", Rule::MoreThan(0.0), |p| improvement(
        p,
        Grain::PoissonExp,
        false
    )),
    figure!(
        "f54",
        "and the Medium-Grain trace hardly or not at all",
        -0.4,
        "−0.4 %",
        "%",
        Rule::Between(-1.0, 1.0),
        |p| improvement(p, Grain::Medium, true)
    ),
    figure!("f55", "nor without the polling time", -0.9, "−0.9 %", "%", Rule::Between(-2.0, 1.0), |p| {
        improvement(p, Grain::Medium, false)
    }),
    figure!("f56", "polls of three take 2.7 ms (Fine-Grain, 90 %)", 2.7, "2.7 ms", "ms", about(2.7), |p| {
        asking_ms(p, Grain::Fine, polled(3))
    }),
    figure!("f57", "and 1.1 ms where slow answers are discarded", 1.1, "1.1 ms", "ms", about(1.1), |p| {
        asking_ms(p, Grain::Fine, DISCARDING)
    }),
    figure!("f58", "2.7 ms with Poisson/Exp", 2.7, "2.7 ms", "ms", about(2.7), |p| asking_ms(
        p,
        Grain::PoissonExp,
        polled(3)
    )),
    figure!("f59", "and 1.1 ms", 1.1, "1.1 ms", "ms", about(1.1), |p| asking_ms(
        p,
        Grain::PoissonExp,
        DISCARDING
    )),
    figure!("f60", "2.6 ms with the Medium-Grain trace", 2.6, "2.6 ms", "ms", about(2.6), |p| asking_ms(
        p,
        Grain::Medium,
        polled(3)
    )),
    figure!("f61", "and 1.0 ms", 1.0, "1.0 ms", "ms", about(1.0), |p| asking_ms(
        p,
        Grain::Medium,
        DISCARDING
    )),
    figure!(
        "f70",
        "discarding cuts those polls short that take longer than 10 ms (Fine-Grain, 90 %)",
        8.1,
        "8.1 %",
        "%",
        Rule::Within(NEAR),
        |p| Some(100.0 * p.point(Grain::Fine, BUSY, DISCARDING)?.over_10_ms)
    ),
];

/// Of all claims.
#[cfg(test)]
pub(super) fn ids() -> Vec<&'static str> {
    SPECS.iter().chain(TABLE_2).chain(super::calibration_prototype::SPECS).map(|spec| spec.id).collect()
}
