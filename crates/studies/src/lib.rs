//! The papers' simulation studies, and the runs they and `plimsoll simulate` are made of.

pub mod lard;
pub mod matrix;
pub mod scenario;
mod workload;

pub use workload::{Workload, WorkloadError};
