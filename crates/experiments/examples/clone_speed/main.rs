//! Prints what Socket Cloning costs on a lab of this machine, beside the goals: how long it takes until a clone is there, the CPU
//! time of the original, bringing an original up to date, throughput beside direct service, and what it brings that clones are
//! made ahead or keep their connection:
//! `cargo run --release -p plimsoll-experiments --example clone_speed`. With the argument `efficiency` only the throughput; with
//! `deliveries` the CPU time of the original once more where packets come by an interrupt for each and by an interrupt for many, as from
//! network cards: this changes settings of the machine and sets them back, unless it is killed.
//!
//! Beside it stands a simple program (`least/least_cloner.c`): what the system calls of cloning cost this machine.
//!
//! One CPU is that of the original's node, with all work of the kernel for it; client and other nodes share the others. ROUNDS (5)
//! and SECONDS (1) in the environment set the number of rounds and the time of one measurement; medians are shown, and ratios are
//! formed within a round. Wrong answers fail the run, missed goals are only shown. Needs root, wrk, curl,
//! clang and a C compiler.
#![allow(clippy::unwrap_used, reason = "a measurement, not a service")]

mod bed;
mod least;
mod times;

use std::time::Duration;

use plimsoll_lab::{Conditions, CpuMeter, CpuPlan, DELIVERIES_ONE_AND_MANY, Deliverer, Node, Rate};

use bed::{Bed, CONNECTIONS, Kind, Load, ORIGINAL};
use least::{Least, LeastTimes};

const SIZES: [usize; 6] = [64, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20];
const CLONES: usize = 1_000;
const PAIRS: usize = 500;
/// Microseconds.
const STARTUP_GOAL: f64 = 60.0;
const CPU_GOALS: [(usize, f64); 2] = [(8 << 10, 45.0), (100 << 10, 60.0)];
const FORWARD_GOAL: f64 = 8.0;
const EFFICIENCY_GOAL: f64 = 0.95;
const EFFICIENCY_GOAL_FROM: usize = 64 << 10;

fn main() {
    let number = |name: &str, usual: usize| match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => usual,
    };
    let (rounds, seconds) = (number("ROUNDS", 5), number("SECONDS", 1));
    let plan = CpuPlan::of_this_machine().unwrap();
    plan.pin_this_thread(Node::Client).unwrap();
    let part = std::env::args().nth(1).unwrap_or_default();
    times::prepare();
    let _grouping = (part == "deliveries").then(|| plimsoll_lab::ungroup().unwrap());
    let plain = Bed::start(Kind::Plain, &plan);
    if part == "efficiency" {
        efficiency(&plain, rounds, seconds);
        return plain.stop();
    }
    if part == "deliveries" {
        return deliveries(plain, &plan, rounds, seconds);
    }
    let least = Least::start(&plan);
    let by_least = startup(&plain, &least, &plan);
    forwarding(&plain, &by_least);
    let kept = Bed::start(Kind::Keeps, &plan);
    costs([&plain, &kept], &least, &plan, rounds, seconds);
    let ahead = Bed::start(Kind::Ahead, &plan);
    pairs(&plain, &ahead, &plan);
    efficiency(&plain, rounds, seconds);
    for bed in [plain, kept, ahead] {
        bed.stop();
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = (times.len() as f64 * share).ceil() as usize;
    times[at.clamp(1, times.len()) - 1]
}

fn median(times: &mut [f64]) -> f64 {
    quantile(times, 0.5)
}

/// With CPUs that fall asleep when there is nothing to do, and with CPUs that never do.
fn both_ways(plan: &CpuPlan, mut measure: impl FnMut(&str)) {
    measure("CPUs sleep when idle");
    let _awake = [plan.front_end, plan.others[0]].map(|cpu| CpuMeter::start(cpu).unwrap());
    measure("CPUs kept awake");
}

/// Returns what the simple program took with CPUs that are kept awake.
fn startup(bed: &Bed, least: &Least, plan: &CpuPlan) -> LeastTimes {
    let mut by_least = None;
    println!(
        "Until a clone is there: from the request, as it was read, to the restored socket, and from the decision to the word of its node. One \
         client, {CLONES} clones, 100 B"
    );
    println!(
        "  (in the paper, sending the SC message and setting up: 134 us and 46 us, Pentium II 300 and III 733)"
    );
    both_ways(plan, |what| {
        let (mut told, mut restored) = times::until_restored(|| bed.startups(CLONES));
        assert!(restored.len() >= CLONES, "{} restored sockets of {CLONES}", restored.len());
        let [restored, told] = [&mut restored, &mut told].map(|times| (median(times), quantile(times, 0.99)));
        let verdict = met(restored.0 <= STARTUP_GOAL);
        println!(
            "  {what:<22} restored: median {:>6.1} us   p99 {:>7.1} us   goal {STARTUP_GOAL}: {verdict:<6}   told: median {:>6.1} us   p99 {:>7.1} us",
            restored.0, restored.1, told.0, told.1
        );
        let least = least.times();
        println!(
            "  {:<22} restored: median {:>6.1} us   the ratio to it {:.2}",
            "the simple program",
            least.restored_us,
            restored.0 / least.restored_us
        );
        by_least = Some(least);
    });
    by_least.expect("it was measured")
}

fn forwarding(bed: &Bed, least: &LeastTimes) {
    let mut steps = bed.steps(2 * CLONES);
    println!("\nAt the original, medians");
    for (name, times) in ["freezing", "reading the state", "bringing it up to date", "making it live"]
        .into_iter()
        .zip(&mut steps)
    {
        println!("  {name:<24} {:>6.1} us", median(times));
    }
    let mut both: Vec<f64> = steps[2].iter().zip(&steps[3]).map(|(forward, live)| forward + live).collect();
    // Sorted each, so this is the sum of like quantiles.
    let both = median(&mut both);
    println!(
        "  the last two             {both:>6.1} us   goal {FORWARD_GOAL}: {}",
        met(both <= FORWARD_GOAL)
    );
    println!(
        "  by the simple program    {:>6.1} us   the ratio to it {:.2}",
        least.forwarded_us,
        both / least.forwarded_us
    );
}

