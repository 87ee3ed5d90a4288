//! Synthetic workloads calibrated to published statistics.
//!
//! The traces of the classic studies were never published; their statistics were. [`build`] makes a workload
//! that meets those statistics, from one of several generators that meet them equally well but differ where
//! nothing is published (how popularity falls, how sizes are distributed, how long a target stays in use). A
//! finding that holds under all of them does not depend on a guess.
//!
//! A workload is built in these steps, each with its own stream of random numbers:
//! 1. Popularity by rank gives every target a whole number of requests (assigned, not sampled).
//! 2. A permutation gives the ranks their target numbers, so that a number reveals nothing.
//! 3. Sizes are drawn and paired with the ranks through a Gaussian copula.
//! 4. Sizes are fitted: by one factor per band of popularity the coverage curve becomes exact.
//! 5. Targets beyond the first ranks get a window of the trace in which they are requested.
//! 6. Where the mix drifts over the day, each target gets its part in peaks and bursts.
//!
//! Then [`SyntheticWorkload::records`] streams the requests: each target's places in the trace are
//! successive order statistics of the uniform law over its window, merged by a calendar of slots,
//! and times come from a Poisson process, from independent gaps of another distribution, or from a profile of requests per
//! minute. Services whose cost is a service time get that drawn for each request. Memory is
//! proportional to the targets, never to the requests. The same seed gives the same records on
//! every platform.

mod answers;
mod arrivals;
mod coverage;
mod day;
mod day66;
mod drift;
mod error;
mod generators;
mod parameters;
mod plan;
mod popularity;
mod random;
mod record;
mod service;
mod sizes;
mod spec;
mod specs;
mod stream;
#[cfg(test)]
mod tests;
mod times;
mod units;
mod window;
mod workload;

pub use coverage::coverage_bytes;
pub use day66::DAY66_REQUESTS_PER_MINUTE;
pub use error::SynthError;
pub use record::{AnswerKind, Record, RecordFields, RecordKind};
pub use spec::{FigureBound, Generator, Parameter, ParameterKind, PublishedFigure, WorkloadSpec};
pub use specs::SPECS;
pub use stream::Records;
pub use times::{Normals, TimeDistribution, TimeDraws, TimeShape};
pub use workload::SyntheticWorkload;

use error::did_you_mean;

/// The declaration of a workload.
///
/// # Errors
/// When there is no workload of that name; the error suggests the nearest.
pub fn spec(name: &str) -> Result<&'static WorkloadSpec, SynthError> {
    SPECS.iter().find(|spec| spec.name == name).ok_or_else(|| SynthError::UnknownWorkload {
        given: name.to_owned(),
        hint: did_you_mean(name, SPECS.iter().map(|spec| spec.name)),
        known: SPECS.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", "),
    })
}

/// Builds the workload `name` with some parameters set, as `(key, value)`. One name, one set of
/// parameters and one seed always give the same workload.
///
/// # Errors
/// For an unknown workload or parameter, a value that is no number or outside its range, and
/// values that contradict one another.
pub fn build(name: &str, overrides: &[(&str, &str)], seed: u64) -> Result<SyntheticWorkload, SynthError> {
    let spec = spec(name)?;
    plan::build(spec, spec.resolve(overrides)?, seed)
}
