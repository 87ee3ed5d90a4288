//! The claims about the IBM and chess traces and about hot targets: figure 10 and section 4.2.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::explain::{
    EXPLAIN_CHESS, EXPLAIN_HOT, EXPLAIN_IBM, EXPLAIN_IBM_FEW, EXPLAIN_IBM_GMS, EXPLAIN_IBM_MATCH,
    EXPLAIN_IBM_RATIO, LardExplanation,
};
use super::plan::{Family, hot, ibm};
use super::results::{GMS, LARD, LARD_R, View, WRR, farthest, max, min};
use super::rule::PaperReference::{Figure, Section};
use super::rule::{AHEAD, ClaimConditions, EQUAL, LardClaimSpec, MATCHES, NEAR, Rule};

fn chess(family: Family) -> bool {
    family == Family::Chess
}

/// Hot targets above 20 KB that take 10 to 60 % of the requests.
fn hot_and_large(family: Family) -> bool {
    matches!(family, Family::Hot { size_bytes, share_percent }
        if size_bytes > 20 * 1024 && (10..=60).contains(&share_percent))
}

/// One of the workloads with hot targets, to stand for all of them.
fn one_hot(family: Family) -> bool {
    family == Family::Hot { size_bytes: 40_960, share_percent: 20 }
}

/// Gain of LARD/R over LARD in per cent, on eight back-ends.
fn replication_gain(v: &View<'_>) -> Option<f64> {
    Some(100.0 * (v.ratio(LARD_R, LARD, 8)? - 1.0))
}

pub(super) const SPECS: &[LardClaimSpec] = &[
    LardClaimSpec {
        id: "10a",
        place: Figure(10),
        statement: "on the IBM trace LARD/R has slightly more than twice the throughput of WRR from four back-ends on",
        paper: Some(2.0),
        paper_text: "slightly more than 2 times",
        unit: "×",
        // Slightly more, of twice.
        rule: Rule::Between(2.0 * (1.0 + EQUAL), 2.0 * (1.0 + NEAR)),
        family: ibm,
        conditions: ClaimConditions::BackEnds(&[4, 8, 16]),
        value: |v| v.ratio(LARD_R, WRR, v.condition.backends?),
        explanation: EXPLAIN_IBM_RATIO,
    },
    LardClaimSpec {
        id: "10b",
        place: Figure(10),
        statement: "WRR/GMS comes within 15 % of LARD/R on sixteen back-ends",
        paper: Some(85.0),
        paper_text: "85 % or more",
        unit: "%",
        // The paper's own bound: what is within 15 % has at least 85 %. To be ahead is no failure.
        rule: Rule::AtLeast(85.0),
        family: ibm,
        conditions: ClaimConditions::One,
        value: |v| Some(100.0 * v.ratio(GMS, LARD_R, 16)?),
        explanation: EXPLAIN_IBM_GMS,
    },
    LardClaimSpec {
        id: "10c",
        place: Figure(10),
        statement: "LARD/R speeds up superlinearly up to four back-ends (least over two to four)",
        paper: None,
        paper_text: "superlinear",
        unit: "×",
        // As 7g: linear does not count, at any size.
        rule: AHEAD,
        family: ibm,
        conditions: ClaimConditions::One,
        value: |v| min(v.sized(LARD_R, 2..=4, |n| v.efficiency(LARD_R, 1, n))),
        explanation: EXPLAIN_IBM_FEW,
    },
    LardClaimSpec {
        id: "10d",
        place: Figure(10),
        statement: "and not beyond four (against four, largest)",
        paper: None,
        paper_text: "not superlinear",
        unit: "×",
        // "Only up to 4": what 10c calls superlinear does not agree. Less than linear does.
        rule: Rule::AtMost(1.0 + EQUAL),
        family: ibm,
        conditions: ClaimConditions::One,
        value: |v| max(v.sized(LARD_R, 5..=16, |n| v.efficiency(LARD_R, 4, n))),
        explanation: EXPLAIN_IBM,
    },
    LardClaimSpec {
        id: "10e",
        place: Figure(10),
        statement: "LARD/R matches LARD on the IBM trace (the size farthest from 1, two or more)",
        paper: Some(1.0),
        paper_text: "matches",
        unit: "×",
        // "Matches", in either direction, at the size farthest from it.
        rule: Rule::Within(MATCHES),
        family: ibm,
        conditions: ClaimConditions::One,
        value: |v| farthest(1.0, v.over(2, |n| v.ratio(LARD_R, LARD, n))),
        explanation: EXPLAIN_IBM_MATCH,
    },
    LardClaimSpec {
        id: "10f",
        place: Figure(10),
        statement: "throughput is much larger than on the Rice trace (LARD/R, eight back-ends)",
        paper: None,
        paper_text: "much larger",
        unit: "×",
        // "Much" is more than "clearly", a fifth. How much more is our choice: the paper gives no figure.
        rule: Rule::AtLeast(1.3),
        family: ibm,
        conditions: ClaimConditions::One,
        value: |v| Some(v.rps(LARD_R, 8)? / v.sibling(Family::Rice).rps(LARD_R, 8)?),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "h1",
        place: Section("4.2", None),
        statement: "with hot targets (5 to 75 % of the requests) LARD/R exceeds LARD by 0 to 15 %",
        paper: None,
        paper_text: "0 to 15 %",
        unit: "%",
        // The paper's own range. It starts at 0 %, so equality counts.
        rule: Rule::Between(0.0, 15.0),
        family: hot,
        conditions: ClaimConditions::One,
        value: replication_gain,
        explanation: EXPLAIN_HOT,
    },
    LardClaimSpec {
        id: "h2",
        place: Section("4.2", None),
        statement: "the gain is most significant for hot targets above 20 KB with 10 to 60 % of the requests (largest gain among these, less the largest among the others)",
        paper: None,
        paper_text: "most significant",
        unit: "pp",
        // A comparison: the greatest gain must lie there, and not elsewhere.
        rule: Rule::MoreThan(0.0),
        family: one_hot,
        conditions: ClaimConditions::One,
        value: |v| {
            let largest =
                |of: &dyn Fn(Family) -> bool| max(v.alike(of).iter().filter_map(replication_gain).collect());
            Some(largest(&hot_and_large)? - largest(&|family| hot(family) && !hot_and_large(family))?)
        },
        explanation: EXPLAIN_HOT,
    },
    LardClaimSpec {
        id: "c1",
        place: Section("4.2", None),
        statement: "on the chess trace LARD closely matches WRR (the size farthest from 1)",
        paper: Some(1.0),
        paper_text: "matches",
        unit: "×",
        // "Closely match": no further apart, in either direction.
        rule: Rule::Within(MATCHES),
        family: chess,
        conditions: ClaimConditions::One,
        value: |v| farthest(1.0, v.over(2, |n| v.ratio(LARD, WRR, n))),
        explanation: EXPLAIN_CHESS,
    },
    LardClaimSpec {
        id: "c2",
        place: Section("4.2", None),
        statement: "on the chess trace LARD/R closely matches WRR (the size farthest from 1)",
        paper: Some(1.0),
        paper_text: "matches",
        unit: "×",
        // As c1.
        rule: Rule::Within(MATCHES),
        family: chess,
        conditions: ClaimConditions::One,
        value: |v| farthest(1.0, v.over(2, |n| v.ratio(LARD_R, WRR, n))),
        explanation: EXPLAIN_CHESS,
    },
];
