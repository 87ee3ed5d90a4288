//! Checks of the repository itself.
//!
//! `cargo xtask tidy` prints each violation as `file:line: rule: what is wrong and what to do`, and exits with 1 if
//! there is one. A rule is a function in a file of its own under `tidy/`. `cargo xtask circles [DIRECTORY]` prints which
//! files use one another in circles, here or in another copy of the repository.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies one level below the workspace");
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let checked = match words[..] {
        ["tidy"] => tidy::run(root),
        ["circles"] => tidy::print_circles(root).map(|()| Vec::new()),
        ["circles", other] => tidy::print_circles(Path::new(other)).map(|()| Vec::new()),
        _ => {
            eprintln!("usage: cargo xtask tidy | circles [DIRECTORY]");
            return ExitCode::from(2);
        }
    };
    match checked {
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
