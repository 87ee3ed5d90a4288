//! The parameters of each workload with their defaults.

use super::answers::{ANSWER_COUNT, ANSWER_PARAMETERS};
use super::spec::Parameter;

const GENERATORS_OF_LARD: &[&str] = &["windowed", "irm", "stretched", "double_pareto"];

/// Defaults of one workload for the parameters that all have.
struct Defaults {
    generators: &'static [&'static str],
    targets: f64,
    requests: f64,
    rate: f64,
    cover_mib: [f64; 3],
    total_mib: f64,
    zipf: (f64, f64),
    sizes: (f64, f64, f64, f64),
    pairing: (f64, f64),
    window: (f64, f64),
}

/// Number of parameters that all workloads share.
const SHARED: usize = 19;
/// Number of parameters of the workloads that are fitted to a coverage curve.
const COVERED: usize = SHARED + 5;

/// Parameters of size and time of the trace.
const fn trace_parameters(d: &Defaults) -> [Parameter; 6] {
    [
        Parameter::choice("generator", d.generators, "which of the calibrated generators"),
        Parameter::count("targets", "", d.targets, (2.0, 1e7), "distinct targets"),
        Parameter::count("requests", "", d.requests, (2.0, 1e11), "requests, at least one per target"),
        Parameter::number(
            "rate",
            "1/s",
            d.rate,
            (0.0, 1e8),
            "mean rate of Poisson arrivals; 0: per-minute profile of the World Cup day",
        ),
        Parameter::number(
            "minute_s",
            "s",
            60.0,
            (0.001, 1e6),
            "length of a minute of the profile: below 60 the day runs faster",
        ),
        Parameter::number("total_mib", "MiB", d.total_mib, (0.001, 1e7), "bytes of all targets"),
    ]
}

/// Parameters of popularity.
const fn popularity_parameters(d: &Defaults) -> [Parameter; 6] {
    [
        Parameter::number(
            "exponent",
            "",
            d.zipf.0,
            (0.0, 5.0),
            "popularity falls with this power of the rank",
        ),
        Parameter::number("shift", "", d.zipf.1, (0.0, 1e6), "added to the rank; flattens the top"),
        Parameter::number("break_rank", "", 0.0, (0.0, 1e7), "rank from which tail_exponent holds; 0: none"),
        Parameter::number("tail_exponent", "", 0.0, (0.0, 5.0), "power of the rank beyond break_rank"),
        Parameter::number(
            "stretch_rank",
            "",
            0.0,
            (0.0, 1e7),
            "rank at which the exponential factor is 1/e; 0: no such factor",
        ),
        Parameter::number("stretch", "", 0.0, (0.0, 2.0), "power of the rank within the exponential factor"),
    ]
}

/// Parameters of the targets' sizes and lifetimes.
const fn shape_parameters(d: &Defaults) -> [Parameter; 7] {
    [
        Parameter::number(
            "size_sigma",
            "",
            d.sizes.0,
            (0.0, 4.0),
            "standard deviation of the logarithm of sizes",
        ),
        Parameter::number(
            "size_tail_share",
            "",
            d.sizes.1,
            (0.0, 1.0),
            "share of the targets in the Pareto tail of sizes",
        ),
        Parameter::number(
            "size_tail_exponent",
            "",
            d.sizes.2,
            (0.5, 5.0),
            "exponent of the Pareto tail of sizes",
        ),
        Parameter::number("size_max_mib", "MiB", d.sizes.3, (0.001, 1e6), "largest size drawn"),
        Parameter::number(
            "window_min",
            "",
            d.window.0,
            (0.001, 1.0),
            "shortest life of a target as a share of the trace",
        ),
        Parameter::number(
            "window_max",
            "",
            d.window.1,
            (0.001, 1.0),
            "longest life; between the two lengths are log-uniform",
        ),
        Parameter::count("window_from_rank", "", 501.0, (1.0, 1e7), "first rank that lives in a window only"),
    ]
}

/// The parameters of every workload.
const fn shared(d: &Defaults) -> [Parameter; SHARED] {
    let front: [Parameter; 12] = join(&trace_parameters(d), &popularity_parameters(d));
    join(&front, &shape_parameters(d))
}

