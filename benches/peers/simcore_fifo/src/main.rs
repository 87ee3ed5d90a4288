//! Join-shortest-queue over FIFO back-ends, written with simcore in two forms.

mod lean;
mod usual;

use std::process::ExitCode;

fn main() -> ExitCode {
    fifo_common::main("simcore", usual::run, lean::run)
}
