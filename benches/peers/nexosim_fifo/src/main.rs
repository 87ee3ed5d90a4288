//! Join-shortest-queue over FIFO back-ends, written with nexosim in two forms.

mod lean;
mod usual;

use std::process::ExitCode;
use std::time::Duration;

use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;

/// An exponential time of at least a nanosecond, because nexosim refuses events at the current time.
fn exponential(rate: f64, random: &mut Pcg64) -> Duration {
    let standard: f64 = Exp1.sample(random);
    Duration::from_secs_f64(standard / rate).max(Duration::from_nanos(1))
}

fn main() -> ExitCode {
    fifo_common::main("nexosim", usual::run, lean::run)
}
