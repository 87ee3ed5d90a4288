//! Further claims of sections 4.1 and 8 that set one strategy against another.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::explain::{
    EXPLAIN_GMS_SHORT, EXPLAIN_LB, EXPLAIN_MISSES, EXPLAIN_REPLICA_IDLE, EXPLAIN_REPLICA_MISSES,
    LardExplanation,
};
use super::plan::{Family, Variant, ibm, rice};
use super::results::{GMS, LARD, LARD_R, LB_GC, WRR, farthest, max, min};
use super::rule::PaperReference::{Figure, Section};
use super::rule::{AHEAD, BEHIND, ClaimConditions, EQUAL, GREATLY, LardClaimSpec, NEAR, Rule};

fn rice_or_ibm(family: Family) -> bool {
    rice(family) || ibm(family)
}

pub(super) const SPECS: &[LardClaimSpec] = &[
    LardClaimSpec {
        id: "7l",
        place: Figure(7),
        statement: "LB/GC, too, has only a modest throughput advantage over WRR",
        paper: None,
        paper_text: "modest",
        unit: "×",
        // As for LB (7d).
        rule: Rule::Between(1.0 + EQUAL, GREATLY),
        family: rice,
        conditions: ClaimConditions::BackEnds(&[4, 8, 16]),
        value: |v| v.ratio(LB_GC, WRR, v.condition.backends?),
        explanation: EXPLAIN_LB,
    },
    LardClaimSpec {
        id: "8g",
        place: Figure(8),
        statement: "LARD misses about as little as LB/GC (LARD over LB/GC, the size that departs most)",
        paper: Some(1.0),
        paper_text: "close",
        unit: "×",
        // As 8e: the same sentence, of LARD.
        rule: Rule::Within(NEAR),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| farthest(1.0, v.over(2, |n| Some(v.miss_percent(LARD, n)? / v.miss_percent(LB_GC, n)?))),
        explanation: EXPLAIN_MISSES,
    },
    LardClaimSpec {
        id: "8h",
        place: Figure(8),
        statement: "LARD/R misses less than LARD for seven or more back-ends (largest ratio)",
        paper: None,
        paper_text: "lower",
        unit: "×",
        // "Lower" at every size from seven on: the largest ratio must be behind.
        rule: BEHIND,
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| max(v.over(7, |n| Some(v.miss_percent(LARD_R, n)? / v.miss_percent(LARD, n)?))),
        explanation: EXPLAIN_REPLICA_MISSES,
    },
    LardClaimSpec {
        id: "9e",
        place: Figure(9),
        statement: "LARD/R is idle less than LARD for seven or more back-ends (LARD less LARD/R, least)",
        paper: None,
        paper_text: "lower",
        unit: "pp",
        // As 9a: "lower" excludes equality, and idle times around 1 % leave no room for a margin of 1 pp.
        rule: Rule::MoreThan(0.0),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| min(v.over(7, |n| Some(v.idle_percent(LARD, n)? - v.idle_percent(LARD_R, n)?))),
        explanation: EXPLAIN_REPLICA_IDLE,
    },
    LardClaimSpec {
        id: "s1",
        place: Section("8", None),
        statement: "WRR/GMS falls short of LARD under all workloads (largest ratio, two back-ends or more)",
        paper: None,
        paper_text: "falls short",
        unit: "×",
        // "Falls short" under all workloads and at every size: the largest ratio must be behind.
        rule: BEHIND,
        family: rice_or_ibm,
        conditions: ClaimConditions::One,
        value: |v| max(v.over(2, |n| v.ratio(GMS, LARD, n))),
        explanation: EXPLAIN_GMS_SHORT,
    },
    LardClaimSpec {
        id: "s2",
        place: Section("8", Some(12)),
        statement: "the advantage of LARD over WRR grows with the disparity of CPU and disk speed (LARD over WRR, with four times the CPU and three times the cache over base)",
        paper: None,
        paper_text: "increase",
        unit: "×",
        // "Increase" names no amount: the lead must grow by more than runs differ by themselves.
        rule: AHEAD,
        family: rice,
        conditions: ClaimConditions::BackEnds(&[8, 16]),
        value: |v| {
            let lead = |variant| {
                let rps = |strategy| v.rps_of(strategy, v.condition.backends?, variant);
                Some(rps(LARD)? / rps(WRR)?)
            };
            Some(lead(Variant::Cpu(4))? / lead(Variant::Base)?)
        },
        explanation: LardExplanation::None,
    },
];
