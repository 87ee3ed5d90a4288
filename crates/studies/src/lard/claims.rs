//! The claims about the Rice trace: figures 5 and 7 to 9.

use plimsoll_report::Claim;

use super::claims_other;
use super::plan::{Family, Variant};
use super::results::{GMS, LARD, LARD_R, LB, LB_GC, Results, View, WRR, max, mean, min};
use super::rule::{Rule, Spec, evaluate as measure};

/// Every claim that the runs made can answer, in the paper's order.
pub(super) fn evaluate(results: &Results) -> Vec<Claim> {
    RICE.iter().chain(claims_other::SPECS).filter_map(|spec| measure(spec, results)).collect()
}

pub(super) fn rice(family: Family) -> bool {
    family == Family::Rice
}

/// The largest cluster of at most ten back-ends that was run.
fn ten(view: &View<'_>) -> Option<usize> {
    view.sizes(LARD_R, Variant::Base).into_iter().rfind(|&n| n <= 10)
}

const RICE: &[Spec] = &[
    Spec {
        id: "5a",
        figure: "figure 5",
        statement: "560 MB of memory cover 97 % of the requests of the Rice trace",
        paper: Some(560.0),
        paper_text: "560 MB",
        unit: "MiB",
        rule: Rule::Within(0.03),
        family: rice,
        value: |v| Some(v.profile()?.cover_mib[0]),
        explanation: "",
    },
    Spec {
        id: "5b",
        figure: "figure 5",
        statement: "705 MB cover 98 %",
        paper: Some(705.0),
        paper_text: "705 MB",
        unit: "MiB",
        rule: Rule::Within(0.03),
        family: rice,
        value: |v| Some(v.profile()?.cover_mib[1]),
        explanation: "",
    },
    Spec {
        id: "5c",
        figure: "figure 5",
        statement: "927 MB cover 99 %",
        paper: Some(927.0),
        paper_text: "927 MB",
        unit: "MiB",
        rule: Rule::Within(0.03),
        family: rice,
        value: |v| Some(v.profile()?.cover_mib[2]),
        explanation: "",
    },
    Spec {
        id: "5d",
        figure: "figure 5",
        statement: "the most frequent target takes 2 % of the requests",
        paper: Some(2.0),
        paper_text: "2 %",
        unit: "%",
        rule: Rule::Within(0.05),
        family: rice,
        value: |v| Some(100.0 * v.profile()?.top_share),
        explanation: "",
    },
    Spec {
        id: "7a",
        figure: "figure 7",
        statement: "LARD/R has 3.9 times the throughput of WRR on eight back-ends",
        paper: Some(3.9),
        paper_text: "3.9 times",
        unit: "×",
        rule: Rule::Within(0.2),
        family: rice,
        value: |v| v.ratio(LARD_R, WRR, 8),
        explanation: EXPLAIN_LOCALITY,
    },
    Spec {
        id: "7b",
        figure: "figure 7",
        statement: "LARD/R has about 4.5 times the throughput of WRR on sixteen back-ends",
        paper: Some(4.5),
        paper_text: "about 4.5 times",
        unit: "×",
        rule: Rule::Within(0.2),
        family: rice,
        value: |v| v.ratio(LARD_R, WRR, 16),
        explanation: EXPLAIN_LOCALITY,
    },
    Spec {
        id: "7c",
        figure: "figure 7",
        statement: "WRR has the lowest throughput of all strategies (the next lowest against it, two back-ends or more)",
        paper: None,
        paper_text: "lowest",
        unit: "×",
        rule: Rule::AtLeast(1.0),
        family: rice,
        value: |v| {
            min(v.over(2, |n| {
                min([LB, LB_GC, LARD, LARD_R, GMS].iter().filter_map(|s| v.ratio(s, WRR, n)).collect())
            }))
        },
        explanation: "",
    },
    Spec {
        id: "7d",
        figure: "figure 7",
        statement: "LB has only a modest throughput advantage over WRR (eight back-ends)",
        paper: None,
        paper_text: "modest",
        unit: "×",
        rule: Rule::Between(1.0, 2.0),
        family: rice,
        value: |v| v.ratio(LB, WRR, 8),
        explanation: EXPLAIN_LB,
    },
    Spec {
        id: "7e",
        figure: "figure 7",
        statement: "LB/GC has no significant advantage over the much simpler LB (largest ratio, two or more)",
        paper: None,
        paper_text: "none",
        unit: "×",
        rule: Rule::AtMost(1.15),
        family: rice,
        value: |v| max(v.over(2, |n| v.ratio(LB_GC, LB, n))),
        explanation: "",
    },
    Spec {
        id: "7f",
        figure: "figure 7",
        statement: "LARD/R slightly exceeds LARD for seven or more back-ends (mean ratio)",
        paper: None,
        paper_text: "slightly more",
        unit: "×",
        rule: Rule::Between(1.0, 1.15),
        family: rice,
        value: |v| mean(v.over(7, |n| v.ratio(LARD_R, LARD, n))),
        explanation: "",
    },
    Spec {
        id: "7g",
        figure: "figure 7",
        statement: "LARD/R speeds up superlinearly from one to ten back-ends (against linear)",
        paper: None,
        paper_text: "superlinear",
        unit: "×",
        rule: Rule::AtLeast(1.0),
        family: rice,
        value: |v| ten(v).and_then(|n| Some(v.rps(LARD_R, n)? / v.rps(LARD_R, 1)? / n as f64)),
        explanation: "",
    },
    Spec {
        id: "7h",
        figure: "figure 7",
        statement: "beyond ten back-ends the speedup of LARD/R is linear (sixteen against ten)",
        paper: Some(1.0),
        paper_text: "linear",
        unit: "×",
        rule: Rule::Within(0.15),
        family: rice,
        value: |v| ten(v).and_then(|n| Some(v.rps(LARD_R, 16)? / v.rps(LARD_R, n)? * n as f64 / 16.0)),
        explanation: EXPLAIN_LINEAR,
    },
    Spec {
        id: "7i",
        figure: "figure 7",
        statement: "WRR/GMS has a substantial advantage over WRR (least ratio, four back-ends or more)",
        paper: None,
        paper_text: "substantial",
        unit: "×",
        rule: Rule::AtLeast(1.2),
        family: rice,
        value: |v| min(v.over(4, |n| v.ratio(GMS, WRR, n))),
        explanation: "",
    },
    Spec {
        id: "7j",
        figure: "figure 7",
        statement: "WRR/GMS stays below 50 % of LARD/R for all cluster sizes (largest, two back-ends or more)",
        paper: Some(50.0),
        paper_text: "below 50 %",
        unit: "%",
        rule: Rule::AtMost(50.0),
        family: rice,
        value: |v| max(v.over(2, |n| Some(100.0 * v.ratio(GMS, LARD_R, n)?))),
        explanation: EXPLAIN_GMS,
    },
    Spec {
        id: "7k",
        figure: "section 4.1",
        statement: "with ten times the cache in each back-end WRR matches LARD (eight back-ends)",
        paper: Some(1.0),
        paper_text: "matches",
        unit: "×",
        rule: Rule::Within(0.15),
        family: rice,
        value: |v| Some(v.rps_of(WRR, 8, Variant::TenfoldCache)? / v.rps(LARD, 8)?),
        explanation: EXPLAIN_TENFOLD,
    },
    Spec {
        id: "8a",
        figure: "figure 8",
        statement: "the miss ratio of WRR does not depend on the number of back-ends (two to sixteen)",
        paper: Some(1.0),
        paper_text: "flat",
        unit: "×",
        rule: Rule::Within(0.15),
        family: rice,
        value: |v| Some(v.miss_percent(WRR, 16)? / v.miss_percent(WRR, 2)?),
        explanation: EXPLAIN_COMPULSORY,
    },
    Spec {
        id: "8b",
        figure: "figure 8",
        statement: "WRR has the highest miss ratio of all strategies (the next highest against it, two or more)",
        paper: None,
        paper_text: "highest",
        unit: "×",
        rule: Rule::AtMost(1.0),
        family: rice,
        value: |v| {
            let others =
                |n| max([LB, LB_GC, LARD, LARD_R, GMS].iter().filter_map(|s| v.miss_percent(s, n)).collect());
            max(v.over(2, |n| Some(others(n)? / v.miss_percent(WRR, n)?)))
        },
        explanation: "",
    },
    Spec {
        id: "8c",
        figure: "figure 8",
        statement: "LARD misses below 4 % for eight and more back-ends (largest)",
        paper: Some(4.0),
        paper_text: "below 4 %",
        unit: "%",
        rule: Rule::AtMost(4.0),
        family: rice,
        value: |v| max(v.over(8, |n| v.miss_percent(LARD, n))),
        explanation: EXPLAIN_LOCALITY,
    },
    Spec {
        id: "8d",
        figure: "figure 8",
        statement: "LARD/R goes down to 2 % at sixteen back-ends",
        paper: Some(2.0),
        paper_text: "2 %",
        unit: "%",
        rule: Rule::Between(1.5, 2.5),
        family: rice,
        value: |v| v.miss_percent(LARD_R, 16),
        explanation: EXPLAIN_LOCALITY,
    },
    Spec {
        id: "8e",
        figure: "figure 8",
        statement: "LARD/R misses about as little as LB/GC (largest difference)",
        paper: Some(0.0),
        paper_text: "close",
        unit: "pp",
        rule: Rule::AtMost(2.0),
        family: rice,
        value: |v| max(v.over(2, |n| Some(v.miss_percent(LARD_R, n)? - v.miss_percent(LB_GC, n)?))),
        explanation: "",
    },
    Spec {
        id: "8f",
        figure: "figure 8",
        statement: "LB's miss ratio falls with the number of back-ends (sixteen against one)",
        paper: None,
        paper_text: "falls",
        unit: "×",
        rule: Rule::AtMost(0.5),
        family: rice,
        value: |v| Some(v.miss_percent(LB, 16)? / v.miss_percent(LB, 1)?),
        explanation: "",
    },
    Spec {
        id: "9a",
        figure: "figure 9",
        statement: "WRR has the lowest idle time (four back-ends or more; the next lowest above it)",
        paper: None,
        paper_text: "lowest",
        unit: "pp",
        rule: Rule::AtLeast(0.0),
        family: rice,
        value: |v| {
            let others =
                |n| min([LB, LB_GC, LARD, LARD_R].iter().filter_map(|s| v.idle_percent(s, n)).collect());
            min(v.over(4, |n| Some(others(n)? - v.idle_percent(WRR, n)?)))
        },
        explanation: EXPLAIN_IDLE,
    },
    Spec {
        id: "9b",
        figure: "figure 9",
        statement: "LARD/R is idle around 1 % of the time (mean over two back-ends or more)",
        paper: Some(1.0),
        paper_text: "around 1 %",
        unit: "%",
        rule: Rule::AtMost(2.0),
        family: rice,
        value: |v| mean(v.over(2, |n| v.idle_percent(LARD_R, n))),
        explanation: EXPLAIN_IDLE,
    },
    Spec {
        id: "9c",
        figure: "figure 9",
        statement: "LARD is idle around 1 % of the time (mean over two back-ends or more)",
        paper: Some(1.0),
        paper_text: "around 1 %",
        unit: "%",
        rule: Rule::AtMost(2.0),
        family: rice,
        value: |v| mean(v.over(2, |n| v.idle_percent(LARD, n))),
        explanation: EXPLAIN_IDLE,
    },
    Spec {
        id: "9d",
        figure: "figure 9",
        statement: "LB loses load balance: it is idle more than LARD/R (eight back-ends)",
        paper: None,
        paper_text: "more",
        unit: "pp",
        rule: Rule::AtLeast(1.0),
        family: rice,
        value: |v| Some(v.idle_percent(LB, 8)? - v.idle_percent(LARD_R, 8)?),
        explanation: EXPLAIN_LB,
    },
];

