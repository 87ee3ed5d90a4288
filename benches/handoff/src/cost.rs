//! CPU time of the front-end per request, and the rates that were reached.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use plimsoll_lab::CpuMeter;

use crate::bed::{Bed, Kind};
use crate::configs::{AUTO_PORT, HAPROXY_PORT, ITSELF_PORT, NGINX_PORT, PLIMSOLL_PORT, PROXY_PORT};
use crate::documents::SIZES;
use crate::load::{Load, Mode, Sample};

const CONNECTIONS: usize = 16;
/// Where connections are made for each request there are always some on their way.
const NEW_CONNECTIONS: usize = 32;

/// One way to get responses to clients.
pub struct Case {
    pub name: &'static str,
    pub kind: Kind,
    pub port: u16,
    pub mode: Mode,
}

const fn case(name: &'static str, kind: Kind, port: u16, mode: Mode) -> Case {
    Case { name, kind, port, mode }
}

pub const HAPROXY: usize = 0;
pub const STAY: usize = 3;
pub const HAND_ON: usize = 5;
pub const HAPROXY_NEW: usize = 6;
pub const NEW: usize = 9;
/// What a connection costs where it is accepted, answered and closed.
pub const ITSELF: usize = 10;

/// All of them; the constants above are places herein.
pub const CASES: [Case; 17] = [
    case("HAProxy", Kind::Proxies, HAPROXY_PORT, Mode::Stay),
    case("nginx", Kind::Proxies, NGINX_PORT, Mode::Stay),
    case("proxy", Kind::Proxies, PLIMSOLL_PORT, Mode::Stay),
    case("handoff, stays", Kind::Origin, PLIMSOLL_PORT, Mode::Stay),
    case("handoff, stays, nginx behind shim", Kind::Shim, PLIMSOLL_PORT, Mode::Stay),
    case("handoff, on at each request", Kind::Origin, PLIMSOLL_PORT, Mode::Alternate),
    case("HAProxy, new connections", Kind::Proxies, HAPROXY_PORT, Mode::New),
    case("nginx, new connections", Kind::Proxies, NGINX_PORT, Mode::New),
    case("proxy, new connections", Kind::Proxies, PLIMSOLL_PORT, Mode::New),
    case("handoff, new connections", Kind::Origin, PLIMSOLL_PORT, Mode::New),
    case("nginx itself, new connections", Kind::Proxies, ITSELF_PORT, Mode::New),
    case("proxy before agents", Kind::Origin, PROXY_PORT, Mode::Stay),
    case("proxy before agents, by turns", Kind::Origin, PROXY_PORT, Mode::Alternate),
    case("proxy before agents, new connections", Kind::Origin, PROXY_PORT, Mode::New),
    case("auto", Kind::Origin, AUTO_PORT, Mode::Stay),
    case("auto, by turns", Kind::Origin, AUTO_PORT, Mode::Alternate),
    case("auto, new connections", Kind::Origin, AUTO_PORT, Mode::New),
];

/// The labs, by what is on them.
pub type Beds = BTreeMap<Kind, Bed>;

/// For each case, the samples of all rounds.
pub type Samples = Vec<Vec<Sample>>;

/// What the tables are of.
const TABLE_SIZES: [usize; 4] = [100, 8 << 10, 100 << 10, 1 << 20];

/// Measurements beside which other programs used more CPUs than this are repeated, some times in all.
const DISTURBED_CPUS: f64 = 0.1;
const ATTEMPTS: usize = 3;

/// Runs one case, again while other programs disturb it and there is one of the `spare` measurements left; the least
/// disturbed one counts.
fn run_calmly(
    beds: &Beds,
    case: &Case,
    size_bytes: usize,
    seconds: u64,
    meter: &CpuMeter,
    spare: &mut usize,
) -> Result<Sample> {
    let mut best = run_one(beds, case, size_bytes, seconds, meter)?;
    for _ in 1..ATTEMPTS {
        if best.other_cpus <= DISTURBED_CPUS || *spare == 0 {
            break;
        }
        *spare -= 1;
        let again = run_one(beds, case, size_bytes, seconds, meter)?;
        if again.other_cpus < best.other_cpus {
            best = again;
        }
    }
    Ok(best)
}

/// Runs one case once.
pub fn run_one(
    beds: &Beds,
    case: &Case,
    size_bytes: usize,
    seconds: u64,
    meter: &CpuMeter,
) -> Result<Sample> {
    let bed = beds.get(&case.kind).context("no such lab")?;
    let paths = bed.paths(size_bytes)?;
    let connections = if case.mode == Mode::New { NEW_CONNECTIONS } else { CONNECTIONS };
    let load =
        Load { bed, port: case.port, mode: case.mode, size_bytes, paths: &paths, connections, seconds };
    load.run(meter).with_context(|| case.name)
}

/// All cases by turns, for one size. Each round begins with another one.
pub fn measure(
    beds: &Beds,
    size_bytes: usize,
    rounds: usize,
    seconds: u64,
    meter: &CpuMeter,
) -> Result<Samples> {
    let mut spare = CASES.len();
    let mut samples: Samples = CASES.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..CASES.len() {
            let number = (turn + round * 3) % CASES.len();
            samples[number].push(run_calmly(beds, &CASES[number], size_bytes, seconds, meter, &mut spare)?);
        }
    }
    Ok(samples)
}

