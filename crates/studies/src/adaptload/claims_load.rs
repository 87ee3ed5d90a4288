//! The claims about scale, load, dynamic requests and the improved policy: figures 10 to 14.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::day::{PEAK_S, QUIET_S};
use super::explain::{
    ALONE, BOTTLENECK, CLUSTERS_LARD, DYNAMIC_GAP, NOT_EXPLAINED, PEAK, PEAK_LARD, QUIET, QUIET_LARD,
    SHORTENED,
};
use super::measures::{JUDGED_PEAK_S, across, disks, in_period, least, most, networks, points_ahead, scaled};
use super::plan::{ADAPTLOAD, Contender, DayRun, IMPROVED_CACHE, JSQ, LARD_BEST};
use super::results::mean;
use super::rule::PaperReference::Figure;
use super::rule::{AHEAD, AdaptLoadClaimSpec, BEHIND, CLEARLY_MORE, EQUAL, MATCHES, NEAR, Over, Rule};

/// Per cent of the points at which a policy that is consistently ahead is: all but those that chance decides.
const CONSISTENTLY: f64 = 95.0;

pub(super) const SPECS: &[AdaptLoadClaimSpec] = &[
    AdaptLoadClaimSpec {
        id: "a39",
        place: Figure(10),
        over: Over::Day,
        statement: "all policies improve from four to eight back-ends (largest slowdown at eight over that at four, caches of 15 %)",
        paper: None,
        paper_text: "improves",
        unit: "×",
        // "Improves in all policies": the one that improves least must.
        rule: BEHIND,
        value: |r| most([ADAPTLOAD, JSQ, LARD_BEST].into_iter().filter_map(|c| scaled(r, c, 4, 8))),
        explanation: NOT_EXPLAINED,
    },
    AdaptLoadClaimSpec {
        id: "a40",
        place: Figure(10),
        over: Over::Day,
        statement: "and stabilize from twelve on (twenty over twelve, the one that departs most)",
        paper: Some(1.0),
        paper_text: "stabilizes",
        unit: "×",
        // More back-ends do "not help performance": no gain, as of further disks (14b of the LARD study).
        rule: Rule::Within(MATCHES),
        value: |r| {
            [ADAPTLOAD, JSQ, LARD_BEST]
                .into_iter()
                .filter_map(|c| scaled(r, c, 12, 20))
                .max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()))
        },
        explanation: NOT_EXPLAINED,
    },
    AdaptLoadClaimSpec {
        id: "a41",
        place: Figure(10),
        over: Over::Day,
        statement: "AdaptLoad and LARD are very close (the ratio that departs most)",
        paper: Some(1.0),
        paper_text: "very close",
        unit: "×",
        // "Very close" at every size, in either direction.
        rule: Rule::Within(MATCHES),
        value: |r| {
            [4, 8, 12, 16, 20]
                .into_iter()
                .filter_map(|n| across(r, ADAPTLOAD, LARD_BEST, n))
                .max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()))
        },
        explanation: CLUSTERS_LARD,
    },
    AdaptLoadClaimSpec {
        id: "a42",
        place: Figure(10),
        over: Over::Day,
        statement: "both consistently outperform JSQ (least of JSQ over AdaptLoad and over LARD)",
        paper: None,
        paper_text: "consistently",
        unit: "×",
        // "Consistently": at every size, and both of them.
        rule: AHEAD,
        value: |r| {
            let over = |c| [4, 8, 12, 16, 20].into_iter().filter_map(move |n| across(r, JSQ, c, n));
            least(over(ADAPTLOAD).chain(over(LARD_BEST)))
        },
        explanation: NOT_EXPLAINED,
    },
    AdaptLoadClaimSpec {
        id: "a43",
        place: Figure(11),
        over: Over::Points,
        statement: "35,000 to 45,000 s, heavy load: the disk is the bottleneck (its utilization over the network's, AdaptLoad)",
        paper: None,
        paper_text: "disk",
        unit: "×",
        // The bottleneck is what is used more.
        rule: AHEAD,
        value: |r| {
            Some(
                disks(r, DayRun::quiet(ADAPTLOAD, true), QUIET_S)?
                    / networks(r, DayRun::quiet(ADAPTLOAD, true), QUIET_S)?,
            )
        },
        explanation: BOTTLENECK,
    },
    AdaptLoadClaimSpec {
        id: "a44",
        place: Figure(11),
        over: Over::Points,
        statement: "35,000 to 45,000 s: AdaptLoad does significantly better than JSQ (JSQ over AdaptLoad, the lesser of light and heavy load)",
        paper: None,
        paper_text: "significantly",
        unit: "×",
        // "Significantly", under either load.
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |r| {
            let of =
                |heavy| in_period(r, DayRun::quiet(JSQ, heavy), DayRun::quiet(ADAPTLOAD, heavy), QUIET_S);
            Some(of(false)?.min(of(true)?))
        },
        explanation: QUIET,
    },
    AdaptLoadClaimSpec {
        id: "a45",
        place: Figure(11),
        over: Over::Points,
        statement: "and LARD too (JSQ over LARD, likewise)",
        paper: None,
        paper_text: "significantly",
        unit: "×",
        // As a44.
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |r| {
            let of =
                |heavy| in_period(r, DayRun::quiet(JSQ, heavy), DayRun::quiet(LARD_BEST, heavy), QUIET_S);
            Some(of(false)?.min(of(true)?))
        },
        explanation: QUIET,
    },
    AdaptLoadClaimSpec {
        id: "a46",
        place: Figure(11),
        over: Over::Points,
        statement: "the advantage grows with the load (under heavy over under light load, the lesser of AdaptLoad's and LARD's)",
        paper: None,
        paper_text: "increases",
        unit: "×",
        // "Increases" names no amount: both advantages must grow.
        rule: AHEAD,
        value: |r| {
            let gain = |c, heavy| in_period(r, DayRun::quiet(JSQ, heavy), DayRun::quiet(c, heavy), QUIET_S);
            let growth = |c| Some(gain(c, true)? / gain(c, false)?);
            Some(f64::min(growth(ADAPTLOAD)?, growth(LARD_BEST)?))
        },
        explanation: QUIET,
    },
    AdaptLoadClaimSpec {
        id: "a47",
        place: Figure(11),
        over: Over::Points,
        statement: "under light load AdaptLoad is similar to LARD, slightly better (AdaptLoad over LARD)",
        paper: None,
        paper_text: "similar",
        unit: "×",
        // Similar is near, and a slight benefit is one: AdaptLoad must be ahead.
        rule: Rule::Between(1.0 - NEAR, 1.0 - EQUAL),
        value: |r| in_period(r, DayRun::quiet(ADAPTLOAD, false), DayRun::quiet(LARD_BEST, false), QUIET_S),
        explanation: QUIET_LARD,
    },
    AdaptLoadClaimSpec {
        id: "a48",
        place: Figure(11),
        over: Over::Points,
        statement: "58,000 to 68,000 s, light load: disks are used less than 15 % (AdaptLoad, largest point)",
        paper: None,
        paper_text: "less than 15 %",
        unit: "%",
        // The paper's own bound; "consistently": at every point.
        rule: Rule::AtMost(15.0),
        value: |r| {
            most(r.within(DayRun::peak(ADAPTLOAD, false), PEAK_S)?.iter().map(|p| 100.0 * mean(&p.disk)))
        },
        explanation: SHORTENED,
    },
    AdaptLoadClaimSpec {
        id: "a49",
        place: Figure(11),
        over: Over::Points,
        statement: "heavy load: less than 20 %",
        paper: None,
        paper_text: "less than 20 %",
        unit: "%",
        // The paper's own bound, at every point as in a48.
        rule: Rule::AtMost(20.0),
        value: |r| {
            most(r.within(DayRun::peak(ADAPTLOAD, true), PEAK_S)?.iter().map(|p| 100.0 * mean(&p.disk)))
        },
        explanation: SHORTENED,
    },
    AdaptLoadClaimSpec {
        id: "a65",
        place: Figure(11),
        over: Over::Points,
        statement: "58,000 to 68,000 s, heavy load: the network is the bottleneck (its utilization over the disk's, AdaptLoad)",
        paper: None,
        paper_text: "network",
        unit: "×",
        // The bottleneck is what is used more.
        rule: AHEAD,
        value: |r| {
            let cell = DayRun::peak(ADAPTLOAD, true);
            Some(networks(r, cell, PEAK_S)? / disks(r, cell, PEAK_S)?)
        },
        explanation: SHORTENED,
    },
    AdaptLoadClaimSpec {
        id: "a50",
        place: Figure(11),
        over: Over::Points,
        statement: "light load: AdaptLoad is consistently better than JSQ (share of the points at which it is)",
        paper: None,
        paper_text: "consistently",
        unit: "%",
        // "Consistently" is said of a drawn curve: at all points but those that chance decides.
        rule: Rule::AtLeast(CONSISTENTLY),
        value: |r| points_ahead(r, DayRun::peak(ADAPTLOAD, false), DayRun::peak(JSQ, false), PEAK_S),
        explanation: PEAK,
    },
    AdaptLoadClaimSpec {
        id: "a51",
        place: Figure(11),
        over: Over::Points,
        statement: "and than LARD (likewise)",
        paper: None,
        paper_text: "consistently",
        unit: "%",
        // As a50.
        rule: Rule::AtLeast(CONSISTENTLY),
        value: |r| points_ahead(r, DayRun::peak(ADAPTLOAD, false), DayRun::peak(LARD_BEST, false), PEAK_S),
        explanation: SHORTENED,
    },
    AdaptLoadClaimSpec {
        id: "a52",
        place: Figure(11),
        over: Over::Points,
        statement: "heavy load: until the network is full AdaptLoad outperforms JSQ (58,000 to 65,800 s; JSQ over AdaptLoad)",
        paper: None,
        paper_text: "until 65,800 s",
        unit: "×",
        // "Outperforms" names no amount: AdaptLoad must be ahead.
        rule: AHEAD,
        value: |r| in_period(r, DayRun::peak(JSQ, true), DayRun::peak(ADAPTLOAD, true), JUDGED_PEAK_S[0]),
        explanation: PEAK,
    },
    AdaptLoadClaimSpec {
        id: "a73",
        place: Figure(11),
        over: Over::Points,
        statement: "and LARD (LARD over AdaptLoad)",
        paper: None,
        paper_text: "until 65,800 s",
        unit: "×",
        // As a52.
        rule: AHEAD,
        value: |r| {
            in_period(r, DayRun::peak(LARD_BEST, true), DayRun::peak(ADAPTLOAD, true), JUDGED_PEAK_S[0])
        },
        explanation: PEAK,
    },
    AdaptLoadClaimSpec {
        id: "a53",
        place: Figure(11),
        over: Over::Points,
        statement: "where the network is full, JSQ does better than AdaptLoad (65,800 to 68,000 s; JSQ over AdaptLoad)",
        paper: None,
        paper_text: "better",
        unit: "×",
        // "Better" names no amount: JSQ must be ahead.
        rule: BEHIND,
        value: |r| in_period(r, DayRun::peak(JSQ, true), DayRun::peak(ADAPTLOAD, true), JUDGED_PEAK_S[1]),
        explanation: PEAK,
    },
    AdaptLoadClaimSpec {
        id: "a54",
        place: Figure(11),
        over: Over::Points,
        statement: "and LARD too (LARD over AdaptLoad)",
        paper: None,
        paper_text: "better",
        unit: "×",
        // As a53.
        rule: BEHIND,
        value: |r| {
            in_period(r, DayRun::peak(LARD_BEST, true), DayRun::peak(ADAPTLOAD, true), JUDGED_PEAK_S[1])
        },
        explanation: PEAK_LARD,
    },
    AdaptLoadClaimSpec {
        id: "a55",
        place: Figure(12),
        over: Over::Day,
        statement: "with 30 % dynamic requests AdaptLoad outperforms JSQ (slowdown, JSQ over AdaptLoad)",
        paper: None,
        paper_text: "outperforms",
        unit: "×",
        // "Outperforms" names no amount: AdaptLoad must be ahead.
        rule: AHEAD,
        value: |r| Some(r.slowdown(DayRun::dynamic(JSQ, 30))? / r.slowdown(DayRun::dynamic(ADAPTLOAD, 30))?),
        explanation: NOT_EXPLAINED,
    },
    AdaptLoadClaimSpec {
        id: "a56",
        place: Figure(12),
        over: Over::Day,
        statement: "with 70 % too",
        paper: None,
        paper_text: "outperforms",
        unit: "×",
        // As a55.
        rule: AHEAD,
        value: |r| Some(r.slowdown(DayRun::dynamic(JSQ, 70))? / r.slowdown(DayRun::dynamic(ADAPTLOAD, 70))?),
        explanation: NOT_EXPLAINED,
    },
    AdaptLoadClaimSpec {
        id: "a57",
        place: Figure(12),
        over: Over::Day,
        statement: "response times increase from 30 % to 70 % (the smaller ratio of the two policies)",
        paper: None,
        paper_text: "increase",
        unit: "×",
        // "Increase for both policies": the one that increases least must.
        rule: AHEAD,
        value: |r| {
            least([ADAPTLOAD, JSQ].into_iter().filter_map(|c| {
                Some(r.response_s(DayRun::dynamic(c, 70))? / r.response_s(DayRun::dynamic(c, 30))?)
            }))
        },
        explanation: NOT_EXPLAINED,
    },
    AdaptLoadClaimSpec {
        id: "a58",
        place: Figure(12),
        over: Over::Day,
        statement: "and the gap between the policies decreases (logarithm of JSQ over AdaptLoad, either way: at 70 % less at 30 %)",
        paper: None,
        paper_text: "decreases",
        unit: "",
        // "Decreases": by more than 1 %, which in logarithms is 0.01. Equality does not count.
        rule: Rule::LessThan(-EQUAL),
        value: |r| {
            let gap = |d| {
                Some(
                    (r.slowdown(DayRun::dynamic(JSQ, d))? / r.slowdown(DayRun::dynamic(ADAPTLOAD, d))?)
                        .ln()
                        .abs(),
                )
            };
            Some(gap(70)? - gap(30)?)
        },
        explanation: DYNAMIC_GAP,
    },
    AdaptLoadClaimSpec {
        id: "a61",
        place: Figure(14),
        over: Over::Day,
        statement: "AdaptLoad's performance improves significantly (original over improved)",
        paper: None,
        paper_text: "significantly",
        unit: "×",
        // "Significantly": clearly more, not only more.
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |r| r.ratio(ADAPTLOAD, Contender::Improved, IMPROVED_CACHE),
        explanation: ALONE,
    },
];