const EXPLAIN_LOCALITY: &str = "The generator `irm` requests rare targets all over the trace instead of within a \
    window of it. It meets the published coverage figures as exactly as the others, but eight caches of 32 MB then \
    miss more than the paper reports: the published statistics do not pin the locality in time, on which LARD feeds.";
const EXPLAIN_LB: &str = "Rendezvous hashing partitions the Rice working set so evenly that LB misses as little as LB/GC \
    (figure 8), and misses decide on this trace: what LB loses by idle back-ends (figure 9) is less than what WRR \
    loses at the disk. On the IBM trace, whose hot targets a hash cannot spread, LB is indeed little better than WRR \
    at sixteen back-ends on some workloads. The paper does not say which hash it used.";
const EXPLAIN_LINEAR: &str = "Where requests have no locality in time (generator `irm`), ten caches do not hold the \
    working set yet, so further back-ends still lower the miss ratio and the speedup stays superlinear.";
const EXPLAIN_GMS: &str = "Our global memory is at least as generous as the paper's: directory, replacement and transfer \
    are free but for CPU time of the receiver. On two and four back-ends all strategies are bound by the disk and \
    lie close together; on more, WRR/GMS pays only the misses that LARD/R has too plus its duplicates. The order is \
    the paper's (WRR < WRR/GMS < LARD < LARD/R); the distance depends on how much the duplicates displace, which \
    the paper does not specify.";
const EXPLAIN_TENFOLD: &str = "Under WRR every back-end must read every file once, whatever its cache: on eight back-ends \
    up to 8 × 37,703 reads, 13 % of 2.3 million requests. A trace several times as long would dilute these compulsory \
    misses; the paper does not give the length of its trace.";
const EXPLAIN_COMPULSORY: &str = "The rise with the number of back-ends is made of compulsory misses: under WRR every \
    back-end reads every file it is asked for at least once, up to 16 × 37,703 times in 2.3 million requests. With \
    more locality in time a cache is better, and these reads weigh more. A longer trace would flatten the curve.";
const EXPLAIN_IDLE: &str = "Differences of a few hundredths of a percentage point are within what the drain at the end of \
    the trace makes.";
