//! The claims about CPU and disk speed, delay and replacement: figures 11 to 14, sections 3.1 and 4.4.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::explain::{
    EXPLAIN_CPU, EXPLAIN_CPU_LARD_R, EXPLAIN_DELAY, EXPLAIN_DELAY_RICE, EXPLAIN_DISKS, EXPLAIN_DISKS_LARD,
    EXPLAIN_LRU, LardExplanation,
};
use super::plan::{Variant, ibm, rice};
use super::results::{LARD, LARD_R, View, WRR, farthest};
use super::rule::PaperReference::{Figure, Section};
use super::rule::{ClaimConditions, EQUAL, GREATLY, LardClaimSpec, MATCHES, MILD, NEAR, Rule};

/// Throughput at a variant over that of the base setting.
fn gain(v: &View<'_>, strategy: &str, backends: usize, variant: Variant) -> Option<f64> {
    Some(v.rps_of(strategy, backends, variant)? / v.rps(strategy, backends)?)
}

pub(super) const SPECS: &[LardClaimSpec] = &[
    LardClaimSpec {
        id: "11a",
        place: Figure(11),
        statement: "WRR cannot benefit from added CPU (eight back-ends, four times the CPU, three times the cache)",
        paper: Some(1.0),
        paper_text: "no gain",
        unit: "×",
        // At all: the same bound as for the CPU alone (11b).
        rule: Rule::Within(MATCHES),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| gain(v, WRR, 8, Variant::Cpu(4)),
        explanation: EXPLAIN_CPU,
    },
    LardClaimSpec {
        id: "11b",
        place: Figure(11),
        statement: "WRR is bound by the disk: four times the CPU alone gain it nothing (eight back-ends)",
        paper: Some(1.0),
        paper_text: "no gain",
        unit: "×",
        // As 11a: the same words, "cannot benefit at all", of the CPU alone.
        rule: Rule::Within(MATCHES),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| gain(v, WRR, 8, Variant::CpuAlone(4)),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "12a",
        place: Figure(12),
        statement: "LARD/R capitalises on added CPU (sixteen back-ends, four times the CPU)",
        paper: None,
        paper_text: "gains",
        unit: "×",
        // The paper names no gain: our choice, far from the 5 % of WRR, which "cannot benefit at all" (11a).
        rule: Rule::AtLeast(1.5),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| gain(v, LARD_R, 16, Variant::Cpu(4)),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "12b",
        place: Figure(12),
        statement: "the advantage of LARD/R over LARD grows with CPU speed (sixteen back-ends, 4x against 1x)",
        paper: None,
        paper_text: "grows",
        unit: "pp",
        // "Increases" names no amount: the lead must grow by more than runs that are as good as equal differ by, 1 %.
        rule: Rule::MoreThan(100.0 * EQUAL),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| {
            let fast = v.rps_of(LARD_R, 16, Variant::Cpu(4))? / v.rps_of(LARD, 16, Variant::Cpu(4))?;
            Some(100.0 * (fast - v.ratio(LARD_R, LARD, 16)?))
        },
        explanation: EXPLAIN_CPU_LARD_R,
    },
    LardClaimSpec {
        id: "13a",
        place: Figure(13),
        statement: "WRR greatly benefits from multiple disks (sixteen back-ends, four disks)",
        paper: None,
        paper_text: "greatly",
        unit: "×",
        // "Greatly"; four disks can give four times at most.
        rule: Rule::AtLeast(GREATLY),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| gain(v, WRR, 16, Variant::Disks(4)),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "13b",
        place: Figure(13),
        statement: "with four disks and sixteen back-ends WRR comes within 15 % of LARD/R",
        paper: Some(85.0),
        paper_text: "85 % or more",
        unit: "%",
        // The paper's own bound: what is within 15 % has at least 85 %. To be ahead is no failure.
        rule: Rule::AtLeast(85.0),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| {
            Some(100.0 * v.rps_of(WRR, 16, Variant::Disks(4))? / v.rps_of(LARD_R, 16, Variant::Disks(4))?)
        },
        explanation: EXPLAIN_DISKS,
    },
    LardClaimSpec {
        id: "14a",
        place: Figure(14),
        statement: "a second disk gives LARD/R a mild gain (eight or sixteen, the one that departs most)",
        paper: None,
        paper_text: "mild",
        unit: "×",
        // "Gain": equality is none. "Mild" is the upper end.
        rule: Rule::Between(1.0 + EQUAL, MILD),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| {
            farthest(1.125, [8, 16].iter().filter_map(|&n| gain(v, LARD_R, n, Variant::Disks(2))).collect())
        },
        explanation: EXPLAIN_DISKS_LARD,
    },
    LardClaimSpec {
        id: "14b",
        place: Figure(14),
        statement: "further disks gain LARD/R nothing (four against two, sixteen back-ends)",
        paper: Some(1.0),
        paper_text: "no gain",
        unit: "×",
        // "Not any further benefit": as for the CPU (11a).
        rule: Rule::Within(MATCHES),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| Some(v.rps_of(LARD_R, 16, Variant::Disks(4))? / v.rps_of(LARD_R, 16, Variant::Disks(2))?),
        explanation: EXPLAIN_DISKS_LARD,
    },
    LardClaimSpec {
        id: "d1",
        place: Section("4.4", None),
        statement: "on the Rice trace the mean delay of LARD/R is below 25 % of WRR's",
        paper: Some(25.0),
        paper_text: "below 25 %",
        unit: "%",
        // The paper's own bound.
        rule: Rule::AtMost(25.0),
        family: rice,
        conditions: ClaimConditions::BackEnds(&[8, 16]),
        value: |v| {
            Some(100.0 * v.delay_s(LARD_R, v.condition.backends?)? / v.delay_s(WRR, v.condition.backends?)?)
        },
        explanation: EXPLAIN_DELAY_RICE,
    },
    LardClaimSpec {
        id: "d2",
        place: Section("4.4", None),
        statement: "on the IBM trace the mean delay of LARD/R is one half of WRR's",
        paper: Some(50.0),
        paper_text: "one half",
        unit: "%",
        // "One half" is said in words, without decimals: near it.
        rule: Rule::Within(NEAR),
        family: ibm,
        conditions: ClaimConditions::BackEnds(&[4, 8, 16]),
        value: |v| {
            Some(100.0 * v.delay_s(LARD_R, v.condition.backends?)? / v.delay_s(WRR, v.condition.backends?)?)
        },
        explanation: EXPLAIN_DELAY,
    },
    LardClaimSpec {
        id: "l1",
        place: Section("3.1", None),
        statement: "with LRU caches throughput is up to 30 % lower than with Greedy-Dual-Size (WRR and LARD/R on eight back-ends, the one that departs most)",
        paper: Some(30.0),
        paper_text: "up to 30 % lower",
        unit: "%",
        // "Up to 30 %" starts at nothing, so equality counts; higher throughput does not.
        rule: Rule::Between(0.0, 30.0),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| {
            let losses =
                [WRR, LARD_R].iter().filter_map(|s| Some(100.0 * (1.0 - gain(v, s, 8, Variant::Lru)?)));
            farthest(15.0, losses.collect())
        },
        explanation: EXPLAIN_LRU,
    },
    LardClaimSpec {
        id: "l2",
        place: Section("3.1", None),
        statement: "with LRU caches LARD/R over WRR stays much as it is with Greedy-Dual-Size (eight back-ends)",
        paper: Some(1.0),
        paper_text: "largely unaffected",
        unit: "×",
        // The paper reports ratios that differ by 15 % as different ones.
        rule: Rule::Within(NEAR),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| Some(gain(v, LARD_R, 8, Variant::Lru)? / gain(v, WRR, 8, Variant::Lru)?),
        explanation: EXPLAIN_LRU,
    },
];
