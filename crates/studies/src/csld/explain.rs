//! Why some claims do not hold, from the runs that they are about.

use super::cells::{
    CHEAP_MIXES, HEAVY, LIGHT, POLL_PERIODS_MS, counted_from_syn, low_locality, of_case, of_rate, persistent,
    short_trips,
};
use super::mixes::{of_figure, shares};
use super::plan::{WebRun, WebStrategy as S};
use super::predictions::Predictions;
use super::published::{TABLE_4, TABLE_5};
use super::results::{CsldResults, seed_cell};

type Seeds<'a> = &'a [CsldResults];

fn latency(seeds: Seeds<'_>, run: WebRun) -> String {
    seed_cell(seeds, (1.0, 4), |r| r.latency_s(run))
}

fn cpu(seeds: Seeds<'_>, run: WebRun) -> String {
    seed_cell(seeds, (1.0, 1), |r| r.cpu_percent(run))
}

fn refused(seeds: Seeds<'_>, run: WebRun) -> String {
    seed_cell(seeds, (1.0, 2), |r| r.refused_percent(run))
}

fn cases(numbers: &[u32], words: impl Fn(u32) -> String) -> String {
    numbers.iter().map(|&n| format!("case {n} {}", words(n))).collect::<Vec<_>>().join(", ")
}

/// How near to its limit the cluster is, where small differences of cost become large ones of latency.
pub(super) fn saturation(seeds: Seeds<'_>) -> String {
    let busy = cases(&[1, 2, 3, 4, 5, 6], |n| cpu(seeds, of_case(S::RoundRobin, n)));
    let rates = TABLE_5
        .iter()
        .filter(|(rate, _)| seeds.iter().any(|r| r.cpu_percent(of_rate(S::RoundRobin, *rate)).is_some()));
    let rates: Vec<String> = rates
        .map(|&(rate, _)| {
            format!("{:.1} K/s {}", f64::from(rate) / 1000.0, cpu(seeds, of_rate(S::RoundRobin, rate)))
        })
        .collect();
    let some = |words: String| if words.is_empty() { words } else { format!("; {words}") };
    format!(
        "CPUs are busy with RR, in per cent: {busy}{}. Where that is near to 100, latency follows the last per cent of the CPU costs, \
         which the paper gives to two or three digits, and the seed.",
        some(rates.join(", "))
    )
}

/// The most idealized variant beside the others.
pub(super) fn ideal(seeds: Seeds<'_>) -> String {
    let of = |n| {
        let ratio = |s| seed_cell(seeds, (1.0, 3), |r| r.ratio(of_case(S::WrrI, n), of_case(s, n)));
        format!("{} of RR, {} of CSLD", ratio(S::RoundRobin), ratio(S::Csld))
    };
    format!("WRR_i's latency: {}.", cases(&[1, 2, 3, 4, 5, 6], of))
}

/// Light load, where weights react to little.
pub(super) fn light(seeds: Seeds<'_>) -> String {
    let of = |n| {
        format!(
            "RR {}, WRR_a {}, CSLD {}",
            latency(seeds, of_case(S::RoundRobin, n)),
            latency(seeds, of_case(S::WrrA, n)),
            latency(seeds, of_case(S::Csld, n))
        )
    };
    format!(
        "Latencies in seconds with light load: {}. WRR_a also pays for its measurements, \
         which take 1 % of the CPUs.",
        cases(&LIGHT, of)
    )
}

/// Polls, whose answers are late under load.
pub(super) fn polls(seeds: Seeds<'_>) -> String {
    let of = |n| {
        let lost = seed_cell(seeds, (1.0, 3), |r| r.lost_percent(of_case(S::WRR_P, n)));
        format!(
            "{} s, {} % refused, {lost} % lost",
            latency(seeds, of_case(S::WRR_P, n)),
            refused(seeds, of_case(S::WRR_P, n))
        )
    };
    format!(
        "WRR_p: {}. Differences of load are reduced to t_diff, so a poll moves at most a mean share of a period's connections from one server \
         to another, and a server that is late to answer is not left alone for long.",
        cases(&[1, 2, 3, 4, 5, 6], of)
    )
}

