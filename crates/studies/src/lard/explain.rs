//! Why claims do not hold on every workload. Figures are of the runs that are explained, or follow from the paper and the
//! workload's published size.

use plimsoll_report::Run;

use super::plan::{Family, Variant, hot, ibm, rice};
use super::results::{GMS, LARD, LARD_R, LB, LB_GC, LardResults, View, WRR};
use crate::not_run;

/// Why a claim does not hold.
#[derive(Clone, Copy)]
pub(super) enum LardExplanation {
    /// There is nothing to add.
    None,
    /// A reason without figures of any run.
    Reason(&'static str),
    /// A reason with figures of the runs that are explained.
    Measured(fn(&LardResults) -> String),
}

impl LardExplanation {
    pub(super) fn words(self, results: &LardResults) -> String {
        match self {
            Self::None => String::new(),
            Self::Reason(text) => text.to_owned(),
            Self::Measured(text) => not_run::told(text(results)),
        }
    }
}

/// All values on the workloads of a kind.
fn values(results: &LardResults, of: fn(Family) -> bool, value: impl Fn(&View<'_>) -> Vec<f64>) -> Vec<f64> {
    results.instances(of).into_iter().flat_map(|instance| value(&results.on(instance))).collect()
}

/// From the least to the greatest.
fn range(mut values: Vec<f64>) -> String {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    match (values.first(), values.last()) {
        (Some(least), Some(most)) if values.len() > 1 => format!("{} to {}", short(*least), short(*most)),
        (Some(only), _) => short(*only),
        _ => not_run::FIGURE.to_owned(),
    }
}

/// Two decimals, or three where two would say little.
fn short(value: f64) -> String {
    if value.abs() < 0.1 { format!("{value:.3}") } else { format!("{value:.2}") }
}

/// How many of the values satisfy the condition, out of how many.
fn count(values: &[f64], holds: impl Fn(f64) -> bool) -> String {
    format!("{} of {}", values.iter().filter(|&&value| holds(value)).count(), values.len())
}

pub(super) const EXPLAIN_LOCALITY: LardExplanation = LardExplanation::Reason(
    "The generator `irm` requests rare targets all over the trace instead of within a window of it. It meets the published \
     coverage figures as exactly as the others, but eight caches of 32 MB then miss more than the paper reports: the \
     published statistics do not pin the locality in time, on which LARD feeds.",
);

pub(super) const EXPLAIN_LB: LardExplanation = LardExplanation::Measured(|results| {
    let ratio = |of, n| range(values(results, of, |v| v.ratio(LB, WRR, n).into_iter().collect()));
    format!(
        "Rendezvous hashing partitions the Rice working set so evenly that LB misses as little as LB/GC (figure 8), and misses \
         decide on this trace: what LB loses by idle back-ends (figure 9) is less than what WRR loses at the disk. On the IBM \
         trace, whose hot targets a hash cannot spread, LB has {} times WRR's throughput on sixteen back-ends, on the Rice \
         trace {} times. The paper does not say which hash it used.",
        ratio(ibm, 16),
        ratio(rice, 16),
    )
});

pub(super) const EXPLAIN_LINEAR: LardExplanation = LardExplanation::Reason(
    "Where requests have no locality in time (generator `irm`), ten caches do not hold the working set yet, so further \
     back-ends still lower the miss ratio and the speedup stays superlinear.",
);

pub(super) const EXPLAIN_GMS: LardExplanation = LardExplanation::Measured(|results| {
    let share =
        |of, least| values(results, of, |v| v.over(least, |n| Some(100.0 * v.ratio(GMS, LARD_R, n)?)));
    let four = values(results, ibm, |v| v.ratio(GMS, LARD_R, 4).into_iter().collect());
    format!(
        "WRR/GMS reaches {} % of LARD/R on the Rice trace and {} % on the IBM trace, where it is ahead on four back-ends on {} \
         workloads. Directory and replacement are free, as in the paper. Likely reasons are what it does not specify: here a \
         copy costs its sender nothing, the last copy of a file is kept as long as some memory holds something older, whole \
         files move at once, and duplicates displace other files only in the memory that serves them.",
        range(share(rice, 2)),
        range(share(ibm, 2)),
        count(&four, |ratio| ratio > 1.0),
    )
});

pub(super) const EXPLAIN_GMS_SHORT: LardExplanation = LardExplanation::Measured(|results| {
    let ratios = |of| values(results, of, |v| v.over(2, |n| v.ratio(GMS, LARD, n)));
    format!(
        "WRR/GMS has {} times LARD's throughput on the Rice trace and {} times on the IBM trace, over the cluster sizes. What the paper \
         leaves open of its global memory (7j) decides.",
        range(ratios(rice)),
        range(ratios(ibm)),
    )
});

pub(super) const EXPLAIN_TENFOLD: LardExplanation = LardExplanation::Reason(
    "Under WRR every back-end must read every file once, whatever its cache: on eight back-ends up to 8 × 37,703 reads, 13 % of \
     2.3 million requests. A trace several times as long would dilute these compulsory misses; the paper does not give the \
     length of its trace.",
);

pub(super) const EXPLAIN_COMPULSORY: LardExplanation = LardExplanation::Reason(
    "The rise with the number of back-ends is made of compulsory misses: under WRR every back-end reads every file it is asked \
     for at least once, up to 16 × 37,703 times in 2.3 million requests. With more locality in time a cache is better, and \
     these reads weigh more. A longer trace would flatten the curve.",
);

pub(super) const EXPLAIN_IDLE: LardExplanation = LardExplanation::Reason(
    "Differences of a few hundredths of a percentage point are within what the drain at the end of the trace makes.",
);

pub(super) const EXPLAIN_IBM: LardExplanation = LardExplanation::Reason(
    "How much is left to gain beyond four back-ends depends on how much of the last per cent of the requests four caches of 32 \
     MB hold, which differs between equally well calibrated workloads.",
);

pub(super) const EXPLAIN_IBM_GMS: LardExplanation = LardExplanation::Measured(|results| {
    let more = values(results, ibm, |v| {
        let misses = |strategy| v.miss_percent(strategy, 16);
        misses(GMS).zip(misses(LARD_R)).map(|(gms, lard_r)| gms - lard_r).into_iter().collect()
    });
    format!(
        "WRR/GMS misses more than LARD/R on sixteen back-ends on {} workloads, because several memories hold the same file. How \
         much that costs depends on how the global memory treats duplicates, which the paper does not specify.",
        count(&more, |difference| difference > 0.0),
    )
});

/// The largest less the smallest use of the disks of a run's back-ends.
fn disk_spread(run: &Run) -> f64 {
    let disks = || run.per_backend.iter().filter_map(|backend| backend.disk);
    disks().fold(f64::MIN, f64::max) - disks().fold(f64::MAX, f64::min)
}

pub(super) const EXPLAIN_HOT: LardExplanation = LardExplanation::Measured(|results| {
    let both = |value: &dyn Fn(&Run) -> Option<f64>| {
        values(results, hot, |v| {
            let of = |strategy| value(v.run(strategy, 8, Variant::Base)?);
            of(LARD_R).zip(of(LARD)).map(|(lard_r, lard)| lard_r - lard).into_iter().collect()
        })
    };
    let idle = values(results, hot, |v| {
        [LARD, LARD_R].iter().filter_map(|strategy| v.idle_percent(strategy, 8)).collect()
    });
    format!(
        "Gains lie on both sides of zero. LARD/R misses less than LARD on {} of these workloads, and back-ends are underutilized \
         for {} % of the time. But equal numbers of connections are not equal work: the disks of the back-ends differ more in \
         utilization under LARD/R on {}. Some back-ends can be bound by the disk while others are bound by the CPU, and neither \
         policy sees which it is.",
        count(&both(&|run| run.miss_ratio), |difference| difference < 0.0),
        range(idle),
        count(&both(&|run| Some(disk_spread(run))), |difference| difference > 0.0),
    )
});

pub(super) const EXPLAIN_CPU: LardExplanation = LardExplanation::Measured(|results| {
    let alone = values(results, rice, |v| {
        let gain = || Some(v.rps_of(WRR, 8, Variant::CpuAlone(4))? / v.rps(WRR, 8)?);
        gain().into_iter().collect()
    });
    format!(
        "The gain is the larger cache's: with four times the CPU and the base cache WRR has {} times the throughput (11b).",
        range(alone)
    )
});

pub(super) const EXPLAIN_CPU_LARD_R: LardExplanation =
    LardExplanation::Reason("The difference between LARD/R and LARD is small at either speed.");

pub(super) const EXPLAIN_DISKS: LardExplanation = LardExplanation::Reason(
    "Under WRR every back-end reads every file that it is asked for at least once, and up to sixteen times 37,703 reads in 2.3 \
     million requests keep even four disks busy. A longer trace would bring WRR nearer; the paper does not give the length of \
     its trace.",
);

pub(super) const EXPLAIN_DISKS_LARD: LardExplanation = LardExplanation::Reason(
    "Where LARD/R still misses more than the paper's 2 to 4 % (generator `irm`), its back-ends are bound by the disk and further \
     disks help.",
);

pub(super) const EXPLAIN_DELAY: LardExplanation = LardExplanation::Reason(
    "The cluster is saturated, so mean delay and throughput are one claim: throughput × delay = S (Little's law), and the ratio of \
     delays is the inverse of the ratio of throughputs.",
);

pub(super) const EXPLAIN_LRU: LardExplanation = LardExplanation::Reason(
    "How much LRU loses depends on how many large, rarely requested files there are to push small ones out, which the published \
     statistics leave open.",
);

pub(super) const EXPLAIN_IBM_RATIO: LardExplanation = LardExplanation::Measured(|results| {
    let misses =
        |strategy, n| range(values(results, ibm, |v| v.miss_percent(strategy, n).into_iter().collect()));
    format!(
        "The ratio is not the same from four back-ends on but grows with the cluster: under WRR each back-end reads every file it is \
         asked for at least once, so WRR misses {} % on four back-ends and {} % on sixteen, while LARD/R misses {} % and {} %, and WRR \
         stays bound by the disk. A longer trace would dilute the compulsory misses and flatten the curve.",
        misses(WRR, 4),
        misses(WRR, 16),
        misses(LARD_R, 4),
        misses(LARD_R, 16),
    )
});

pub(super) const EXPLAIN_IBM_FEW: LardExplanation = LardExplanation::Reason(
    "On two or four back-ends, at equal numbers of connections, some back-ends can be bound by the disk and others by the CPU. What is \
     lost so can exceed what the larger common cache gains where the cache of one back-end does well already.",
);

pub(super) const EXPLAIN_IBM_MATCH: LardExplanation = LardExplanation::Measured(|results| {
    let means = values(results, ibm, |v| {
        let ratios = v.over(2, |n| v.ratio(LARD_R, LARD, n));
        vec![ratios.iter().sum::<f64>() / ratios.len().max(1) as f64]
    });
    format!(
        "Averaged over the cluster sizes LARD/R has {} times LARD's throughput; at single sizes they differ in either direction. There \
         one back-end more or less that is bound by the disk while others are bound by the CPU counts for much, and neither policy sees \
         which it is.",
        range(means)
    )
});

pub(super) const EXPLAIN_CHESS: LardExplanation = LardExplanation::Measured(|results| {
    let chess = |family: Family| family == Family::Chess;
    let misses = |n| range(values(results, chess, |v| v.miss_percent(WRR, n).into_iter().collect()));
    let ratios = values(results, chess, |v| {
        v.over(2, |n| v.ratio(LARD, WRR, n).zip(v.ratio(LARD_R, WRR, n)).map(|(a, b)| a.min(b)))
    });
    format!(
        "LARD and LARD/R have {} times WRR's throughput (the lower of the two, over the sizes). Under WRR each \
         back-end reads every file it is asked for at least once, so WRR misses {} % on two back-ends and {} % on sixteen. A longer trace \
         would dilute these reads.",
        range(ratios),
        misses(2),
        misses(16),
    )
});

pub(super) const EXPLAIN_REPLICATION: LardExplanation = LardExplanation::Measured(|results| {
    let of = |least: usize, most: usize| {
        range(values(results, rice, |v| v.sized(WRR, least..=most, |n| v.ratio(LARD_R, LARD, n))))
    };
    format!(
        "Where disks still decide on the smaller of these clusters replication has next to nothing to gain: LARD/R has {} times LARD's \
         throughput on seven to ten back-ends, {} times on sixteen.",
        of(7, 10),
        of(16, 16),
    )
});

pub(super) const EXPLAIN_REPLICA_MISSES: LardExplanation = LardExplanation::Measured(|results| {
    let misses = |strategy| range(values(results, rice, |v| v.over(7, |n| v.miss_percent(strategy, n))));
    format!(
        "On seven or more back-ends LARD/R missed {} % and LARD {} %. Not explained.",
        misses(LARD_R),
        misses(LARD)
    )
});

pub(super) const EXPLAIN_REPLICA_IDLE: LardExplanation = LardExplanation::Measured(|results| {
    let idle = |strategy| range(values(results, rice, |v| v.over(7, |n| v.idle_percent(strategy, n))));
    format!(
        "LARD/R is idle {} % of the time and LARD {} %. LARD moves a target as soon as one back-end has less than T_low, LARD/R must add or \
         remove a member of its set; a likely reason is that this takes longer to reach a back-end that runs empty.",
        idle(LARD_R),
        idle(LARD),
    )
});

pub(super) const EXPLAIN_MISSES: LardExplanation = LardExplanation::Measured(|results| {
    let misses =
        |strategy| range(values(results, rice, |v| v.miss_percent(strategy, 16).into_iter().collect()));
    format!(
        "On sixteen back-ends LARD missed {} %, LARD/R {} % and LB/GC {} %. Not explained.",
        misses(LARD),
        misses(LARD_R),
        misses(LB_GC),
    )
});

pub(super) const EXPLAIN_THRESHOLDS: LardExplanation = LardExplanation::Measured(|results| {
    let all = |value: &dyn Fn(&View<'_>, u32) -> Option<f64>| {
        super::plan::T_HIGH
            .map(|t_high| {
                let values = values(results, rice, |v| value(v, t_high).into_iter().collect());
                format!("{}: {}", t_high - 25, range(values))
            })
            .join("; ")
    };
    format!(
        "By T_high − T_low, with T_low = 25. Requests per second: {}. Difference of mean delays between back-ends in seconds: {}.",
        all(&|v, t_high| v.rps_of(LARD, 8, Variant::Thresholds(25, t_high))),
        all(&|v, t_high| v.delay_difference_s(Variant::Thresholds(25, t_high))),
    )
});

pub(super) const EXPLAIN_HIGH_T_LOW: LardExplanation = LardExplanation::Measured(|results| {
    let one = |&(t_low, t_high): &(u32, u32)| {
        // S of eight back-ends, section 2.4.
        let under_way = |t_low: u32, t_high: u32| f64::from(7 * t_high + t_low - 1);
        let throughput = values(results, rice, |v| {
            let rps = |t_low, t_high| v.rps_of(LARD, 8, Variant::Thresholds(t_low, t_high));
            rps(t_low, t_high).zip(rps(25, 65)).map(|(high, base)| high / base).into_iter().collect()
        });
        let more = under_way(t_low, t_high) / under_way(25, 65);
        format!("{t_low} and {t_high}: {more:.2} times S, {} times the throughput", range(throughput))
    };
    format!(
        "The cluster is saturated, so the mean delay is S over the throughput (Little's law), and S = 7·T_high + T_low − 1. Against 25 \
         and 65: {}. The paper does not say how T_high went with T_low, nor at which load the increase was mild.",
        super::plan::HIGH_T_LOW.iter().map(one).collect::<Vec<_>>().join("; "),
    )
});

pub(super) const EXPLAIN_DELAY_RICE: LardExplanation = LardExplanation::Reason(
    "The paper does not say for which cluster size. The cluster is saturated, so by Little's law throughput × delay = S, and the ratio of \
     delays is the inverse of the ratio of throughputs: the paper's own 3.9 on eight back-ends gives 25.6 %, its 4.5 on sixteen 22 %. So the \
     sentence can be meant for large clusters only, and the claim is not independent of the one about throughput.",
);
