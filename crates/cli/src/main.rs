//! The `plimsoll` command.

use std::process::ExitCode;

/// See docs/decisions/0086-mimalloc.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    plimsoll_cli::run(&[])
}