/// Other periods of polls.
pub(super) fn poll_periods(seeds: Seeds<'_>) -> String {
    let of = |n| {
        let periods = POLL_PERIODS_MS.map(|period_ms| {
            format!("{period_ms} ms {}", latency(seeds, of_case(S::WrrPolls { period_ms }, n)))
        });
        format!("500 ms {}, {}", latency(seeds, of_case(S::WRR_P, n)), periods.join(", "))
    };
    format!("Latencies of WRR_p in seconds: {}.", cases(&HEAVY, of))
}

/// What measuring costs.
pub(super) fn overhead(seeds: Seeds<'_>) -> String {
    let of = |n| {
        let of = |s: S| {
            format!(
                "{} {} s at {} % CPU",
                s.title(),
                latency(seeds, of_case(s, n)),
                cpu(seeds, of_case(s, n))
            )
        };
        [S::RoundRobin, S::WrrA, S::WrrDearA].map(of).join(", ")
    };
    format!(
        "{}. Measuring takes 1 or 2 % of the CPU; it matters where no more than that is left.",
        cases(&[2, 6], of)
    )
}

/// Cells without an asterisk where connections were lost.
pub(super) fn lost_elsewhere(seeds: Seeds<'_>) -> String {
    let mut found = Vec::new();
    for (strategy, case) in S::TABLE_4.into_iter().flat_map(|s| TABLE_4.iter().map(move |case| (s, case))) {
        let run = of_case(strategy, case.number);
        let lost = seeds.iter().filter_map(|r| r.lost_percent(run)).fold(0.0, f64::max);
        if lost > 0.0 && case.of(strategy).is_some_and(|cell| !cell.1) {
            found.push(format!("{} in case {} (at most {lost:.3} %)", strategy.title(), case.number));
        }
    }
    format!("Connections were lost with {}.", found.join(", "))
}

/// Refusals at 6.3 K/s.
pub(super) fn rejections(seeds: Seeds<'_>) -> String {
    let of = |s: S| {
        let run = of_rate(s, 6300);
        let lost = seed_cell(seeds, (1.0, 2), |r| r.lost_percent(run));
        format!(
            "{} {} % of attempts refused, {lost} % of connections lost, CPUs {} % busy",
            s.title(),
            refused(seeds, run),
            cpu(seeds, run)
        )
    };
    format!(
        "{}. At this rate the cluster is at its limit: what is refused depends on which side of it the mean cost is, and on how long it is run.",
        S::FIGURES.map(of).join("; ")
    )
}

/// Where CSLD gets ahead of `WRR_a`.
pub(super) fn crossing(seeds: Seeds<'_>, number: u32) -> String {
    let Some(first) = seeds.first() else { return String::new() };
    let at = |permille: u32| {
        let ratio = |r: &CsldResults| {
            r.ratio(of_figure(S::Csld, number, permille), of_figure(S::WrrA, number, permille))
        };
        format!("{:.1} % {}", f64::from(permille) / 10.0, seed_cell(seeds, (1.0, 3), ratio))
    };
    let points: Vec<String> = shares(first, number).into_iter().map(at).collect();
    format!("CSLD's latency over WRR_a's by share of dynamic requests: {}.", points.join(", "))
}

/// Shapes of curves.
pub(super) fn valleys(seeds: Seeds<'_>) -> String {
    let Some(first) = seeds.first() else { return String::new() };
    let curve = |number: u32| {
        let at = |permille: u32| {
            let ratio = |r: &CsldResults| {
                r.ratio(of_figure(S::Csld, number, permille), of_figure(S::RoundRobin, number, permille))
            };
            format!("{:.1} % {}", f64::from(permille) / 10.0, seed_cell(seeds, (1.0, 2), ratio))
        };
        let points: Vec<String> = shares(first, number).into_iter().map(at).collect();
        format!("figure {number}: {}", points.join(", "))
    };
    format!("CSLD's latency over RR's. {}.", (7..=11).map(curve).collect::<Vec<_>>().join("; "))
}

/// Refusals at the peak of figure 7.
pub(super) fn peak_refusals(seeds: Seeds<'_>) -> String {
    let of = |s: S| {
        let run = of_figure(s, 7, 136);
        let count = seed_cell(seeds, (1.0, 0), |r| r.refused(run));
        format!(
            "{} {count} attempts refused ({} %), CPUs {} % busy",
            s.title(),
            refused(seeds, run),
            cpu(seeds, run)
        )
    };
    format!(
        "With {{3}} at 13.6 %: {}. How long the peak lasts decides, and the paper does not say it.",
        S::FIGURES.map(of).join("; ")
    )
}

