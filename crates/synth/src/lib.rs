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
//! and times come from a Poisson process or a profile of requests per minute. Memory is
//! proportional to the targets, never to the requests. The same seed gives the same records on
//! every platform.

mod arrivals;
mod coverage;
mod day;
mod drift;
mod generators;
mod parameters;
mod plan;
mod popularity;
mod random;
mod record;
mod sizes;
mod spec;
mod specs;
mod stream;
#[cfg(test)]
mod tests;
mod workload;

pub use coverage::coverage_bytes;
pub use record::{Record, RecordKind};
pub use spec::{FigureBound, Generator, Parameter, ParameterKind, PublishedFigure, WorkloadSpec};
pub use specs::SPECS;
pub use stream::Records;
pub use workload::SyntheticWorkload;

/// Bytes of a "MB" in the figures: 2²⁰, the unit in which memory, and so the papers' caches of
/// 32 MB, is counted.
const MIB: f64 = 1_048_576.0;

/// Why a workload could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SynthError {
    /// No workload has this name.
    #[error("there is no synthetic workload {given:?}{hint}; the workloads are {known}")]
    UnknownWorkload {
        /// What was asked for.
        given: String,
        /// The nearest name, as a clause, or "".
        hint: String,
        /// All names.
        known: String,
    },
    /// The workload has no such parameter.
    #[error("workload {workload} has no parameter {given:?}{hint}; its parameters are {known}")]
    UnknownParameter {
        /// Name of the workload.
        workload: &'static str,
        /// The key that was given.
        given: String,
        /// The nearest name, as a clause, or "".
        hint: String,
        /// All its parameters.
        known: String,
    },
    /// A value is not a number or outside its range.
    #[error("workload {workload}: {parameter} = {given:?} is not usable{hint}; give {accepted}")]
    BadValue {
        /// Name of the workload.
        workload: &'static str,
        /// Name of the parameter.
        parameter: &'static str,
        /// The value that was given.
        given: String,
        /// The nearest word of a choice, as a clause, or "".
        hint: String,
        /// The values that are accepted.
        accepted: String,
    },
    /// Each value is in its range, but together they describe no workload.
    #[error("workload {workload}: {reason}")]
    Contradiction {
        /// Name of the workload.
        workload: &'static str,
        /// What does not go together, and what would.
        reason: String,
    },
    /// A profile of requests per minute without a request.
    #[error(
        "the profile of {minutes} minutes holds no request; give the requests of each minute, at \
         least one of them above zero"
    )]
    EmptyProfile {
        /// Number of minutes given.
        minutes: usize,
    },
}

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

/// A clause that suggests the known word nearest to `given`, or "" when none is near.
fn did_you_mean<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|word| (strsim::jaro_winkler(given, word), word))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, word)| format!(" (did you mean {word:?}?)"))
}
