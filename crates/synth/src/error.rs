//! Why a workload could not be built.

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

/// A clause that suggests the known word nearest to `given`, or "" when none is near.
pub(crate) fn did_you_mean<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|word| (strsim::jaro_winkler(given, word), word))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, word)| format!(" (did you mean {word:?}?)"))
}
