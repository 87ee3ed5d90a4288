//! Services inside a cluster, whose requests cost a service time: what Table 1 of the fine-grain study publishes.

use super::error::SynthError;
use super::spec::{FigureBound, Generator, Parameter, Parameters, PublishedFigure};
use crate::record::Record;
use crate::times::{TimeDistribution, TimeShape};

/// A service, times in milliseconds.
pub(super) struct ServiceTable {
    pub(super) requests: f64,
    pub(super) arrival_ms: (f64, f64),
    pub(super) service_ms: (f64, f64),
}

/// The Fine-Grain trace: translation of query words.
pub(super) const FINE_GRAIN: ServiceTable =
    ServiceTable { requests: 98_933.0, arrival_ms: (436.7, 349.4), service_ms: (22.2, 10.0) };
/// The Medium-Grain trace: translation of descriptions of pages.
pub(super) const MEDIUM_GRAIN: ServiceTable =
    ServiceTable { requests: 126_518.0, arrival_ms: (341.5, 321.1), service_ms: (208.9, 62.9) };
/// Poisson arrivals at one server that is half busy, exponential service of 50 ms: chosen by the study, not measured.
pub(super) const POISSON_EXP: ServiceTable =
    ServiceTable { requests: 100_000.0, arrival_ms: (100.0, 100.0), service_ms: (50.0, 50.0) };

/// The generators: the same means and deviations by other distributions.
pub(super) const GENERATORS: &[Generator] = &[
    Generator {
        name: "gamma",
        help: "gamma distributions of arrival intervals and service times",
        values: &[],
    },
    Generator { name: "lognormal", help: "lognormal distributions", values: &[] },
    Generator { name: "weibull", help: "Weibull distributions", values: &[] },
];

const NAMES: &[&str] = &["gamma", "lognormal", "weibull"];

/// Number of parameters of a service.
pub(super) const COUNT: usize = 12;

/// The parameters of a service.
pub(super) const fn parameters(of: &ServiceTable) -> [Parameter; COUNT] {
    [
        Parameter::choice("generator", NAMES, "which of the calibrated generators"),
        Parameter::count("targets", "", 1_000.0, (2.0, 1e7), "distinct targets"),
        Parameter::count("requests", "", of.requests, (2.0, 1e11), "requests, at least one per target"),
        Parameter::count("clients", "", 64.0, (1.0, 1e6), "clients, of which each request has one at random"),
        Parameter::number(
            "arrival_mean_ms",
            "ms",
            of.arrival_ms.0,
            (1e-6, 1e9),
            "mean time between arrivals",
        ),
        Parameter::number(
            "arrival_sd_ms",
            "ms",
            of.arrival_ms.1,
            (0.0, 1e9),
            "its standard deviation; 0 for none",
        ),
        Parameter::number("service_mean_ms", "ms", of.service_ms.0, (1e-6, 1e9), "mean service time"),
        Parameter::number(
            "service_sd_ms",
            "ms",
            of.service_ms.1,
            (0.0, 1e9),
            "its standard deviation; 0 for none",
        ),
        Parameter::number("exponent", "", 0.8, (0.0, 5.0), "popularity falls with this power of the rank"),
        Parameter::number("total_mib", "MiB", 1.0, (0.001, 1e7), "bytes of all targets"),
        Parameter::number("size_sigma", "", 1.0, (0.0, 4.0), "standard deviation of the logarithm of sizes"),
        Parameter::number("size_max_mib", "MiB", 1.0, (0.001, 1e6), "largest size drawn"),
    ]
}