fn costs([plain, kept]: [&Bed; 2], least: &Least, plan: &CpuPlan, rounds: usize, seconds: usize) {
    println!(
        "\nCPU time of the original's node per request, work of its kernel included; 16 connections that are kept"
    );
    println!(
        "{:>10} {:>28} {:>29} {:>26} {:>27} {:>22}",
        "",
        "a clone for each request",
        "the simple program",
        "ratio",
        "clones keep the connection",
        "answered there"
    );
    let meter = CpuMeter::start(plan.front_end).unwrap();
    for size in [64, 8 << 10, 100 << 10, 1 << 20] {
        let mut found = [const { Vec::new() }; 4];
        let mut ratios = Vec::new();
        for _ in 0..rounds {
            let [at_one, here] = [(plain, 1), (plain, ORIGINAL)].map(|(bed, at)| bed.path_at(at, size));
            let kept_path = kept.path_at(1, size);
            let loads = [
                plain.load(ORIGINAL, &at_one, seconds, Some(&meter)),
                least.load(size, CONNECTIONS, seconds, Some(&meter)),
                kept.load(ORIGINAL, &kept_path, seconds, Some(&meter)),
                plain.load(ORIGINAL, &here, seconds, Some(&meter)),
            ];
            ratios.push(loads[0].cpu_us / loads[1].cpu_us);
            found.iter_mut().zip(loads).for_each(|(found, load)| found.push(load));
        }
        let [clone, least, keep, here] = found.each_ref().map(|loads| {
            let of = |value: fn(&Load) -> f64| median(&mut loads.iter().map(value).collect::<Vec<_>>());
            (of(|load| load.cpu_us), of(|load| load.requests_per_s))
        });
        print!("{size:>8} B {:>8.1} us {:>8.0} req/s", clone.0, clone.1);
        match CPU_GOALS.iter().find(|(of, _)| *of == size) {
            Some((_, goal)) => print!("   goal {goal}: {:<6}", met(clone.0 <= *goal)),
            None => print!("{:>18}", ""),
        }
        print!(" {:>8.1} us {:>8.0} req/s {:>6.2}", least.0, least.1, median(&mut ratios));
        println!(" {:>8.1} us {:>8.0} req/s {:>8.1} us {:>8.0} req/s", keep.0, keep.1, here.0, here.1);
    }
}

fn deliveries(plain: Bed, plan: &CpuPlan, rounds: usize, seconds: usize) {
    let kept = Bed::start(Kind::Keeps, plan);
    let least = Least::start(plan);
    {
        let labs = [plain.lab(), kept.lab(), &least.lab];
        let deliverer = Deliverer::new(labs, plan).unwrap();
        for delivery in &DELIVERIES_ONE_AND_MANY {
            deliverer.apply(delivery).unwrap();
            println!("\nPackets: {}", delivery.name);
            startup(&plain, &least, plan);
            costs([&plain, &kept], &least, plan, rounds, seconds);
        }
    }
    plain.stop();
    kept.stop();
}

fn pairs(plain: &Bed, ahead: &Bed, plan: &CpuPlan) {
    println!(
        "\nTwo pipelined requests for two other nodes, 1 KB each, from sending them to having both answers; {PAIRS} pairs"
    );
    both_ways(plan, |what| {
        let mut found = [const { Vec::new() }; 2];
        // By turns.
        for _ in 0..PAIRS / 50 {
            for (bed, found) in [plain, ahead].into_iter().zip(&mut found) {
                found.extend(bed.pairs(50, 1 << 10));
            }
        }
        let [plain, ahead] = found.each_mut().map(|found| median(found));
        println!(
            "  {what:<22} one after the other {plain:>6.1} us   the second made ahead {ahead:>6.1} us   {:.2}",
            ahead / plain
        );
    });
}

fn efficiency(bed: &Bed, rounds: usize, seconds: usize) {
    println!(
        "\nThroughput with a clone for each request, beside that of its node alone (normalized efficiency); 16 connections"
    );
    let fast = Rate::from_bits_per_s(100_000_000).unwrap();
    let links = [("links of 100 Mbit/s", Some(fast)), ("links as fast as the machine", None)];
    for (what, rate) in links {
        println!("  {what}");
        bed.set_links(&Conditions { rate, ..Conditions::default() });
        for size in SIZES {
            // So that many answers end within the time.
            let seconds = if rate.is_some() && size >= EFFICIENCY_GOAL_FROM { 10 * seconds } else { seconds };
            let (mut cloned, mut direct, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..rounds {
                let path = bed.path_at(1, size);
                let alone = bed.load(1, &path, seconds, None).requests_per_s;
                let by_clones = bed.load(ORIGINAL, &path, seconds, None).requests_per_s;
                direct.push(alone);
                cloned.push(by_clones);
                ratios.push(by_clones / alone);
            }
            let ratio = median(&mut ratios);
            print!(
                "{size:>10} B {:>8.0} req/s {:>8.0} req/s {ratio:>6.3}",
                median(&mut cloned),
                median(&mut direct)
            );
            if size >= EFFICIENCY_GOAL_FROM {
                print!("   goal {EFFICIENCY_GOAL}: {}", met(ratio >= EFFICIENCY_GOAL));
            }
            println!();
        }
    }
    bed.set_links(&Conditions::default());
}
