//! Prints how many lines per second the trace reader takes from a file.
//!
//!     cargo run --release -p plimsoll-trace --example parse_speed -- FILE...

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use plimsoll_trace::{Input, ReadOptions, Reader, TraceError, load};

fn main() -> ExitCode {
    let inputs: Vec<Input> = std::env::args_os()
        .skip(1)
        .map(|path| Input::File(PathBuf::from(path)))
        .collect();
    if inputs.is_empty() {
        eprintln!("usage: parse_speed FILE...");
        return ExitCode::from(2);
    }
    match measure(&inputs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(inputs: &[Input]) -> Result<(), TraceError> {
    let options = ReadOptions::default();
    let start = Instant::now();
    let mut reader = Reader::new(inputs, &options);
    for record in reader.by_ref() {
        record?;
    }
    print(
        "read and numbered",
        reader.report().lines,
        start.elapsed().as_secs_f64(),
    );
    let start = Instant::now();
    let trace = load(inputs, &options)?;
    print("loaded", trace.report.lines, start.elapsed().as_secs_f64());
    let start = Instant::now();
    let mut sum = 0u64;
    for record in trace.open()? {
        sum = sum.wrapping_add(record?.size_bytes);
    }
    print("read back", trace.len(), start.elapsed().as_secs_f64());
    println!(
        "{} targets, {} records, {sum} bytes",
        trace.targets.len(),
        trace.len()
    );
    Ok(())
}

fn print(what: &str, lines: u64, elapsed_s: f64) {
    println!(
        "{what}: {lines} lines in {elapsed_s:.3} s, {:.2} million lines/s",
        lines as f64 / elapsed_s / 1e6
    );
}
