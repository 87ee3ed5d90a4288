//! The generators of each workload: sets of constants that meet the published figures equally well.
//!
//! Found with `examples/calibrate.rs`, as `docs/workloads.md` describes: the popularity so that the
//! share of the top target is the published one, the correlation so that the drawn sizes already
//! lie near the published coverage. The lives of targets follow from nothing published; they differ
//! on purpose.

use super::parameters::DRIFT_OFF;
use super::spec::Generator;

/// Generators of Rice, and of the Rice part of the hot workload.
pub(super) const RICE_GENERATORS: &[Generator] = &[
    Generator {
        name: "windowed",
        help: "Zipf-Mandelbrot; all but the top 500 targets live in a quarter of the trace",
        values: &[],
    },
    Generator {
        name: "irm",
        help: "as windowed, but every target lives throughout (independent reference model)",
        values: &[("window_min", 1.0), ("window_max", 1.0)],
    },
    Generator {
        name: "stretched",
        help: "stretched exponential popularity, lognormal sizes, windows of very unequal length",
        values: &[
            ("exponent", 0.0),
            ("shift", 0.0),
            ("stretch_rank", 1.441e-5),
            ("stretch", 0.12),
            ("correlation", 0.32),
            ("size_sigma", 1.7),
            ("size_tail_share", 0.0),
            ("window_min", 0.05),
            ("window_max", 0.6),
        ],
    },
    Generator {
        name: "double_pareto",
        help: "two powers of the rank, heavier size tail, windows of a fifth from rank 200 on",
        values: &[
            ("exponent", 0.9),
            ("shift", 3.514),
            ("break_rank", 1_000.0),
            ("tail_exponent", 1.3),
            ("size_sigma", 1.3),
            ("size_tail_exponent", 1.1),
            ("window_min", 0.2),
            ("window_max", 0.2),
            ("window_from_rank", 200.0),
        ],
    },
];

/// Generators of IBM.
pub(super) const IBM_GENERATORS: &[Generator] = &[
    Generator {
        name: "windowed",
        help: "Zipf-Mandelbrot; all but the top 500 targets live in half of the trace",
        values: &[],
    },
    Generator {
        name: "irm",
        help: "as windowed, but every target lives throughout (independent reference model)",
        values: &[("window_min", 1.0), ("window_max", 1.0)],
    },
    Generator {
        name: "stretched",
        help: "stretched exponential popularity, lognormal sizes, windows of very unequal length",
        values: &[
            ("exponent", 0.0),
            ("shift", 0.0),
            ("stretch_rank", 2.186e-6),
            ("stretch", 0.12),
            ("correlation", 0.58),
            ("flat_share", 0.1),
            ("size_sigma", 1.7),
            ("size_tail_share", 0.0),
            ("window_min", 0.1),
            ("window_max", 1.0),
        ],
    },
    Generator {
        name: "double_pareto",
        help: "two powers of the rank, heavier size tail, windows of a quarter from rank 200 on",
        values: &[
            ("exponent", 0.9),
            ("shift", 0.92),
            ("break_rank", 500.0),
            ("tail_exponent", 1.6),
            ("correlation", 0.6),
            ("flat_share", 0.1),
            ("size_sigma", 1.3),
            ("size_tail_exponent", 1.1),
            ("window_min", 0.25),
            ("window_max", 0.25),
            ("window_from_rank", 200.0),
        ],
    },
];

/// Generators of the chess match.
pub(super) const CHESS_GENERATORS: &[Generator] =
    &[Generator { name: "irm", help: "Zipf-Mandelbrot, every target lives throughout", values: &[] }];

/// Generators of Berkeley's web site.
pub(super) const BERKELEY_GENERATORS: &[Generator] =
    &[Generator { name: "irm", help: "Zipf, every document lives throughout", values: &[] }];

/// Generators of the World Cup's peak day.
pub(super) const WORLDCUP66_GENERATORS: &[Generator] = &[
    Generator { name: "irm", help: "Zipf, every file lives throughout the day", values: &[] },
    Generator {
        name: "windowed",
        help: "as irm, but all files beyond rank 500 live in half of the day",
        values: &[("window_min", 0.5), ("window_max", 0.5)],
    },
];

/// Generators of the World Cup day.
pub(super) const WORLDCUP_GENERATORS: &[Generator] = &[
    Generator {
        name: "drifting",
        help: "small popular files make up the peaks, rare and large ones are requested all day, new ones in bursts",
        values: &[],
    },
    Generator {
        name: "lasting",
        help: "as drifting, but files live four times as long, at most the whole day, and bursts have half the files",
        values: &[("burst_share", 0.025), ("window_min", 0.2), ("window_max", 1.0)],
    },
    Generator {
        name: "irm",
        help: "Zipf, every file lives throughout the day",
        values: &[
            ("exponent", 0.9),
            ("surge", DRIFT_OFF),
            ("burst_share", DRIFT_OFF),
            ("window_min", 1.0),
            ("window_max", 1.0),
        ],
    },
    Generator {
        name: "windowed",
        help: "as irm, but all files beyond rank 500 live in half of the day",
        values: &[
            ("exponent", 0.9),
            ("surge", DRIFT_OFF),
            ("burst_share", DRIFT_OFF),
            ("window_min", 0.5),
            ("window_max", 0.5),
        ],
    },
];
