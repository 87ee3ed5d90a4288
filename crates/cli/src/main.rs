//! The `plimsoll` command.

use std::process::ExitCode;

use plimsoll_datapath::ProgramAllocator;

#[global_allocator]
static ALLOCATOR: ProgramAllocator = ProgramAllocator;

fn main() -> ExitCode {
    plimsoll_cli::run(&[])
}
