//! What the peers' join-shortest-queue programs share: the model's figures, the arguments and the result line.
//!
//! The model is described in `benches/fifo_jsq/README.md`.

use std::process::ExitCode;

use cpu_time::ProcessTime;

/// Number of back-ends.
pub const BACKENDS: usize = 16;
/// Share of its capacity that the cluster is asked for.
pub const UTILIZATION: f64 = 0.9;
/// Mean service time in seconds.
pub const MEAN_SERVICE_S: f64 = 1.0;
/// Arrivals per second.
pub const ARRIVAL_RATE_RPS: f64 = UTILIZATION * BACKENDS as f64 / MEAN_SERVICE_S;
/// Services per second of one busy back-end.
pub const SERVICE_RATE_RPS: f64 = 1.0 / MEAN_SERVICE_S;

/// The back-end with the fewest requests, the lowest index where several have equally few.
pub fn shortest(lengths: impl Iterator<Item = usize>) -> usize {
    let mut best = (usize::MAX, 0);
    for (index, length) in lengths.enumerate() {
        if length < best.0 {
            best = (length, index);
        }
    }
    best.1
}

/// What a run yields.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Requests that were completed.
    pub completed: u64,
    /// Sum of their response times in seconds.
    pub response_sum_s: f64,
}

/// One form of a tool's program: takes the number of requests and the seed.
pub type Form = fn(u64, u64) -> Result<Outcome, String>;

/// Reads `FORM REQUESTS SEED` from the command line, measures that form in CPU time of the whole process and prints the
/// result as one JSON line.
///
/// # Errors
/// Exit code 2 and a message where the arguments are wrong; 1 where the form fails or completes another number of
/// requests than asked for.
pub fn main(tool: &str, usual: Form, lean: Form) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((form, requests, seed)) = parse(&arguments) else {
        eprintln!("{tool}: give FORM REQUESTS SEED: FORM is usual or lean, the others are whole numbers");
        return ExitCode::from(2);
    };
    let (name, run) = match form {
        "usual" => (tool.to_owned(), usual),
        _ => (format!("{tool}-lean"), lean),
    };
    let start = ProcessTime::now();
    let outcome = run(requests, seed);
    let cpu_s = start.elapsed().as_secs_f64();
    match outcome {
        Ok(Outcome { completed, response_sum_s }) if completed == requests => {
            let mean_response_s = response_sum_s / requests as f64;
            let rate = requests as f64 / cpu_s;
            println!(
                "{{\"tool\":\"{name}\",\"requests\":{requests},\"mean_response_s\":{mean_response_s},\
                 \"cpu_s\":{cpu_s},\"requests_per_cpu_s\":{rate}}}"
            );
            ExitCode::SUCCESS
        }
        Ok(Outcome { completed, .. }) => {
            eprintln!("{name}: {completed} requests completed where {requests} were to be");
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Option<(&str, u64, u64)> {
    let [form, requests, seed] = arguments else {
        return None;
    };
    let requests = requests.parse().ok().filter(|&r| r > 0)?;
    let known = form == "usual" || form == "lean";
    known.then_some((form.as_str(), requests, seed.parse().ok()?))
}
