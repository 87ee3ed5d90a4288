//! How demands were estimated.

use crate::learn::discipline::QueueDiscipline;

/// How demands were estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DemandMethod {
    /// Who waited for whom was reconstructed from begins and ends.
    Reconstructed {
        /// How back-ends share their capacity, as far as the log shows.
        discipline: QueueDiscipline,
        /// By how much demands of one URI depend on the number of requests at arrival: root mean square, as a share of the mean.
        dependence: f64,
        /// The same of the durations as logged.
        dependence_before: f64,
    },
    /// The log's times are too coarse for that. Durations were corrected by what theory says of the mean load.
    FromMeans {
        /// How back-ends share their capacity; whether in turn or equally is from the log.
        discipline: QueueDiscipline,
        /// Requests at a back-end on average, from the log.
        present: f64,
        /// Whether the number of workers or cores was given, and not assumed.
        given: bool,
    },
}