/// The parameters of a workload that is fitted to a coverage curve.
const fn covered(d: &Defaults) -> [Parameter; COVERED] {
    let (share, mib) = ((0.0, 1.0), (0.0, 1e7));
    join(
        &shared(d),
        &[
            Parameter::number("cover97_mib", "MiB", d.cover_mib[0], mib, COVER97_SET),
            Parameter::number("cover98_mib", "MiB", d.cover_mib[1], mib, COVER98_SET),
            Parameter::number("cover99_mib", "MiB", d.cover_mib[2], mib, COVER99_SET),
            Parameter::number(
                "correlation",
                "",
                d.pairing.0,
                (-1.0, 1.0),
                "between rank and size; positive: popular targets are small",
            ),
            Parameter::number(
                "flat_share",
                "",
                d.pairing.1,
                share,
                "share of the targets, from the top, among which rank says nothing of size",
            ),
        ],
    )
}

const COVER97_SET: &str = "memory that holds the targets of 97 % of the requests; 0: as drawn";
const COVER98_SET: &str = "memory that holds the targets of 98 % of the requests; 0: as drawn";
const COVER99_SET: &str = "memory that holds the targets of 99 % of the requests; 0: as drawn";

const RICE: Defaults = Defaults {
    generators: GENERATORS_OF_LARD,
    targets: 37_703.0,
    requests: 2_300_000.0,
    // 2.3 million requests in two months of 61 days.
    rate: 0.4364,
    cover_mib: [560.0, 705.0, 927.0],
    total_mib: 1_418.0,
    zipf: (1.175, 10.4),
    sizes: (1.5, 0.07, 1.3, 2.0),
    pairing: (0.345, 0.0),
    window: (0.25, 0.25),
};
/// Parameters of the workload `rice`.
pub(super) const RICE_PARAMETERS: [Parameter; COVERED] = covered(&RICE);

/// Parameters of the workload `ibm`.
pub(super) const IBM_PARAMETERS: [Parameter; COVERED] = covered(&Defaults {
    generators: GENERATORS_OF_LARD,
    targets: 38_527.0,
    requests: 3_000_000.0,
    // 3 million requests in 3.5 days.
    rate: 9.921,
    cover_mib: [51.0, 80.0, 182.0],
    total_mib: 1_029.0,
    zipf: (1.406, 7.2),
    sizes: (1.5, 0.07, 1.3, 2.0),
    pairing: (0.61, 0.2),
    window: (0.5, 0.5),
});

/// Parameters of the workload `chess`.
pub(super) const CHESS_PARAMETERS: [Parameter; COVERED] = covered(&Defaults {
    generators: &["irm"],
    targets: 2_000.0,
    requests: 2_000_000.0,
    rate: 50.0,
    cover_mib: [0.0, 0.0, 0.0],
    total_mib: 40.0,
    zipf: (1.4, 5.0),
    sizes: (1.4, 0.0, 1.3, 2.0),
    pairing: (0.3, 0.0),
    window: (1.0, 1.0),
});

const WORLDCUP_SHARED: [Parameter; SHARED] = shared(&Defaults {
    generators: &["drifting", "lasting", "irm", "windowed"],
    targets: 17_332.0,
    requests: 38_834_515.0,
    rate: 0.0,
    cover_mib: [0.0, 0.0, 0.0],
    total_mib: 194.7,
    zipf: (1.1, 0.0),
    sizes: (1.3, 0.07, 1.3, 3.1),
    pairing: (0.0, 0.0),
    window: (0.05, 0.5),
});

const HOT_ONLY: [Parameter; 3] = [
    Parameter::count("hot_targets", "", 4.0, (1.0, 10_000.0), "number of hot targets"),
    Parameter::count("hot_size_bytes", "B", 32_768.0, (1.0, 1e9), "size of each hot target"),
    Parameter::number(
        "hot_share",
        "",
        0.3,
        (0.001, 0.99),
        "share of all requests that the hot targets have together; the paper varies it from 0.05 to 0.75",
    ),
];
/// Parameters of the workload `hot`.
pub(super) const HOT_PARAMETERS: [Parameter; COVERED + 3] = join(&RICE_PARAMETERS, &HOT_ONLY);

/// Value of the parameters `surge` and `burst_share` at which there is no drift.
pub(super) const DRIFT_OFF: f64 = 0.0;