/// The middle one, or the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => f64::midpoint(values[(n - 1) / 2], values[n / 2]),
    }
}

/// Median of something over the rounds of a case.
pub fn median_of(samples: &[Sample], what: impl Fn(&Sample) -> f64) -> f64 {
    median(samples.iter().map(what))
}

/// Largest ratio to HAProxy's CPU time that is a goal, by size.
fn goal(size_bytes: usize) -> Option<f64> {
    match size_bytes {
        8192 => Some(1.0 / 3.0),
        102_400 => Some(1.0 / 8.0),
        1_048_576 => Some(1.0 / 15.0),
        _ => None,
    }
}

/// Prints the table of one size.
pub fn print(label: &str, size_bytes: usize, samples: &Samples) {
    println!(
        "\n{label:<35} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "CPU/req", "/HAProxy", "req/s", "in use", "in", "out", "led on", "on", "stay", "others"
    );
    for (number, case) in CASES.iter().enumerate() {
        let ours = &samples[number];
        let beside = if case.mode == Mode::New { HAPROXY_NEW } else { HAPROXY };
        let ratio = median(ours.iter().zip(&samples[beside]).map(|(a, b)| a.cpu_us / b.cpu_us));
        let goal = match goal(size_bytes) {
            Some(goal) if number == STAY => format!("  goal {goal:.3}: {}", met(ratio <= goal)),
            _ => String::new(),
        };
        println!(
            "{:<35} {:>6.1} us {ratio:>9.3} {:>9.0} {:>5.0}% {:>6.2} {:>6.2} {:>6.2} {:>6.2} {:>6.2} {:>6.2}{goal}",
            case.name,
            median_of(ours, |s| s.cpu_us),
            median_of(ours, |s| s.requests_per_s),
            100.0 * median_of(ours, |s| s.share),
            median_of(ours, |s| s.packets_in),
            median_of(ours, |s| s.packets_out),
            median_of(ours, |s| s.forwarded),
            median_of(ours, |s| s.handed_on),
            median_of(ours, |s| s.stayed),
            median_of(ours, |s| s.other_cpus),
        );
    }
}

pub fn met(yes: bool) -> &'static str {
    if yes { "met" } else { "MISSED" }
}

/// Prints what the smallest documents tell of handoffs per second and core.
pub fn print_capacity(samples: &Samples) {
    println!("\nHandoffs per second and core of the front-end (100 B; rate / share of its CPU in use)");
    let line = |name: &str, number: usize, per: fn(&Sample) -> f64, goal: f64| {
        let capacity = median_of(&samples[number], |s| per(s) * s.requests_per_s / s.share);
        let rate = samples[number].iter().map(|s| per(s) * s.requests_per_s).fold(0.0, f64::max);
        let verdict = met(capacity >= goal);
        println!(
            "  {name:<46} {capacity:>8.0}  highest rate reached {rate:>8.0}/s  goal {goal:.0}: {verdict}"
        );
    };
    line("of new connections", NEW, |s| s.handoffs, 20_000.0);
    line("from one back-end to another", HAND_ON, |s| s.handed_on, 20_000.0);
    let itself = median_of(&samples[ITSELF], |s| s.requests_per_s / s.share);
    println!("  beside that: connections that nginx accepts, answers itself and closes {itself:>8.0}");
}

/// The three mechanisms before the same back-ends: what the load is called, and the places of proxy, handoff and auto.
const CHOICES: [(&str, [usize; 3]); 3] =
    [("kept", [11, STAY, 14]), ("by turns", [12, HAND_ON, 15]), ("new connections", [13, NEW, 16])];
/// The least share of the better one's rate that is the goal of the front-end that chooses.
pub const CHOICE_GOAL: f64 = 0.95;

/// Prints whether the front-end that chooses gets through as much as the better one of the others.
pub fn print_choices(all: &[(&str, Samples)]) {
    println!(
        "\nRequests/s of auto beside the better of proxy and handoff, before the same back-ends (goal {CHOICE_GOAL})"
    );
    for (label, samples) in all {
        for (name, [proxy, handoff, auto]) in CHOICES {
            let others = samples[proxy].iter().zip(&samples[handoff]);
            let beside = |(auto, (proxy, handoff)): (&Sample, (&Sample, &Sample))| {
                auto.requests_per_s / proxy.requests_per_s.max(handoff.requests_per_s)
            };
            let ratio = median(samples[auto].iter().zip(others).map(beside));
            println!("  {label:>6}, {name:<16} {ratio:>5.2} {}", met(ratio >= CHOICE_GOAL));
        }
    }
}

/// Prints what else ran meanwhile, if it was much.
pub fn print_disturbance(all: &[(&str, Samples)]) {
    let others = all.iter().flat_map(|(_, samples)| samples).flatten().map(|s| s.other_cpus);
    println!(
        "\nOther programs used {:.3} CPUs meanwhile (median; {:.3} at most)",
        median(others.clone()),
        others.fold(0.0, f64::max)
    );
}

/// The sizes of the tables, in order.
pub fn sizes() -> impl Iterator<Item = (&'static str, usize)> {
    SIZES.into_iter().filter(|(_, size_bytes)| TABLE_SIZES.contains(size_bytes))
}
