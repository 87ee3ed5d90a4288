//! The claims about the workload, locality and utilization: figures 1, 2, and 5 to 7.

use super::day::{PEAK_S, QUIET_S};
use super::explain::{
    AdaptLoadExplanation, BUSY, BUSY_LARD, COLD, CROSSOVER, EVEN_LARD, EVENLY, JSQ_SMALL, LARD_SMALL,
    OSCILLATIONS, RECOVERY, RESPONSES, SIZES, SPIKE,
};
use super::measures::{DAY, disk, least, most, peak_response, recovery, spike, uneven};
use super::plan::{ADAPTLOAD, DayRun, JSQ, LARD_BEST};
use super::rule::PaperReference::{Figure, Section};
use super::rule::{AdaptLoadClaimSpec, EQUAL, Over, Rule};

/// The largest less the smallest use of the networks, over the mean, that is still even.
const EVEN: f64 = 0.3;

pub(super) const SPECS: &[AdaptLoadClaimSpec] = &[
    AdaptLoadClaimSpec {
        id: "a1",
        place: Figure(1),
        over: Over::Points,
        statement: "most transfers are of small files: share of requests for files up to 10 KB",
        paper: None,
        paper_text: "the majority",
        unit: "%",
        rule: Rule::AtLeast(50.0),
        value: |r| super::figures::share_up_to(r, 10_240).map(|s| 100.0 * s),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a2",
        place: Section("6.2", Some(1)),
        over: Over::Points,
        statement: "files between 1 Kbytes and 0.1 Mbytes take almost half of the requests",
        paper: Some(50.0),
        paper_text: "almost 50 %",
        unit: "%",
        rule: Rule::Within(0.15),
        value: |r| {
            Some(100.0 * (super::figures::share_up_to(r, 104_858)? - super::figures::share_up_to(r, 1_023)?))
        },
        explanation: SIZES,
    },
    AdaptLoadClaimSpec {
        id: "a3",
        place: Figure(2),
        over: Over::Points,
        statement: "arrival rate and C.V. of sizes are inversely related (correlation over the minutes)",
        paper: None,
        paper_text: "inverse",
        unit: "",
        rule: Rule::AtMost(-0.2),
        value: |r| super::figures::correlation(r),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a4",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "with caches of 5 % AdaptLoad outperforms JSQ by several orders of magnitude (mean slowdown, JSQ over AdaptLoad)",
        paper: None,
        paper_text: "several orders of magnitude",
        unit: "×",
        rule: Rule::AtLeast(100.0),
        value: |r| r.ratio(JSQ, ADAPTLOAD, 5),
        explanation: JSQ_SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a5",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "with caches of 5 % AdaptLoad performs similarly to LARD (slowdown, AdaptLoad over LARD)",
        paper: None,
        paper_text: "similarly",
        unit: "×",
        rule: Rule::Between(0.5, 2.0),
        value: |r| r.ratio(ADAPTLOAD, LARD_BEST, 5),
        explanation: LARD_SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a6",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "AdaptLoad's gain over JSQ persists until caches reach 25 % (least ratio below)",
        paper: None,
        paper_text: "persists",
        unit: "×",
        rule: Rule::AtLeast(1.0),
        value: |r| {
            least(r.caches(JSQ).into_iter().filter(|&k| k < 25).filter_map(|k| r.ratio(JSQ, ADAPTLOAD, k)))
        },
        explanation: CROSSOVER,
    },
    AdaptLoadClaimSpec {
        id: "a7",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "beyond 25 % JSQ's slowdown keeps improving (the largest step from one cache to the next, up to 60 %)",
        paper: None,
        paper_text: "keeps improving",
        unit: "×",
        // It keeps improving if each step does, by more than what runs differ by themselves; beyond 60 % there is little
        // left to read.
        rule: Rule::AtMost(1.0 - EQUAL),
        value: |r| {
            let caches: Vec<u32> = r.caches(JSQ).into_iter().filter(|k| (25..=60).contains(k)).collect();
            most(caches.windows(2).filter_map(|pair| {
                Some(r.slowdown(DayRun::day(JSQ, pair[1]))? / r.slowdown(DayRun::day(JSQ, pair[0]))?)
            }))
        },
        explanation: AdaptLoadExplanation::Reason(
            "First reads of every back-end, which no cache saves, are the larger part of the mean with the cold start.",
        ),
    },
    AdaptLoadClaimSpec {
        id: "a8",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "response times differ less than slowdowns (5 %: JSQ over AdaptLoad in response time, against slowdown)",
        paper: None,
        paper_text: "not as severe",
        unit: "×",
        rule: Rule::AtMost(1.0),
        value: |r| {
            Some(
                r.response_s(DayRun::day(JSQ, 5))?
                    / r.response_s(DayRun::day(ADAPTLOAD, 5))?
                    / r.ratio(JSQ, ADAPTLOAD, 5)?,
            )
        },
        explanation: RESPONSES,
    },
    AdaptLoadClaimSpec {
        id: "a9",
        place: Section("6.1", Some(5)),
        over: Over::Points,
        statement: "when arrivals are many (58,000 to 68,000 s, 25 % caches) JSQ clearly outperforms AdaptLoad in response time (JSQ over AdaptLoad)",
        paper: None,
        paper_text: "clearly outperforms",
        unit: "×",
        rule: Rule::AtMost(0.95),
        value: |r| peak_response(r, JSQ, ADAPTLOAD),
        explanation: BUSY,
    },
    AdaptLoadClaimSpec {
        id: "a10",
        place: Section("6.1", Some(5)),
        over: Over::Points,
        statement: "and LARD (JSQ over LARD)",
        paper: None,
        paper_text: "clearly outperforms",
        unit: "×",
        rule: Rule::AtMost(0.95),
        value: |r| peak_response(r, JSQ, LARD_BEST),
        explanation: BUSY_LARD,
    },
    AdaptLoadClaimSpec {
        id: "a11",
        place: Section("6.1", Some(5)),
        over: Over::Points,
        statement: "AdaptLoad's slowdown has a spike around 45,000 s (15 %: largest from 44,000 to 46,500 s over the median from 35,000 to 45,000 s)",
        paper: None,
        paper_text: "a spike",
        unit: "×",
        rule: Rule::AtLeast(2.0),
        value: |r| spike(r, 15),
        explanation: SPIKE,
    },
    AdaptLoadClaimSpec {
        id: "a12",
        place: Section("6.1", Some(5)),
        over: Over::Points,
        statement: "AdaptLoad quickly recovers in the next group of requests (second point after its largest, over the median)",
        paper: None,
        paper_text: "restored",
        unit: "×",
        rule: Rule::AtMost(1.5),
        value: |r| recovery(r, 15),
        explanation: RECOVERY,
    },
    AdaptLoadClaimSpec {
        id: "a13",
        place: Section("6.1", Some(5)),
        over: Over::Points,
        statement: "with small caches (5 %) LARD handles the oscillations from 35,000 to 45,000 s better than AdaptLoad (LARD over AdaptLoad)",
        paper: None,
        paper_text: "better",
        unit: "×",
        rule: Rule::AtMost(1.0),
        value: |r| {
            Some(
                r.mean_within(DayRun::day(LARD_BEST, 5), QUIET_S, |p| p.mean_slowdown)?
                    / r.mean_within(DayRun::day(ADAPTLOAD, 5), QUIET_S, |p| p.mean_slowdown)?,
            )
        },
        explanation: OSCILLATIONS,
    },
    AdaptLoadClaimSpec {
        id: "a14",
        place: Figure(6),
        over: Over::Points,
        statement: "the networks are evenly used under AdaptLoad (15 %: largest less smallest utilization over the mean; mean of the day)",
        paper: None,
        paper_text: "evenly",
        unit: "",
        // Even and uneven (a16) are told apart by one bound, so that no policy is both.
        rule: Rule::AtMost(EVEN),
        value: |r| uneven(r, ADAPTLOAD, DAY),
        explanation: EVENLY,
    },
    AdaptLoadClaimSpec {
        id: "a15",
        place: Figure(6),
        over: Over::Points,
        statement: "and under JSQ",
        paper: None,
        paper_text: "evenly",
        unit: "",
        rule: Rule::AtMost(EVEN),
        value: |r| uneven(r, JSQ, DAY),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a16",
        place: Figure(6),
        over: Over::Points,
        statement: "but not under LARD (the same of LARD)",
        paper: None,
        paper_text: "not",
        unit: "",
        rule: Rule::MoreThan(EVEN),
        value: |r| uneven(r, LARD_BEST, DAY),
        explanation: EVEN_LARD,
    },
    AdaptLoadClaimSpec {
        id: "a17",
        place: Figure(6),
        over: Over::Points,
        statement: "LARD balances only when arrivals are many (spread from 58,000 to 68,000 s over that from 35,000 to 45,000 s)",
        paper: None,
        paper_text: "only then",
        unit: "×",
        rule: Rule::AtMost(0.9),
        value: |r| Some(uneven(r, LARD_BEST, PEAK_S)? / uneven(r, LARD_BEST, QUIET_S)?),
        explanation: EVEN_LARD,
    },
    AdaptLoadClaimSpec {
        id: "a18",
        place: Figure(6),
        over: Over::Points,
        statement: "disks are used more under JSQ than under AdaptLoad",
        paper: None,
        paper_text: "more",
        unit: "×",
        rule: Rule::AtLeast(1.2),
        value: |r| Some(disk(r, JSQ)? / disk(r, ADAPTLOAD)?),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a19",
        place: Figure(6),
        over: Over::Points,
        statement: "and than under LARD",
        paper: None,
        paper_text: "more",
        unit: "×",
        rule: Rule::AtLeast(1.2),
        value: |r| Some(disk(r, JSQ)? / disk(r, LARD_BEST)?),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a20",
        place: Figure(7),
        over: Over::Points,
        statement: "cold misses are clearly visible at the beginning (AdaptLoad, 15 %: misses of the first point over the day's)",
        paper: None,
        paper_text: "clearly visible",
        unit: "×",
        rule: Rule::AtLeast(2.0),
        value: |r| {
            Some(
                r.get(DayRun::day(ADAPTLOAD, 15))?.points.first()?.miss_ratio
                    / (1.0 - r.hit_ratio(DayRun::day(ADAPTLOAD, 15))?),
            )
        },
        explanation: COLD,
    },
    AdaptLoadClaimSpec {
        id: "a21",
        place: Figure(7),
        over: Over::Points,
        statement: "AdaptLoad finds almost all files in caches of 15 %",
        paper: Some(100.0),
        paper_text: "almost 100 %",
        unit: "%",
        rule: Rule::AtLeast(95.0),
        value: |r| Some(100.0 * r.hit_ratio(DayRun::day(ADAPTLOAD, 15))?),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a22",
        place: Figure(7),
        over: Over::Points,
        statement: "so does LARD",
        paper: Some(100.0),
        paper_text: "almost 100 %",
        unit: "%",
        rule: Rule::AtLeast(95.0),
        value: |r| Some(100.0 * r.hit_ratio(DayRun::day(LARD_BEST, 15))?),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a23",
        place: Figure(7),
        over: Over::Points,
        statement: "JSQ's hit ratio improves greatly with the cache (misses at 5 % over those at 25 %)",
        paper: None,
        paper_text: "greatly",
        unit: "×",
        rule: Rule::AtLeast(2.0),
        value: |r| {
            Some((1.0 - r.hit_ratio(DayRun::day(JSQ, 5))?) / (1.0 - r.hit_ratio(DayRun::day(JSQ, 25))?))
        },
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a24",
        place: Figure(7),
        over: Over::Points,
        statement: "AdaptLoad's and LARD's hit ratio is high whatever the cache (least over the day; the paper's figure is hard to read)",
        paper: None,
        paper_text: "greater than 80 %",
        unit: "%",
        rule: Rule::AtLeast(80.0),
        value: |r| {
            least(
                [ADAPTLOAD, LARD_BEST]
                    .into_iter()
                    .flat_map(|c| r.caches(c).into_iter().filter(|&k| k >= 5).map(move |k| DayRun::day(c, k)))
                    .filter_map(|cell| r.hit_ratio(cell)),
            )
            .map(|h| 100.0 * h)
        },
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a25",
        place: Figure(7),
        over: Over::Points,
        statement: "the higher the C.V., the lower the hit ratio (JSQ, 15 %: misses from 35,000 to 45,000 s over those from 58,000 to 68,000 s)",
        paper: None,
        paper_text: "lower",
        unit: "×",
        rule: Rule::AtLeast(1.2),
        value: |r| {
            Some(
                r.mean_within(DayRun::day(JSQ, 15), QUIET_S, |p| p.miss_ratio)?
                    / r.mean_within(DayRun::day(JSQ, 15), PEAK_S, |p| p.miss_ratio)?,
            )
        },
        explanation: COLD,
    },
];
