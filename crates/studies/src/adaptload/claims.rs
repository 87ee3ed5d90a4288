//! The claims about the workload, locality and utilization: figures 1, 2, and 5 to 7.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::day::{PEAK_S, QUIET_S};
use super::explain::{
    AdaptLoadExplanation, BUSY, BUSY_LARD, COLD, CROSSOVER, EVEN_LARD, EVENLY, FIRST_READS, JSQ_SMALL,
    LARD_SMALL, LARD_SPIKE, OSCILLATIONS, RECOVERY, RESPONSES, SIZES,
};
use super::measures::{DAY, disk, has_spike, least, most, peak_response, recovery, spike_of, uneven};
use super::plan::{ADAPTLOAD, DayRun, JSQ, LARD_BEST};
use super::rule::PaperReference::{Figure, Section};
use super::rule::{AHEAD, AdaptLoadClaimSpec, BEHIND, CLEARLY_LESS, CLEARLY_MORE, GREATLY, NEAR, Over, Rule};

/// The largest less the smallest use of the networks, over the mean, that is still even: no back-end is further than 15 %
/// (near) from the middle of the two.
pub(super) const EVEN: f64 = 2.0 * NEAR;

pub(super) const SPECS: &[AdaptLoadClaimSpec] = &[
    AdaptLoadClaimSpec {
        id: "a2",
        place: Section("6.2", Some(1)),
        over: Over::Points,
        statement: "files between 1 Kbytes and 0.1 Mbytes take almost half of the requests",
        paper: Some(50.0),
        paper_text: "almost 50 %",
        unit: "%",
        // "Almost 50 %": near it from below.
        rule: Rule::Between(50.0 * (1.0 - NEAR), 50.0),
        value: |r| {
            Some(100.0 * (super::figures::share_up_to(r, 104_858)? - super::figures::share_up_to(r, 1_023)?))
        },
        explanation: SIZES,
    },
    AdaptLoadClaimSpec {
        id: "a4",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "with caches of 5 % AdaptLoad outperforms JSQ by several orders of magnitude (mean slowdown, JSQ over AdaptLoad)",
        paper: None,
        paper_text: "several orders of magnitude",
        unit: "×",
        // Several: three. Two would be a couple.
        rule: Rule::AtLeast(1_000.0),
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
        // Drawn on a logarithmic axis: a factor of two is what can be read off it.
        rule: Rule::Between(1.0 / GREATLY, GREATLY),
        value: |r| r.ratio(ADAPTLOAD, LARD_BEST, 5),
        explanation: LARD_SMALL,
    },
    AdaptLoadClaimSpec {
        id: "a84",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "so it does in response time (caches of 15 %, AdaptLoad over LARD)",
        paper: None,
        paper_text: "similar",
        unit: "×",
        // As a5: the paper says that the same trends persist.
        rule: Rule::Between(1.0 / GREATLY, GREATLY),
        value: |r| {
            Some(r.response_s(DayRun::day(ADAPTLOAD, 15))? / r.response_s(DayRun::day(LARD_BEST, 15))?)
        },
        explanation: FIRST_READS,
    },
    AdaptLoadClaimSpec {
        id: "a6",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "AdaptLoad's gain over JSQ persists until caches reach 25 % (least ratio below)",
        paper: None,
        paper_text: "persists",
        unit: "×",
        // "Persists" names no amount: AdaptLoad must be ahead at each cache below 25 %.
        rule: AHEAD,
        value: |r| {
            least(r.caches(JSQ).into_iter().filter(|&k| k < 25).filter_map(|k| r.ratio(JSQ, ADAPTLOAD, k)))
        },
        explanation: CROSSOVER,
    },
    AdaptLoadClaimSpec {
        id: "a7",
        place: Section("6.1", Some(5)),
        over: Over::Day,
        statement: "beyond 25 % JSQ's slowdown keeps improving (the largest step from one cache to the next)",
        paper: None,
        paper_text: "keeps improving",
        unit: "×",
        // It keeps improving if each step does, by more than what runs differ by themselves.
        rule: BEHIND,
        value: |r| {
            let caches: Vec<u32> = r.caches(JSQ).into_iter().filter(|&k| k >= 25).collect();
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
        // "Not as severe" names no amount: the disparity must be smaller.
        rule: BEHIND,
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
        // "Clearly": less by a fifth; the ratio is of response times, of which less is better.
        rule: Rule::AtMost(CLEARLY_LESS),
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
        // As a9: the same words, of LARD.
        rule: Rule::AtMost(CLEARLY_LESS),
        value: |r| peak_response(r, JSQ, LARD_BEST),
        explanation: BUSY_LARD,
    },
    AdaptLoadClaimSpec {
        id: "a12",
        place: Section("6.1", Some(5)),
        over: Over::Points,
        statement: "AdaptLoad quickly recovers in the next group of requests (the point after its largest around 45,000 s, over the median from 35,000 to 45,000 s; where there is a spike)",
        paper: None,
        paper_text: "restored",
        unit: "×",
        // Restored is back on the line that figure 5 draws before the spike: its axis is logarithmic, and
        // half as much again is a sixth of a decade on it.
        rule: Rule::AtMost(1.5),
        value: |r| if has_spike(r, 15) { recovery(r, 15) } else { None },
        explanation: RECOVERY,
    },
    AdaptLoadClaimSpec {
        id: "a78",
        place: Section("6.1", Some(5)),
        over: Over::Points,
        statement: "LARD avoids the build-up that makes AdaptLoad's spike around 45,000 s (15 %: AdaptLoad's largest over its median, over the same of LARD; where there is a spike)",
        paper: None,
        paper_text: "avoids queue build-up",
        unit: "×",
        // What one policy avoids and the other does not must be clearly larger under the other.
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |r| {
            let ratio = || Some(spike_of(r, ADAPTLOAD, 15)? / spike_of(r, LARD_BEST, 15)?);
            if has_spike(r, 15) { ratio() } else { None }
        },
        explanation: LARD_SPIKE,
    },
    AdaptLoadClaimSpec {
        id: "a13",
        place: Section("6.1", Some(5)),
        over: Over::Points,
        statement: "with small caches (5 %) LARD handles the oscillations from 35,000 to 45,000 s better than AdaptLoad (LARD over AdaptLoad)",
        paper: None,
        paper_text: "better",
        unit: "×",
        // "Better" names no amount: LARD must be ahead of AdaptLoad.
        rule: BEHIND,
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
        // As a14.
        rule: Rule::AtMost(EVEN),
        value: |r| uneven(r, JSQ, DAY),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a16",
        place: Figure(6),
        over: Over::Points,
        statement: "but not under LARD, where arrivals are few (the same of LARD from 35,000 to 45,000 s)",
        paper: None,
        paper_text: "not",
        unit: "",
        // "Not": what is not even by the bound of a14.
        rule: Rule::MoreThan(EVEN),
        value: |r| uneven(r, LARD_BEST, QUIET_S),
        explanation: EVEN_LARD,
    },
    AdaptLoadClaimSpec {
        id: "a17",
        place: Figure(6),
        over: Over::Points,
        statement: "LARD balances where arrivals are many (from 58,000 to 68,000 s)",
        paper: None,
        paper_text: "good load balance only then",
        unit: "",
        // "Good load balance": as even as a14 asks.
        rule: Rule::AtMost(EVEN),
        value: |r| uneven(r, LARD_BEST, PEAK_S),
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
        // "Much faster" is said of the queues, which use stands for: clearly more, not only more.
        rule: Rule::AtLeast(CLEARLY_MORE),
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
        // As a18.
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |r| Some(disk(r, JSQ)? / disk(r, LARD_BEST)?),
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a21",
        place: Figure(7),
        over: Over::Points,
        statement: "AdaptLoad finds almost all files in caches of 15 %",
        paper: Some(100.0),
        paper_text: "almost 100 %",
        unit: "%",
        // "Almost 100 %": as near as what matches, 5 %.
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
        // As a21.
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
        // "Greatly". Misses, since hit ratios near 100 % cannot grow by a factor.
        rule: Rule::AtLeast(GREATLY),
        value: |r| {
            Some((1.0 - r.hit_ratio(DayRun::day(JSQ, 5))?) / (1.0 - r.hit_ratio(DayRun::day(JSQ, 25))?))
        },
        explanation: AdaptLoadExplanation::None,
    },
    AdaptLoadClaimSpec {
        id: "a24",
        place: Figure(7),
        over: Over::Points,
        statement: "AdaptLoad's and LARD's hit ratio is high whatever the cache (of the whole day, the least over the caches from 5 % on; the paper's figure is hard to read)",
        paper: None,
        paper_text: "greater than 80 %",
        unit: "%",
        // The paper's own figure, as far as it can be read, for both policies and every cache.
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
        // The C.V. doubles from one period to the other, and the paper explains by it why JSQ is worse: so
        // misses must be clearly more.
        rule: Rule::AtLeast(CLEARLY_MORE),
        value: |r| {
            Some(
                r.mean_within(DayRun::day(JSQ, 15), QUIET_S, |p| p.miss_ratio)?
                    / r.mean_within(DayRun::day(JSQ, 15), PEAK_S, |p| p.miss_ratio)?,
            )
        },
        explanation: COLD,
    },
];
