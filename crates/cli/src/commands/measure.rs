//! `plimsoll measure`: what requests cost a server, as parameters of the simulator.

pub(crate) mod client;
mod estimate;
mod rounds;
mod server_cpu;

use std::time::{Duration, Instant};

use plimsoll_report::{Align, Table};

use self::client::{MeasuredUrl, MeasuringConnection};
use self::estimate::{CostSpread, MeasuredSizes, StepCosts};
use self::rounds::{MOST_BYTES, MeasurePlan, ROUNDS};
use self::server_cpu::ServerCpu;
use crate::error::CliError;
use crate::{output, values};

/// Arguments of `measure`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Measure an idle server that you run yourself, with its logs and modules as in service.

Examples:
  plimsoll measure http://127.0.0.1:8080/1k.bin --large http://127.0.0.1:8080/1m.bin --pid $(cat /run/nginx.pid)
  plimsoll measure http://192.0.2.11/small.css --large http://192.0.2.11/large.jpg --requests 100 --json")]
pub(crate) struct Args {
    /// A small resource that the server answers from memory
    #[arg(value_name = "URL")]
    small: String,

    /// A large resource of the same server, to tell the cost of bytes: at least 64 KiB larger, up to 16 MiB
    #[arg(long, value_name = "URL")]
    large: Option<String>,

    /// A process of the server on this machine: its CPU time is measured, with that of the processes that it has started;
    /// without it response times, which are upper bounds
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// Requests of a kind in one round
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=MOST_REQUESTS))]
    requests: u64,

    /// Requests at once in the second half of the measurement
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=16))]
    at_once: u64,

    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = values::positive)]
    limit_s: f64,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The least difference of the sizes.
const LEAST_DIFFERENCE_BYTES: u64 = 64 << 10;
/// The most requests of a kind in one round.
const MOST_REQUESTS: u64 = 2000;
/// The longest measurement.
const MOST_S: f64 = 600.0;
/// A spread above this share of the median is worth a warning.
const WIDE: f64 = 0.25;

/// What was measured.
struct MeasuredServer {
    plan: MeasurePlan,
    at_once: u64,
    alone: StepCosts,
    together: StepCosts,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let measured = measure(args)?;
    output::print(&if args.json { json(&measured).to_string() } else { text(&measured) })
}

fn measure(args: &Args) -> Result<MeasuredServer, CliError> {
    if args.limit_s > MOST_S {
        return Err(CliError::Usage(format!("--limit-s takes up to {MOST_S} seconds, not {}", args.limit_s)));
    }
    let small = MeasuredUrl::read(&args.small)?;
    let large = args.large.as_deref().map(MeasuredUrl::read).transpose()?;
    if let Some(large) = large.as_ref().filter(|large| !large.is_beside(&small)) {
        return Err(CliError::Usage(format!(
            "{} is on another server than {}; name two resources of one server",
            large.url(),
            small.url()
        )));
    }
    let server = args.pid.map(ServerCpu::of).transpose()?;
    let deadline = Instant::now() + Duration::from_secs_f64(args.limit_s);
    // The first request of each has the server read the file, and shows that it can be measured.
    let size = |of: &MeasuredUrl| {
        let answer = MeasuringConnection::open(of, deadline)?.get(of, true, MOST_BYTES)?;
        Ok::<_, CliError>(answer.body_bytes)
    };
    let sizes =
        MeasuredSizes { small_bytes: size(&small)?, large_bytes: large.as_ref().map(size).transpose()? };
    if let Some(large_bytes) = sizes.large_bytes
        && large_bytes < sizes.small_bytes + LEAST_DIFFERENCE_BYTES
    {
        return Err(CliError::Usage(format!(
            "the resource of --large has {large_bytes} bytes, the other one {}: it has to have at least 64 KiB more",
            sizes.small_bytes
        )));
    }
    let plan = MeasurePlan { small, large, sizes, requests: args.requests, deadline, server };
    let costs = |at_once| {
        let costs = StepCosts::of(&plan.rounds(at_once)?, sizes);
        costs.ok_or_else(|| CliError::Failed("there was no round".to_owned()))
    };
    let (alone, together) = (costs(1)?, costs(args.at_once)?);
    Ok(MeasuredServer { plan, at_once: args.at_once, alone, together })
}

impl MeasuredServer {
    /// The costs that parameters are made of. A busy server does more in one go, so its CPU time counts; several response times
    /// at once hold waiting, so those of single requests count.
    fn chosen(&self) -> &StepCosts {
        if self.plan.server.is_some() { &self.together } else { &self.alone }
    }

