//! A class and its costs.

/// What requests of one class cost. All costs are without queueing.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentClass {
    /// Its name, unique in the table.
    pub name: String,
    /// Mean CPU time of a request in seconds.
    pub cpu_s: f64,
    /// Mean time of disk accesses of a request in seconds.
    pub disk_s: f64,
    /// Mean size of a response in bytes.
    pub size_bytes: f64,
    /// Standard deviation of the service time (CPU and disk) in seconds.
    pub deviation_s: f64,
    /// How many requests these figures were learned from; 0 if they were not learned.
    pub requests: u64,
}

/// The name of a class that was merged into another one. Patterns may go on to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedClass {
    /// Its own name.
    pub name: String,
    /// The class that it became, as its number, from 1.
    pub class: u16,
}
