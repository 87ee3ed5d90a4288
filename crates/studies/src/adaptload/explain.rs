//! Why claims do not hold, as far as known. The text says where a cause is only likely. Figures are of the runs that are
//! explained.

use super::cluster::FAST_BACKENDS;
use super::day::{PEAK_S, QUIET_S};
use super::measures::{
    JUDGED_PEAK_S, class, disks, full_at_s, in_period, largest_spike, networks, peak_response, points_ahead,
    slow, spike_of, usual,
};
use super::plan::{ADAPTLOAD, ALPHAS, BATCHES, Contender, DayRun, IMPROVED, IMPROVED_CACHE, JSQ, LARD_BEST};
use super::results::{AdaptLoadResults, mean};
use crate::not_run;

/// Why a claim does not hold.
#[derive(Clone, Copy)]
pub(super) enum AdaptLoadExplanation {
    /// Nobody looked, or there is nothing to add.
    None,
    /// A reason without figures of any run.
    Reason(&'static str),
    /// A reason with figures of the runs that are explained.
    Measured(fn(&[AdaptLoadResults]) -> String),
}

impl AdaptLoadExplanation {
    pub(super) fn words(self, days: &[AdaptLoadResults]) -> String {
        match self {
            Self::None => String::new(),
            Self::Reason(text) => text.to_owned(),
            Self::Measured(text) => not_run::told(text(days)),
        }
    }
}

/// The values on all days, from the least to the greatest.
fn range(days: &[AdaptLoadResults], value: impl Fn(&AdaptLoadResults) -> Option<f64>) -> String {
    let mut values: Vec<f64> = days.iter().filter_map(value).filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    match (values.first(), values.last()) {
        (Some(least), Some(most)) if values.len() > 1 => format!("{} to {}", short(*least), short(*most)),
        (Some(only), _) => short(*only),
        _ => not_run::FIGURE.to_owned(),
    }
}

/// The sentence where the day is a shortened one.
fn in_short(days: &[AdaptLoadResults], sentence: &'static str) -> &'static str {
    if days.iter().any(|r| r.day.scale < 1.0) { sentence } else { "" }
}

/// Three digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn percent(value: Option<f64>) -> Option<f64> {
    value.map(|value| 100.0 * value)
}

/// Mean slowdown of each of these at a cache, with the cold start and after it.
fn slowdowns(days: &[AdaptLoadResults], contenders: &[Contender], cache: u32) -> String {
    let one = |&contender: &Contender| {
        let cell = DayRun::day(contender, cache);
        let (cold, warm) = (range(days, |r| r.slowdown(cell)), range(days, |r| r.warm()?.slowdown(cell)));
        format!("{} {cold} (after the cold start {warm})", contender.name())
    };
    contenders.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(super) const ALONE: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let mut contenders = vec![ADAPTLOAD];
    contenders.extend(IMPROVED);
    format!(
        "Mean slowdowns: {}. A request that is off-loaded may have to be read by the idle back-end, which costs most while \
         caches are cold or small.",
        slowdowns(days, &contenders, IMPROVED_CACHE)
    )
});

pub(super) const BOTTLENECK: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let cell = DayRun::quiet(ADAPTLOAD, true);
    format!(
        "The disks were used {} % of the time and the networks {} %. How many rare files are requested in these hours is \
         not published, and the day was fitted to the coefficient of variation of sizes, not to the use of disks.",
        range(days, |r| percent(disks(r, cell, QUIET_S))),
        range(days, |r| percent(networks(r, cell, QUIET_S))),
    )
});

pub(super) const BUSY: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    format!(
        "JSQ's response times were {} times AdaptLoad's. How far JSQ is ahead, if it is, depends on how full the network is: \
         AdaptLoad used it {} % of the time in this period.",
        range(days, |r| peak_response(r, JSQ, ADAPTLOAD)),
        range(days, |r| percent(networks(r, DayRun::day(ADAPTLOAD, 25), PEAK_S))),
    )
});

