//! What the tests of several crates share: waiting for events instead of for time. Only tests depend on this crate.
//!
//! A test must hold on a machine that is busy with other things. So it never sleeps for a time in which something will
//! probably have happened: it waits until it has, with the functions here.

mod cpu;
mod names;
mod process;
mod wait;

pub use cpu::cpu_time_of;
pub use names::unique_name;
pub use process::ProcessWatch;
pub use wait::{PATIENCE, eventually, eventually_async, wait_for};
