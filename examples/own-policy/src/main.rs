//! The plimsoll command, with a policy of one's own beside the product's.

mod hashed_choices;

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_cli::run(&[&hashed_choices::SPEC])
}
