//! Checks of the repository itself.
//!
//! `cargo xtask tidy` prints each violation as `file:line: rule: what is wrong and what to do`, and exits with 1 if
//! there is one. A rule is a function in a file of its own under `tidy/`.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["tidy"] {
        eprintln!("usage: cargo xtask tidy");
        return ExitCode::from(2);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies one level below the workspace");
    match tidy::run(root) {
        Ok(violations) if violations.is_empty() => ExitCode::SUCCESS,
        Ok(violations) => {
            for violation in &violations {
                println!("{violation}");
            }
            eprintln!("xtask tidy: {} violations", violations.len());
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("xtask tidy: {message}");
            ExitCode::FAILURE
        }
    }
}
