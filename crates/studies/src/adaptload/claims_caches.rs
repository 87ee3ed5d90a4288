//! The claims about the size of caches and about fairness: figures 8 and 9.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::explain::{
    AdaptLoadExplanation, CLASSES, CROSSOVER, FAIR_JSQ, LARD_LARGE_CACHES, LARGE, SHORTENED, SLIGHTLY, SMALL,
    TINY,
};
use super::measures::{class, crossover, least, slow};
use super::plan::{ADAPTLOAD, Contender, DayRun, JSQ, LARD_BEST};
use super::results::AdaptLoadResults;
use super::rule::PaperReference::Figure;
use super::rule::{AdaptLoadClaimSpec, CLEARLY_MORE, GREATLY, Over, Rule, SLIGHTLY_MORE};

/// AdaptLoad's slowdown over that of `other` at the cache above 25 % at which they depart most from a slight difference.
fn beyond_crossing(r: &AdaptLoadResults, other: Contender) -> Option<f64> {
    let ratios = r.caches(other).into_iter().filter(|&k| k > 25).filter_map(|k| r.ratio(ADAPTLOAD, other, k));
    ratios.max_by(|a, b| (a - 1.08).abs().total_cmp(&(b - 1.08).abs()))
}

/// Response time with caches of 10 % over that with 25 %.
fn smaller_caches(r: &AdaptLoadResults, contender: Contender) -> Option<f64> {
    Some(r.response_s(DayRun::day(contender, 10))? / r.response_s(DayRun::day(contender, 25))?)
}