/// Gains with cheap classes.
pub(super) fn cheap_classes(seeds: Seeds<'_>) -> String {
    let of = |mix: (u64, u32)| {
        let rr = WebRun::figure(S::RoundRobin, mix);
        let gain = |s| seed_cell(seeds, (100.0, 1), |r| Some(1.0 - r.ratio(WebRun::figure(s, mix), rr)?));
        format!(
            "{{{}}} at {:.1} %: WRR_i {}, WRR_a {}, CSLD {}",
            mix.0,
            f64::from(mix.1) / 10.0,
            gain(S::WrrI),
            gain(S::WrrA),
            gain(S::Csld)
        )
    };
    format!("Gains over RR in per cent. {}.", CHEAP_MIXES.map(of).join("; "))
}

/// HTTP/1.1.
pub(super) fn persistent_words(seeds: Seeds<'_>, n: u32) -> String {
    let strategies = [S::RoundRobin, S::WrrI, S::WrrA, S::WrrAHalf, S::Csld, S::CsldAdaptive];
    strategies.map(|s| format!("{} {}", s.title(), latency(seeds, persistent(s, n)))).join(", ")
}

/// The same for the heavy cases.
pub(super) fn persistent_cases(seeds: Seeds<'_>) -> String {
    format!("Latencies in seconds with HTTP/1.1: {}.", cases(&HEAVY, |n| persistent_words(seeds, n)))
}

/// How predictions of misses did.
pub(super) fn predictions(seeds: Seeds<'_>) -> String {
    let of = |n| {
        let run = of_case(S::Csld, n);
        let percent = |value: fn(&Predictions) -> f64| {
            seed_cell(seeds, (100.0, 1), |r| Predictions::of(r, run).map(|p| value(&p)))
        };
        format!(
            "accuracy {}, precision {}, recall {}, always a hit {}",
            percent(Predictions::accuracy),
            percent(Predictions::precision),
            percent(Predictions::recall),
            percent(Predictions::always_hit)
        )
    };
    format!(
        "In per cent: {}. A miss is predicted once more was read than the cache holds, and by then the document is gone: no prediction of a \
         miss is wrong where precision is 100. Documents that hits have pushed down go earlier: these are the misses that are not predicted.",
        cases(&[1, 2, 3, 4, 5, 6], of)
    )
}

/// Low locality.
pub(super) fn locality(seeds: Seeds<'_>) -> String {
    let of =
        |n| S::FIGURES.map(|s| format!("{} {}", s.title(), latency(seeds, low_locality(s, n)))).join(", ");
    format!("Latencies in seconds with twice as many files: {}.", cases(&[1, 4], of))
}

/// Short round trips.
pub(super) fn trips(seeds: Seeds<'_>) -> String {
    let of =
        |n| S::FIGURES.map(|s| format!("{} {}", s.title(), latency(seeds, short_trips(s, n)))).join(", ");
    format!("Latencies in seconds with round trips of 20 ms: {}.", cases(&[1, 4], of))
}

/// Readings that were changed.
pub(super) fn controls(seeds: Seeds<'_>) -> String {
    let of = |n| {
        let strategies = [
            S::RoundRobin,
            S::Csld,
            S::CsldRunsOn,
            S::CsldUncleared,
            S::CsldFine,
            S::CsldStamped,
            S::CsldHits,
            S::WrrA,
            S::WrrDearLate,
        ];
        let words = strategies.map(|s| format!("{} {}", s.title(), latency(seeds, of_case(s, n)))).join(", ");
        format!("{words}, LC from the SYN {}", latency(seeds, counted_from_syn(n)))
    };
    format!("Latencies in seconds: {}.", cases(&HEAVY, of))
}

/// Thresholds that adapt.
pub(super) fn adaptive(seeds: Seeds<'_>) -> String {
    let of = |n| {
        format!(
            "fixed {}, adaptive {}",
            latency(seeds, of_case(S::Csld, n)),
            latency(seeds, of_case(S::CsldAdaptive, n))
        )
    };
    format!("Latencies in seconds: {}.", cases(&[1, 2, 3, 4, 5, 6], of))
}