pub(super) const BUSY_LARD: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    format!(
        "JSQ's response times were {} times LARD's. Likely the load decides, as for AdaptLoad: LARD used the network {} % of \
         the time in this period.",
        range(days, |r| peak_response(r, JSQ, LARD_BEST)),
        range(days, |r| percent(networks(r, DayRun::day(LARD_BEST, 25), PEAK_S))),
    )
});

pub(super) const CLASSES: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "By the model's costs a read alone takes 350 times as long as the transmission of a document of this size, so what \
     waits for a disk is above 100, and from 20 to 100 is only what waits that long for the network. Arrivals are spread \
     evenly within a minute here, and nothing finer is known of the real ones.",
);

pub(super) const CLUSTERS_LARD: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    format!(
        "Likely first reads: AdaptLoad gives most of them to one back-end, LARD spreads them.{}",
        in_short(days, " They weigh more in a shortened day.")
    )
});

pub(super) const COLD: AdaptLoadExplanation =
    AdaptLoadExplanation::Reason("Depends on how many files are rare, which is not published.");

pub(super) const CONNECTIONS: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let one = |contender: Contender| {
        let with = DayRun::connections(contender);
        format!("{} {}", contender.name(), range(days, |r| r.slowdown(with)))
    };
    format!(
        "Mean slowdowns without: {}; with: {}.",
        slowdowns(days, &[ADAPTLOAD, JSQ, LARD_BEST], 15),
        [ADAPTLOAD, JSQ, LARD_BEST].map(one).join(", "),
    )
});

pub(super) const CROSSOVER: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let of = |r: &AdaptLoadResults, cache| r.warm()?.ratio(JSQ, ADAPTLOAD, cache);
    format!(
        "After the cold start JSQ's slowdown was {} times AdaptLoad's at caches of 25 %, and {} times at 60 %. Where JSQ \
         catches up depends on the load.{}",
        range(days, |r| of(r, 25)),
        range(days, |r| of(r, 60)),
        in_short(days, " In a shortened day its first reads weigh more, and the two need not cross."),
    )
});

pub(super) const DYNAMIC_GAP: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let ratio = |r: &AdaptLoadResults, share| {
        let slowdown = |contender| r.slowdown(DayRun::dynamic(contender, share));
        Some(slowdown(JSQ)? / slowdown(ADAPTLOAD)?)
    };
    let warm = |r: &AdaptLoadResults, share| ratio(&r.warm()?, share);
    format!(
        "JSQ's slowdown was {} times AdaptLoad's at 30 % and {} times at 70 %, after the cold start {} and {} times. \
         Requests that wait for a disk decide on a mean slowdown, and the dynamic ones wait for none.",
        range(days, |r| ratio(r, 30)),
        range(days, |r| ratio(r, 70)),
        range(days, |r| warm(r, 30)),
        range(days, |r| warm(r, 70)),
    )
});

pub(super) const EVENLY: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "The mean over the points is taken, quiet ones included, where a few large files weigh.",
);

pub(super) const EVEN_LARD: AdaptLoadExplanation =
    AdaptLoadExplanation::Reason("LARD's thresholds are not in the paper.");

pub(super) const FAIR_JSQ: AdaptLoadExplanation =
    AdaptLoadExplanation::Reason("Depends on the load, which the paper does not state but for one size.");

pub(super) const FIRST_READS: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "With the cold start AdaptLoad gives most first reads to one back-end, the one with the small files, while LARD spreads them.",
);

pub(super) const JSQ_SMALL: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    format!(
        "JSQ used the disks {} % of the time. How far it falls behind depends on popularity, which is not published.",
        range(days, |r| percent(r.get(DayRun::day(JSQ, 5))?.run.utilization.disk)),
    )
});

pub(super) const LARD_LARGE_CACHES: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let of = |r: &AdaptLoadResults| r.ratio(ADAPTLOAD, LARD_BEST, IMPROVED_CACHE);
    format!(
        "At 60 % AdaptLoad's slowdown was {} times LARD's, after the cold start {} times. With the cold start its first reads \
         decide, most of which AdaptLoad gives to one back-end.",
        range(days, of),
        range(days, |r| of(&r.warm()?)),
    )
});

