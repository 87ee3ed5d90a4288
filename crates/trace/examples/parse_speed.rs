//! How many lines the trace reader takes from files per second of CPU time: `parse_speed FILE...` prints one JSON line
//! for each of three steps: `read` (parsed and numbered), `load` (also kept for further runs), `read back`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use plimsoll_trace::{ReadOptions, TraceInput, TraceReader, load};

// Reading a trace starts no other thread, so the main thread's account is the whole.
#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

fn main() -> ExitCode {
    let inputs: Vec<TraceInput> =
        std::env::args_os().skip(1).map(|path| TraceInput::File(PathBuf::from(path))).collect();
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

fn measure(inputs: &[TraceInput]) -> Result<(), Box<dyn Error>> {
    let options = ReadOptions::default();
    let before_s = cpu_time::cpu_s()?;
    let mut reader = TraceReader::new(inputs, &options);
    let mut records = 0;
    for record in reader.by_ref() {
        record?;
        records += 1;
    }
    print("read", reader.report().lines, records, cpu_time::cpu_s()? - before_s);

    let before_s = cpu_time::cpu_s()?;
    let trace = load(inputs, &options)?;
    print("load", trace.report.lines, trace.len(), cpu_time::cpu_s()? - before_s);

    let before_s = cpu_time::cpu_s()?;
    let mut read_back = 0;
    for record in trace.open()? {
        record?;
        read_back += 1;
    }
    print("read back", read_back, read_back, cpu_time::cpu_s()? - before_s);
    Ok(())
}

fn print(step: &str, lines: u64, records: u64, cpu_s: f64) {
    println!(
        r#"{{"step":"{step}","lines":{lines},"records":{records},"cpu_s":{cpu_s:.4},"lines_per_cpu_s":{:.0}}}"#,
        lines as f64 / cpu_s
    );
}
