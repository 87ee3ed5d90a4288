//! The papers' simulation studies, and the runs they and `plimsoll simulate` are made of.

pub mod adaptload;
mod judge;
pub mod lard;
pub mod matrix;
mod run_model;
mod run_result;
pub mod scenario;
mod settings;
mod workload;

pub use workload::{Workload, WorkloadError};