/// What is published of a service.
pub(super) const fn figures(of: &ServiceTable) -> [PublishedFigure; 5] {
    const fn near(name: &'static str, value: f64, help: &'static str) -> PublishedFigure {
        PublishedFigure { name, value, unit: "ms", bound: FigureBound::Equal, tolerance: 0.02, help }
    }
    [
        PublishedFigure {
            name: "requests",
            value: of.requests,
            unit: "",
            bound: FigureBound::Equal,
            tolerance: 0.0,
            help: "accesses of the peak portion",
        },
        near("arrival_mean_ms", of.arrival_ms.0, "mean time between arrivals"),
        near("arrival_sd_ms", of.arrival_ms.1, "standard deviation of the time between arrivals"),
        near("service_mean_ms", of.service_ms.0, "mean service time"),
        near("service_sd_ms", of.service_ms.1, "standard deviation of the service time"),
    ]
}

fn distribution(parameters: &Parameters, mean: &str, deviation: &str) -> Option<TimeDistribution> {
    let (mean_ms, sd_ms) = (parameters.get(mean), parameters.get(deviation));
    let cv = sd_ms / mean_ms;
    let shape = match parameters.get("generator") as usize {
        _ if cv == 0.0 => TimeShape::Deterministic,
        // Of all shapes that take this deviation it is the usual one.
        _ if cv == 1.0 => TimeShape::Exponential,
        0 => TimeShape::Gamma { cv },
        1 => TimeShape::Lognormal { cv },
        _ => TimeShape::Weibull { cv },
    };
    (mean_ms > 0.0).then_some(TimeDistribution { mean_ns: mean_ms * 1e6, shape })
}

/// The times between arrivals; `None` for workloads that do not declare them.
pub(super) fn arrivals(parameters: &Parameters) -> Option<TimeDistribution> {
    distribution(parameters, "arrival_mean_ms", "arrival_sd_ms")
}

/// The service times; `None` for workloads that do not declare them.
pub(super) fn service(parameters: &Parameters) -> Option<TimeDistribution> {
    distribution(parameters, "service_mean_ms", "service_sd_ms")
}

/// Refuses what cannot be drawn.
pub(super) fn check(parameters: &Parameters) -> Result<(), SynthError> {
    for (mean, deviation) in [("arrival_mean_ms", "arrival_sd_ms"), ("service_mean_ms", "service_sd_ms")] {
        let (mean_ms, sd_ms) = (parameters.get(mean), parameters.get(deviation));
        if mean_ms > 0.0 && sd_ms > TimeShape::MOST_CV * mean_ms {
            return Err(parameters.contradiction(format!("{deviation} is more than a hundred times {mean}")));
        }
        if sd_ms > 0.0 && sd_ms < TimeShape::LEAST_CV * mean_ms {
            return Err(parameters.contradiction(format!(
                "{deviation} is less than a thousandth of {mean}; 0 stands for no deviation"
            )));
        }
    }
    Ok(())
}

/// Mean or standard deviation, in milliseconds, of the times between arrivals or of the service times of these requests; `None` for
/// another name.
pub(super) fn moment(name: &str, records: impl Iterator<Item = Record>) -> Option<f64> {
    let mut last_ns = 0;
    let gap_ns = |record: &Record| record.time_ns - std::mem::replace(&mut last_ns, record.time_ns);
    match name {
        "arrival_mean_ms" => Some(moments(records, gap_ns).0),
        "arrival_sd_ms" => Some(moments(records, gap_ns).1),
        "service_mean_ms" => Some(moments(records, |record| record.service_ns).0),
        "service_sd_ms" => Some(moments(records, |record| record.service_ns).1),
        _ => None,
    }
}

/// Mean and standard deviation in milliseconds.
fn moments(records: impl Iterator<Item = Record>, mut value_ns: impl FnMut(&Record) -> u64) -> (f64, f64) {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for record in records {
        let ms = value_ns(&record) as f64 / 1e6;
        (count, sum, squares) = (count + 1.0, sum + ms, squares + ms * ms);
    }
    let mean = sum / f64::max(count, 1.0);
    (mean, (squares / f64::max(count, 1.0) - mean * mean).max(0.0).sqrt())
}
