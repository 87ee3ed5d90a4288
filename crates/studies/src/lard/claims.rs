//! The claims about the Rice trace at the base speeds: figures 7 to 9.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::explain::{
    EXPLAIN_COMPULSORY, EXPLAIN_GMS, EXPLAIN_IDLE, EXPLAIN_LB, EXPLAIN_LINEAR, EXPLAIN_LOCALITY,
    EXPLAIN_REPLICATION, EXPLAIN_TENFOLD, LardExplanation,
};
use super::plan::{Variant, rice};
use super::results::{GMS, LARD, LARD_R, LB, LB_GC, WRR, farthest, max, min};
use super::rule::PaperReference::{Figure, Section};
use super::rule::{
    AHEAD, BEHIND, CLEARLY_MORE, ClaimConditions, EQUAL, GREATLY, LardClaimSpec, MATCHES, NEAR, Rule,
    SLIGHTLY_MORE,
};

pub(super) const SPECS: &[LardClaimSpec] = &[
    LardClaimSpec {
        id: "7a",
        place: Figure(7),
        statement: "LARD/R has 3.9 times the throughput of WRR on eight back-ends",
        paper: Some(3.9),
        paper_text: "3.9 times",
        unit: "×",
        // Near 3.9, so that 4.5, which the paper reports for another size, is outside.
        rule: Rule::Within(NEAR),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| v.ratio(LARD_R, WRR, 8),
        explanation: EXPLAIN_LOCALITY,
    },
    LardClaimSpec {
        id: "7b",
        place: Figure(7),
        statement: "LARD/R has about 4.5 times the throughput of WRR on sixteen back-ends",
        paper: Some(4.5),
        paper_text: "about 4.5 times",
        unit: "×",
        // "About": near.
        rule: Rule::Within(NEAR),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| v.ratio(LARD_R, WRR, 16),
        explanation: EXPLAIN_LOCALITY,
    },
    LardClaimSpec {
        id: "7c",
        place: Figure(7),
        statement: "WRR has the lowest throughput of all strategies (the next lowest against it, two or more)",
        paper: None,
        paper_text: "lowest",
        unit: "×",
        // "Lowest": the next lowest must be ahead of it at every size.
        rule: AHEAD,
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| {
            min(v.over(2, |n| {
                min([LB, LB_GC, LARD, LARD_R, GMS].iter().filter_map(|s| v.ratio(s, WRR, n)).collect())
            }))
        },
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "7d",
        place: Figure(7),
        statement: "LB has only a modest throughput advantage over WRR",
        paper: None,
        paper_text: "modest",
        unit: "×",
        // An advantage, and below one that is great (as of multiple disks, 13a).
        rule: Rule::Between(1.0 + EQUAL, GREATLY),
        family: rice,
        conditions: ClaimConditions::BackEnds(&[4, 8, 16]),
        value: |v| v.ratio(LB, WRR, v.condition.backends?),
        explanation: EXPLAIN_LB,
    },
    LardClaimSpec {
        id: "7e",
        place: Figure(7),
        statement: "LB/GC has no significant advantage over the much simpler LB (largest ratio, two or more)",
        paper: None,
        paper_text: "none",
        unit: "×",
        // "No significant advantage": near at most. Being behind is no advantage either: no lower end.
        rule: Rule::AtMost(1.0 + NEAR),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| max(v.over(2, |n| v.ratio(LB_GC, LB, n))),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "7f",
        place: Figure(7),
        statement: "LARD/R slightly exceeds LARD for seven or more back-ends (the size that departs most)",
        paper: None,
        paper_text: "slightly more",
        unit: "×",
        // More at every size: equality is not slightly more.
        rule: SLIGHTLY_MORE,
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| farthest(1.08, v.over(7, |n| v.ratio(LARD_R, LARD, n))),
        explanation: EXPLAIN_REPLICATION,
    },
    LardClaimSpec {
        id: "7g",
        place: Figure(7),
        statement: "LARD/R speeds up superlinearly from one to ten back-ends (against linear, least)",
        paper: None,
        paper_text: "superlinear",
        unit: "×",
        // Superlinear is ahead of linear; linear itself does not count. The least of all sizes must be.
        rule: AHEAD,
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| min(v.sized(LARD_R, 2..=10, |n| v.efficiency(LARD_R, 1, n))),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "7h",
        place: Figure(7),
        statement: "beyond ten back-ends the speedup of LARD/R is linear (against ten, farthest from linear)",
        paper: Some(1.0),
        paper_text: "linear",
        unit: "×",
        // "Linear": throughput per back-end stays near that of ten, on both sides.
        rule: Rule::Within(NEAR),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| farthest(1.0, v.sized(LARD_R, 11..=16, |n| v.efficiency(LARD_R, 10, n))),
        explanation: EXPLAIN_LINEAR,
    },
    LardClaimSpec {
        id: "7i",
        place: Figure(7),
        statement: "WRR/GMS has a substantial advantage over WRR (least ratio, four back-ends or more)",
        paper: None,
        paper_text: "substantial",
        unit: "×",
        // "Substantial", at each size from four on; smaller clusters have little memory to share.
        rule: Rule::AtLeast(CLEARLY_MORE),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| min(v.over(4, |n| v.ratio(GMS, WRR, n))),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "7j",
        place: Figure(7),
        statement: "WRR/GMS stays below 50 % of LARD and LARD/R for all cluster sizes (largest, two back-ends or more)",
        paper: Some(50.0),
        paper_text: "below 50 %",
        unit: "%",
        // The paper's own bound, at the size that comes nearest to it: "for all cluster sizes".
        rule: Rule::AtMost(50.0),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| {
            let share = |of| v.over(2, |n| Some(100.0 * v.ratio(GMS, of, n)?));
            max([share(LARD), share(LARD_R)].concat())
        },
        explanation: EXPLAIN_GMS,
    },
    LardClaimSpec {
        id: "7k",
        place: Section("4.1", Some(7)),
        statement: "with ten times the cache in each back-end WRR matches LARD (eight back-ends)",
        paper: Some(1.0),
        paper_text: "matches",
        unit: "×",
        // "To match": no further apart, in either direction.
        rule: Rule::Within(MATCHES),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| Some(v.rps_of(WRR, 8, Variant::TenfoldCache)? / v.rps(LARD, 8)?),
        explanation: EXPLAIN_TENFOLD,
    },
    LardClaimSpec {
        id: "8a",
        place: Figure(8),
        statement: "the miss ratio of WRR does not depend on the number of back-ends (against two, the size that departs most)",
        paper: Some(1.0),
        paper_text: "flat",
        unit: "×",
        // "Flat" is said of a drawn curve: near its first point at every size.
        rule: Rule::Within(NEAR),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| farthest(1.0, v.over(3, |n| Some(v.miss_percent(WRR, n)? / v.miss_percent(WRR, 2)?))),
        explanation: EXPLAIN_COMPULSORY,
    },
    LardClaimSpec {
        id: "8b",
        place: Figure(8),
        statement: "WRR has the highest miss ratio of all strategies (the next highest against it, two or more)",
        paper: None,
        paper_text: "highest",
        unit: "×",
        // "Highest": the next highest must be behind it at every size.
        rule: BEHIND,
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| {
            let others =
                |n| max([LB, LB_GC, LARD, LARD_R, GMS].iter().filter_map(|s| v.miss_percent(s, n)).collect());
            max(v.over(2, |n| Some(others(n)? / v.miss_percent(WRR, n)?)))
        },
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "8c",
        place: Figure(8),
        statement: "LARD misses below 4 % for eight and more back-ends (largest)",
        paper: Some(4.0),
        paper_text: "below 4 %",
        unit: "%",
        // The paper's own bound, at the size that comes nearest to it: "eight and more nodes".
        rule: Rule::AtMost(4.0),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| max(v.over(8, |n| v.miss_percent(LARD, n))),
        explanation: EXPLAIN_LOCALITY,
    },
    LardClaimSpec {
        id: "8d",
        place: Figure(8),
        statement: "LARD/R goes down to 2 % at sixteen back-ends",
        paper: Some(2.0),
        paper_text: "2 %",
        unit: "%",
        // What rounds to the paper's 2 %, which has no decimals.
        rule: Rule::Between(1.5, 2.5),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| v.miss_percent(LARD_R, 16),
        explanation: EXPLAIN_LOCALITY,
    },
    LardClaimSpec {
        id: "8e",
        place: Figure(8),
        statement: "LARD/R misses about as little as LB/GC (LARD/R over LB/GC, the size that departs most)",
        paper: Some(1.0),
        paper_text: "close",
        unit: "×",
        // As a ratio: of miss ratios of 2 to 4 % two points would be half or all.
        rule: Rule::Within(NEAR),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| farthest(1.0, v.over(2, |n| Some(v.miss_percent(LARD_R, n)? / v.miss_percent(LB_GC, n)?))),
        explanation: EXPLAIN_LOCALITY,
    },
    LardClaimSpec {
        id: "8f",
        place: Figure(8),
        statement: "LB's miss ratio falls with the number of back-ends (sixteen against one)",
        paper: None,
        paper_text: "falls",
        unit: "×",
        // The paper explains the decrease by the sum of all caches, here sixteen, so it must be great: half.
        rule: Rule::AtMost(0.5),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| Some(v.miss_percent(LB, 16)? / v.miss_percent(LB, 1)?),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "9a",
        place: Figure(9),
        statement: "WRR has the lowest idle time (four back-ends or more; the next lowest above it)",
        paper: None,
        paper_text: "lowest",
        unit: "pp",
        // "Lowest": equality does not count. The paper's idle times are around 1 %, so a margin of 1 pp would
        // be all of them.
        rule: Rule::MoreThan(0.0),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| {
            let others =
                |n| min([LB, LB_GC, LARD, LARD_R].iter().filter_map(|s| v.idle_percent(s, n)).collect());
            min(v.over(4, |n| Some(others(n)? - v.idle_percent(WRR, n)?)))
        },
        explanation: EXPLAIN_IDLE,
    },
    LardClaimSpec {
        id: "9b",
        place: Figure(9),
        statement: "LARD/R is idle around 1 % of the time (largest, two back-ends or more)",
        paper: Some(1.0),
        paper_text: "around 1 %",
        unit: "%",
        // Around 1 %: what rounds to it. Less is no failure, since the sentence is that the load is balanced.
        rule: Rule::AtMost(1.5),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| max(v.over(2, |n| v.idle_percent(LARD_R, n))),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "9c",
        place: Figure(9),
        statement: "LARD is idle around 1 % of the time (largest, two back-ends or more)",
        paper: Some(1.0),
        paper_text: "around 1 %",
        unit: "%",
        // As 9b.
        rule: Rule::AtMost(1.5),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| max(v.over(2, |n| v.idle_percent(LARD, n))),
        explanation: LardExplanation::None,
    },
    LardClaimSpec {
        id: "9d",
        place: Figure(9),
        statement: "LB loses load balance: it is idle more than LARD/R",
        paper: None,
        paper_text: "more",
        unit: "pp",
        // More than the whole of what LARD/R is idle (9b).
        rule: Rule::AtLeast(1.0),
        family: rice,
        conditions: ClaimConditions::BackEnds(&[4, 8, 16]),
        value: |v| {
            let idle = |strategy| v.idle_percent(strategy, v.condition.backends?);
            Some(idle(LB)? - idle(LARD_R)?)
        },
        explanation: EXPLAIN_LB,
    },
];