    fn what(&self) -> &'static str {
        if self.plan.server.is_some() { "cpu_time" } else { "response_time" }
    }
}

fn settings(all: &[(&'static str, f64)]) -> String {
    let one = |(key, value): &(&str, f64)| format!("--set {key}={value}");
    all.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn us(spread: &CostSpread) -> String {
    let short = |value: f64| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") };
    format!("{} ({} to {})", short(spread.median), short(spread.min), short(spread.max))
}

fn text(measured: &MeasuredServer) -> String {
    let plan = &measured.plan;
    let mut out = format!("Small resource  {}: {} bytes\n", plan.small.url(), plan.sizes.small_bytes);
    if let (Some(large), Some(bytes)) = (&plan.large, plan.sizes.large_bytes) {
        out += &format!("Large resource  {}: {bytes} bytes\n", large.url());
    }
    out += &format!(
        "Measured        {}\n\n",
        match &plan.server {
            Some(server) => format!(
                "CPU time of the server's processes ({}), in user and kernel mode",
                server.processes()
            ),
            None =>
                "response times, which are upper bounds of CPU times; --pid measures a server on this machine"
                    .to_owned(),
        }
    );
    let together = format!("{} at once, µs", measured.at_once);
    let mut table = Table::new([
        ("Cost of", Align::Left),
        ("one at a time, µs", Align::Right),
        (&together, Align::Right),
    ]);
    let (alone, others) = (&measured.alone, &measured.together);
    table.row(["a connection", &us(&alone.connection_us), &us(&others.connection_us)]);
    table.row(["a request", &us(&alone.request_us), &us(&others.request_us)]);
    if let (Some(one), Some(other)) = (&alone.transmit_per_512_bytes_us, &others.transmit_per_512_bytes_us) {
        table.row(["512 bytes", &us(one), &us(other)]);
    }
    out += &table.to_text();
    out += &format!(
        "\nMedians of {ROUNDS} rounds of up to {} requests of each kind, with the least and the most.\n",
        plan.requests
    );
    for warning in warnings(measured) {
        out += &format!("Warning: {warning}\n");
    }
    let chosen = measured.chosen();
    out += &format!(
        "\nEach request on a connection of its own, as the model has it:\n  {}\n\
         Connections that are kept, as a front-end keeps them to its back-ends:\n  {}\n\
         These are costs of one CPU: set lard.cpu_speed to the number of CPUs that the server uses.\n",
        settings(&chosen.settings(false)),
        settings(&chosen.settings(true)),
    );
    out
}

/// What makes the figures doubtful.
fn warnings(measured: &MeasuredServer) -> Vec<String> {
    let chosen = measured.chosen();
    let mut out = Vec::new();
    let all = [
        ("a connection", Some(chosen.connection_us)),
        ("a request", Some(chosen.request_us)),
        ("512 bytes", chosen.transmit_per_512_bytes_us),
    ];
    for (what, spread) in all {
        if let Some(spread) = spread.filter(|spread| spread.relative() > WIDE) {
            let more = match measured.plan.requests {
                MOST_REQUESTS => "",
                _ => "; more --requests tell more",
            };
            let percent = (spread.relative() * 100.0).min(999.0);
            out.push(format!(
                "the rounds differ by {percent:.0} % of the median in the cost of {what}; is the server idle, and this machine?{more}"
            ));
        }
    }
    if chosen.transmit_per_512_bytes_us.is_none() {
        out.push("without --large the cost of bytes is unknown, and part of that of a request".to_owned());
    }
    out
}

fn json(measured: &MeasuredServer) -> serde_json::Value {
    let plan = &measured.plan;
    let costs = |costs: &StepCosts| {
        serde_json::json!({
            "connection_us": costs.connection_us.json(),
            "request_us": costs.request_us.json(),
            "transmit_per_512_bytes_us": costs.transmit_per_512_bytes_us.map(|spread| spread.json()),
        })
    };
    let map = |kept| -> serde_json::Map<String, serde_json::Value> {
        let all = measured.chosen().settings(kept);
        all.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
    };
    serde_json::json!({
        "url": plan.small.url(),
        "bytes": plan.sizes.small_bytes,
        "large_url": plan.large.as_ref().map(MeasuredUrl::url),
        "large_bytes": plan.sizes.large_bytes,
        "measured": measured.what(),
        "rounds": ROUNDS,
        "requests": plan.requests,
        "at_once": measured.at_once,
        "one_at_a_time": costs(&measured.alone),
        "several_at_once": costs(&measured.together),
        "settings": map(false),
        "settings_kept": map(true),
        "warnings": warnings(measured),
    })
}
