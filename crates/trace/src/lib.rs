//! Readers, writers, statistics and calibrated synthesis of request traces.

pub mod coverage;
mod record;
pub mod synth;

pub use record::{Kind, Record};
