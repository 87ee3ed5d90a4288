//! Readers, writers, statistics and calibrated synthesis of request traces.

mod record;

pub use record::{Kind, Record};
