//! The claims about another day of the World Cup, 30 June 1998 (`june_30.rs`): whether the paper's day is representative.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::claims::EVEN;
use super::day::{Minute, PEAK_S, QUIET_S};
use super::explain::{AdaptLoadExplanation, JSQ_SMALL, LARD_SMALL, OTHER_DRIFT};
use super::measures::{DAY, uneven};
use super::plan::{ADAPTLOAD, DayRun, JSQ, LARD_BEST};
use super::results::AdaptLoadResults;
use super::rule::PaperReference::Section;
use super::rule::{AHEAD, AdaptLoadClaimSpec, EQUAL, GREATLY, Over, Rule};

/// The mean size of a request in quiet hours over that at the peak.
fn larger_when_quiet(r: &AdaptLoadResults) -> Option<f64> {
    let mean_bytes = |period| Minute::mean_bytes(&r.day.between(period));
    let peak = mean_bytes(PEAK_S);
    (peak > 0.0).then(|| mean_bytes(QUIET_S) / peak)
}

pub(super) const CALIBRATION: &[AdaptLoadClaimSpec] = &[
    AdaptLoadClaimSpec {
        id: "c22",
        place: Section("3", Some(2)),
        over: Over::Points,
        statement: "30 June: mean size of a request (the log's rows have 2,894 B, those of 24 June 3,983 B)",
        paper: Some(3724.34),
        paper_text: "3,724 B (in proportion to the log)",
        unit: "B",
        // As c7.
        rule: Rule::Within(EQUAL),
        value: |r| Some(r.day.mean_bytes()),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "c23",
        place: Section("3", Some(2)),
        over: Over::Points,
        statement: "30 June: requests are larger when arrivals are few (mean size from 35,000 to 45,000 s over that from 58,000 to 68,000 s; the log's rows)",
        paper: Some(1.63),
        paper_text: "4,143 over 2,539 B",
        unit: "×",
        // At the lower end requests are still clearly larger, by a fifth; the upper end is as far away.
        rule: Rule::Within(0.25),
        value: larger_when_quiet,
        explanation: OTHER_DRIFT,
    },
];

/// The paper's claims of its day that a day which it represents should share.
pub(super) const SPECS: &[AdaptLoadClaimSpec] = &[
    AdaptLoadClaimSpec {
        id: "a79",
        place: Section("3", Some(2)),
        over: Over::Day,
        statement: "24 June is representative: on 30 June, too, with caches of 5 % AdaptLoad outperforms JSQ by several orders of magnitude (slowdown, JSQ over AdaptLoad; as a4)",
        paper: None,
        paper_text: "representative",
        unit: "×",
        // As a4.
        rule: Rule::AtLeast(1_000.0),
        value: |r| r.ratio(JSQ, ADAPTLOAD, 5),
        explanation: JSQ_SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a80",
        place: Section("3", Some(2)),
        over: Over::Day,
        statement: "and performs similarly to LARD (AdaptLoad over LARD; as a5)",
        paper: None,
        paper_text: "representative",
        unit: "×",
        // As a5.
        rule: Rule::Between(1.0 / GREATLY, GREATLY),
        value: |r| r.ratio(ADAPTLOAD, LARD_BEST, 5),
        explanation: LARD_SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a81",
        place: Section("3", Some(2)),
        over: Over::Day,
        statement: "its gain over JSQ persists with caches of 15 % (JSQ over AdaptLoad; as a6)",
        paper: None,
        paper_text: "representative",
        unit: "×",
        // As a6.
        rule: AHEAD,
        value: |r| r.ratio(JSQ, ADAPTLOAD, 15),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a82",
        place: Section("3", Some(2)),
        over: Over::Points,
        statement: "the networks are evenly used under AdaptLoad (as a14)",
        paper: None,
        paper_text: "representative",
        unit: "",
        // As a14.
        rule: Rule::AtMost(EVEN),
        value: |r| uneven(r, ADAPTLOAD, DAY),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a83",
        place: Section("3", Some(2)),
        over: Over::Points,
        statement: "and AdaptLoad finds almost all files in caches of 15 % (as a21)",
        paper: Some(100.0),
        paper_text: "representative",
        unit: "%",
        // As a21.
        rule: Rule::AtLeast(95.0),
        value: |r| Some(100.0 * r.hit_ratio(DayRun::day(ADAPTLOAD, 15))?),
        explanation: AdaptLoadExplanation::None,
    },
];