pub(super) const LARD_SMALL: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let misses = |contender| {
        range(days, move |r| percent(r.hit_ratio(DayRun::day(contender, 5))).map(|hits| 100.0 - hits))
    };
    format!(
        "At 5 % AdaptLoad missed {} % of the requests and LARD {} %; likely LARD's misses decide after the cold start, \
         and AdaptLoad's first reads, most of them on one back-end, with it.",
        misses(ADAPTLOAD),
        misses(LARD_BEST),
    )
});

pub(super) const LARGE: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let slow_of = |contender| range(days, move |r| slow(r, contender, 19..=22));
    format!(
        "A read of a file this large alone takes more than five times its transmission, so that the share is one of hits. \
         AdaptLoad keeps all of these files in one cache: {} % of its answers were at 5 or more, {} % of JSQ's and {} % of \
         LARD's.",
        slow_of(ADAPTLOAD),
        slow_of(JSQ),
        slow_of(LARD_BEST),
    )
});

pub(super) const LARD_SPIKE: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let of = |contender| range(days, move |r| spike_of(r, contender, 15));
    format!("AdaptLoad's largest was {} times its median, LARD's {} times.", of(ADAPTLOAD), of(LARD_BEST))
});

pub(super) const NOT_EXPLAINED: AdaptLoadExplanation = AdaptLoadExplanation::Reason("Not explained.");

pub(super) const OSCILLATIONS: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let misses = |contender| {
        range(days, move |r| percent(r.mean_within(DayRun::day(contender, 5), QUIET_S, |p| p.miss_ratio)))
    };
    format!(
        "LARD missed {} % of the requests in this period, AdaptLoad {} %.",
        misses(LARD_BEST),
        misses(ADAPTLOAD)
    )
});

pub(super) const OTHER_DRIFT: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "The drift is fitted to this with one seed. Rows of the log without a body, which are no transfers, may be more frequent at \
     some hours than at others.",
);

pub(super) const PEAK: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let heavy = DayRun::peak(ADAPTLOAD, true);
    let use_in = |period| range(days, move |r| percent(networks(r, heavy, period)));
    format!(
        "The paper's network is full at 65,800 s. The synthetic day's is fullest at {} s: under heavy load it was used {} % \
         of the time before 65,800 s and {} % from then on. What the paper saw where its network is full is to be expected \
         where this one is fullest.",
        range(days, |r| full_at_s(r, heavy)),
        use_in(JUDGED_PEAK_S[0]),
        use_in(JUDGED_PEAK_S[1]),
    )
});

pub(super) const PEAK_LARD: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let misses = |contender| {
        range(days, move |r| percent(r.mean_within(DayRun::peak(contender, true), PEAK_S, |p| p.miss_ratio)))
    };
    format!(
        "Some files are a large part of all requests here, and LARD gives a file to one back-end, which is likely why: it \
         missed {} % of the requests from 58,000 to 68,000 s, AdaptLoad {} %.",
        misses(LARD_BEST),
        misses(ADAPTLOAD),
    )
});

pub(super) const PEAK_USE: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "The speed is fitted to these for the synthetic day in full with generator `drifting` and seed 1; another workload needs \
     another --peak-use.",
);

pub(super) const QUIET: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let of = |heavy| range(days, move |r| percent(disks(r, DayRun::quiet(JSQ, heavy), QUIET_S)));
    format!(
        "JSQ used the disks {} % of the time under light load and {} % under heavy load.",
        of(false),
        of(true)
    )
});

pub(super) const QUIET_LARD: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let ahead = |r: &AdaptLoadResults| {
        points_ahead(r, DayRun::quiet(ADAPTLOAD, false), DayRun::quiet(LARD_BEST, false), QUIET_S)
    };
    let rest = |r: &AdaptLoadResults| {
        in_period(r, DayRun::quiet(ADAPTLOAD, false), DayRun::quiet(LARD_BEST, false), QUIET_S)
    };
    format!(
        "AdaptLoad was ahead at {} % of the points and {} times LARD's slowdown on the whole: bursts of new small files, \
         which AdaptLoad sends to one back-end, decide on the mean.",
        range(days, ahead),
        range(days, rest),
    )
});

