//! The papers' simulation studies, and scenarios: the runs of studies and of `plimsoll simulate`.

pub mod adaptload;
pub mod advise;
pub mod cloning;
mod confidence;
pub mod csld;
mod execute;
pub mod fine_grain;
mod judge;
pub mod lard;
pub mod matrix;
mod not_run;
pub mod robustness;
mod run_result;
pub mod scenario;
mod seed_mean;
mod settings;
pub mod spec;
mod strategy;
mod study_error;
#[cfg(test)]
mod testing;
mod workload;
mod workload_requests;

pub use execute::{Extent, execute, execute_recording};
pub use workload::{Workload, WorkloadClasses, WorkloadError};
pub use workload_requests::WorkloadRequests;