const WORLDCUP_ONLY: [Parameter; 7] = [
    Parameter::number("file_median_bytes", "B", 3_714.0, (64.0, 1e9), "median size of a file"),
    Parameter::number("request_mean_bytes", "B", 5_124.85, (64.0, 1e9), "mean size of a request"),
    Parameter::number("request_median_bytes", "B", 963.0, (64.0, 1e9), "median size of a request"),
    Parameter::number(
        "surge",
        "",
        2.0,
        (DRIFT_OFF, 2.0),
        "how rare or large files stay away from peaks; 0: not, 1: their rate is the same all day, 2: falls as others rise",
    ),
    Parameter::count(
        "surge_rank",
        "",
        8_000.0,
        (1.0, 1e7),
        "files that take part in peaks, from the top, if small",
    ),
    Parameter::number(
        "surge_size_bytes",
        "B",
        200_000.0,
        (1.0, 1e9),
        "largest file that takes part in peaks",
    ),
    Parameter::number(
        "burst_share",
        "",
        0.05,
        (DRIFT_OFF, 0.5),
        "share of the files, small and rare ones, that are requested in six bursts of the late morning only",
    ),
];
/// Parameters of the workload `worldcup`.
pub(super) const WORLDCUP_PARAMETERS: [Parameter; SHARED + 7] = join(&WORLDCUP_SHARED, &WORLDCUP_ONLY);

const WORLDCUP66_SHARED: [Parameter; SHARED] = shared(&Defaults {
    generators: &["irm", "windowed"],
    targets: 17_332.0,
    requests: 73_300_000.0,
    rate: 0.0,
    cover_mib: [0.0, 0.0, 0.0],
    total_mib: 194.7,
    zipf: (0.9, 0.0),
    sizes: (1.3, 0.07, 1.3, 3.1),
    pairing: (0.0, 0.0),
    window: (1.0, 1.0),
});

/// What is not published is assumed: popularity and how sizes are distributed.
const BERKELEY_SHARED: [Parameter; SHARED] = shared(&Defaults {
    generators: &["irm"],
    targets: 87_425.0,
    requests: 3_940_707.0,
    // In January, 31 days.
    rate: 1.4713,
    cover_mib: [0.0, 0.0, 0.0],
    total_mib: 6_294.3,
    zipf: (0.85, 0.0),
    sizes: (1.3, 0.0, 1.3, 100.0),
    pairing: (0.0, 0.0),
    window: (1.0, 1.0),
});
const BERKELEY_ONLY: [Parameter; 1] =
    [Parameter::number("request_mean_bytes", "B", 40_000.0, (64.0, 1e9), "mean size of a request")];
/// Parameters of the workload `berkeley`.
pub(super) const BERKELEY_PARAMETERS: [Parameter; SHARED + 1] = join(&BERKELEY_SHARED, &BERKELEY_ONLY);

/// Sizes of the World Cup site's files; of this day only the mean answer is known.
const WORLDCUP66_SIZES: [Parameter; 3] = [
    Parameter::number("file_median_bytes", "B", 3_714.0, (64.0, 1e9), "median size of a file"),
    Parameter::number("request_mean_bytes", "B", 3_200.0, (64.0, 1e9), "mean size of a request"),
    Parameter::number("request_median_bytes", "B", 963.0, (64.0, 1e9), "median size of a request"),
];
/// Of so many, those that use HTTP/1.1 ask often enough to keep their connections.
const WORLDCUP66_CLIENTS: [Parameter; 1] = [Parameter::count(
    "clients",
    "",
    1_000.0,
    (1.0, 1e6),
    "clients, of which each request has one at random",
)];
/// Parameters of the workload `worldcup66`.
pub(super) const WORLDCUP66_PARAMETERS: [Parameter; SHARED + 4 + ANSWER_COUNT] = {
    let with_sizes: [Parameter; SHARED + 3] = join(&WORLDCUP66_SHARED, &WORLDCUP66_SIZES);
    let with_clients: [Parameter; SHARED + 4] = join(&with_sizes, &WORLDCUP66_CLIENTS);
    join(&with_clients, &ANSWER_PARAMETERS)
};

/// One list of parameters after the other.
const fn join<const A: usize, const B: usize, const ALL: usize>(
    first: &[Parameter; A],
    second: &[Parameter; B],
) -> [Parameter; ALL] {
    assert!(A + B == ALL);
    let mut all = [second[0]; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < A { first[at] } else { second[at - A] };
        at += 1;
    }
    all
}