pub(super) const SPECS: &[AdaptLoadClaimSpec] = &[
    AdaptLoadClaimSpec {
        id: "a26",
        place: Figure(8),
        over: Over::Day,
        statement: "JSQ deteriorates fast below caches of 20 % (slowdown at 10 % over that at 25 %)",
        paper: None,
        paper_text: "fast",
        unit: "×",
        // "Fast": by more than what is still "maintained" (a27).
        rule: Rule::MoreThan(GREATLY),
        value: |r| Some(r.slowdown(DayRun::day(JSQ, 10))? / r.slowdown(DayRun::day(JSQ, 25))?),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a27",
        place: Figure(8),
        over: Over::Day,
        statement: "AdaptLoad maintains high performance even with 10 % (slowdown at 10 % over that at 25 %)",
        paper: None,
        paper_text: "maintains",
        unit: "×",
        // What deteriorates fast (a26) does by more than this, so nothing does both.
        rule: Rule::AtMost(GREATLY),
        value: |r| Some(r.slowdown(DayRun::day(ADAPTLOAD, 10))? / r.slowdown(DayRun::day(ADAPTLOAD, 25))?),
        explanation: SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a28",
        place: Figure(8),
        over: Over::Day,
        statement: "so does LARD",
        paper: None,
        paper_text: "maintains",
        unit: "×",
        // As a27.
        rule: Rule::AtMost(GREATLY),
        value: |r| Some(r.slowdown(DayRun::day(LARD_BEST, 10))? / r.slowdown(DayRun::day(LARD_BEST, 25))?),
        explanation: SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a29",
        place: Figure(8),
        over: Over::Day,
        statement: "JSQ and AdaptLoad cross at caches of about 25 % (interpolated; 0 if JSQ is ahead at every cache, 200 if at none; on whole days only)",
        paper: Some(25.0),
        paper_text: "about 25 %",
        unit: "%",
        // About: above 20 %, below which the paper has JSQ deteriorate, and below 30 %, with which it says
        // that JSQ works well (section 7.2).
        rule: Rule::Within(0.2),
        value: |r| if r.day.scale < 1.0 { None } else { crossover(r) },
        explanation: CROSSOVER,
    },
    AdaptLoadClaimSpec {
        id: "a30",
        place: Figure(8),
        over: Over::Day,
        statement: "beyond, JSQ is slightly better than AdaptLoad (caches above 25 %, the one that departs most: AdaptLoad over JSQ)",
        paper: None,
        paper_text: "slightly, very slightly",
        unit: "×",
        // Ahead, and no further than near: the paper's words exclude both equality and half as much again.
        rule: SLIGHTLY_MORE,
        value: |r| beyond_crossing(r, JSQ),
        explanation: SLIGHTLY,
    },
    AdaptLoadClaimSpec {
        id: "a60",
        place: Figure(8),
        over: Over::Day,
        statement: "so is LARD (AdaptLoad over LARD)",
        paper: None,
        paper_text: "slightly",
        unit: "×",
        // As a30: the same sentence, of LARD.
        rule: SLIGHTLY_MORE,
        value: |r| beyond_crossing(r, LARD_BEST),
        explanation: LARD_LARGE_CACHES,
    },
    AdaptLoadClaimSpec {
        id: "a62",
        place: Figure(8),
        over: Over::Day,
        statement: "in response time, too, JSQ deteriorates fast below caches of 20 % (at 10 % over that at 25 %)",
        paper: None,
        paper_text: "fast",
        unit: "×",
        // As a26.
        rule: Rule::MoreThan(GREATLY),
        value: |r| smaller_caches(r, JSQ),
        explanation: SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a63",
        place: Figure(8),
        over: Over::Day,
        statement: "in response time, too, AdaptLoad maintains high performance with 10 % (at 10 % over that at 25 %)",
        paper: None,
        paper_text: "maintains",
        unit: "×",
        // As a27.
        rule: Rule::AtMost(GREATLY),
        value: |r| smaller_caches(r, ADAPTLOAD),
        explanation: SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a64",
        place: Figure(8),
        over: Over::Day,
        statement: "so does LARD",
        paper: None,
        paper_text: "maintains",
        unit: "×",
        // As a27.
        rule: Rule::AtMost(GREATLY),
        value: |r| smaller_caches(r, LARD_BEST),
        explanation: SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a33",
        place: Figure(9),
        over: Over::Points,
        statement: "AdaptLoad, 1,000 bytes: slowdown from 20 to 100",
        paper: Some(0.4),
        paper_text: "0.4 %",
        unit: "%",
        // Read off a logarithmic axis, as the next one.
        rule: Rule::Within(0.5),
        value: |r| class(r, ADAPTLOAD, 10..=10, 2),
        explanation: CLASSES,
    },
    AdaptLoadClaimSpec {
        id: "a34",
        place: Figure(9),
        over: Over::Points,
        statement: "above 100",
        paper: Some(0.01),
        paper_text: "0.01 %",
        unit: "%",
        // As a33.
        rule: Rule::Within(0.5),
        value: |r| class(r, ADAPTLOAD, 10..=10, 3),
        explanation: SHORTENED,
    },
    AdaptLoadClaimSpec {
        id: "a35",
        place: Figure(9),
        over: Over::Points,
        statement: "1 Kbytes to 0.1 Mbytes: slowdowns of 5 and more are about as frequent with AdaptLoad as with LARD (shares, AdaptLoad over LARD)",
        paper: None,
        paper_text: "similar",
        unit: "×",
        // Figure 9's axis is logarithmic, on which a factor of two is close; what is higher (a36) is higher
        // by more, so nothing is both.
        rule: Rule::Between(1.0 / GREATLY, GREATLY),
        value: |r| Some(slow(r, ADAPTLOAD, 11..=17)? / slow(r, LARD_BEST, 11..=17)?),
        explanation: SHORTENED,
    },
    AdaptLoadClaimSpec {
        id: "a36",
        place: Figure(9),
        over: Over::Points,
        statement: "and more frequent with JSQ than with AdaptLoad (shares, JSQ over AdaptLoad)",
        paper: None,
        paper_text: "higher",
        unit: "×",
        // "Higher": by more than what a35 calls similar.
        rule: Rule::MoreThan(GREATLY),
        value: |r| Some(slow(r, JSQ, 11..=17)? / slow(r, ADAPTLOAD, 11..=17)?),
        explanation: FAIR_JSQ,
    },
    AdaptLoadClaimSpec {
        id: "a37",
        place: Figure(9),
        over: Over::Points,
        statement: "files below 64 bytes have high slowdowns under all policies (least share at 5 or more, over that of 512 to 1,023 bytes)",
        paper: None,
        paper_text: "high",
        unit: "×",
        // "High", against documents of 1,000 bytes, whose slowdowns the paper reads off as low: clearly more.
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |r| {
            least(
                [ADAPTLOAD, JSQ, LARD_BEST]
                    .into_iter()
                    .filter_map(|c| Some(slow(r, c, 1..=6)? / slow(r, c, 10..=10)?)),
            )
        },
        explanation: TINY,
    },
    AdaptLoadClaimSpec {
        id: "a38",
        place: Figure(9),
        over: Over::Points,
        statement: "large files (256 KB and more) fare best under AdaptLoad: share below 5, less the better of the others",
        paper: None,
        paper_text: "best",
        unit: "pp",
        // "Best" names no amount, and the axis starts at hundredths of a per cent: any lead counts.
        rule: Rule::MoreThan(0.0),
        value: |r| {
            Some(
                class(r, ADAPTLOAD, 19..=22, 0)?
                    - class(r, JSQ, 19..=22, 0)?.max(class(r, LARD_BEST, 19..=22, 0)?),
            )
        },
        explanation: LARGE,
    },
];
