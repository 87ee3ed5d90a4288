//! The clock of the benchmarks, shared by the examples that they run.

use std::error::Error;

/// Seconds of CPU time that this process's main thread has used, from the scheduler's own account.
///
/// # Errors
/// Where `/proc/self/schedstat` cannot be read.
pub(crate) fn cpu_s() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let ns: u64 = text.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(ns as f64 / 1e9)
}