pub(super) const RECOVERY: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "The paper says in the next group of requests, so the next point is judged; disks that have a backlog take longer. The \
     burst is put into the day, and ends where none of the paper's is known to.",
);

pub(super) const RESPONSES: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "Where disks are overloaded delays are much longer than any service, and the two measures differ little.",
);

pub(super) const SAMPLING: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let all = BATCHES.iter().flat_map(|&batch| ALPHAS.map(|alpha| Contender::Sampling(batch, alpha)));
    format!("Mean slowdowns: {}.", slowdowns(days, &all.collect::<Vec<_>>(), 15))
});

pub(super) const SHORTENED: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    match days.iter().map(|r| r.day.scale).find(|&scale| scale < 1.0) {
        Some(scale) => format!(
            "In a shortened day (here {:.0} % of the requests, for all files) first reads weigh more.",
            100.0 * scale
        ),
        None => "Not explained.".to_owned(),
    }
});

pub(super) const SIZES: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "Depends on how sizes go with popularity, of which only mean and median are published.",
);

pub(super) const SLIGHTLY: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let of = |r: &AdaptLoadResults, cache| r.warm()?.ratio(ADAPTLOAD, JSQ, cache);
    format!(
        "After the cold start AdaptLoad's slowdown was {} times JSQ's at caches of 60 %.{}",
        range(days, |r| of(r, 60)),
        in_short(
            days,
            " First reads of JSQ, which reads every file on each back-end, weigh more in a shortened day."
        ),
    )
});

pub(super) const SMALL: AdaptLoadExplanation = AdaptLoadExplanation::Reason(
    "How much of the working set is in use at a time decides, of which nothing is published.",
);

pub(super) const SPIKE: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    format!(
        "The largest slowdown from 35,000 to 58,000 s was at {} s, {} times the usual one: bursts of new small files make \
         spikes here too.",
        range(days, |r| largest_spike(r).map(|(time_s, _)| time_s)),
        range(days, |r| Some(largest_spike(r)?.1 / usual(r, ADAPTLOAD, 15)?)),
    )
});

pub(super) const TINY: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    format!(
        "Depends on the load: with short queues even the smallest wait little. {} % of AdaptLoad's answers below 64 bytes \
         were at 5 or more.",
        range(days, |r| class(r, ADAPTLOAD, 1..=6, 0).map(|share| 100.0 - share)),
    )
});

pub(super) const UNEQUAL: AdaptLoadExplanation = AdaptLoadExplanation::Measured(|days| {
    let both = |contender, weighted| {
        let cell = DayRun::unequal(contender, weighted);
        let (cold, warm) = (range(days, |r| r.slowdown(cell)), range(days, |r| r.warm()?.slowdown(cell)));
        format!("{cold} (after the cold start {warm})")
    };
    let use_of = |fast: bool| {
        range(days, move |r| {
            let (fastest, slowest) = r
                .get(DayRun::unequal(ADAPTLOAD, true))?
                .run
                .per_backend
                .split_at_checked(FAST_BACKENDS.into())?;
            let used: Vec<f64> = if fast { fastest } else { slowest }.iter().map(|b| 100.0 * b.cpu).collect();
            Some(mean(&used))
        })
    };
    format!(
        "Mean slowdowns: AdaptLoad with weights {}, without {}, JSQ {}. With weights the fast networks were used {} % of the time \
         and the slow ones {} %. AdaptLoad gives small files to the first back-ends, which are the fast ones here: without weights \
         these have less to do, which is likely why small files, most of the mean, fare better then.",
        both(ADAPTLOAD, true),
        both(ADAPTLOAD, false),
        both(JSQ, true),
        use_of(true),
        use_of(false),
    )
});
