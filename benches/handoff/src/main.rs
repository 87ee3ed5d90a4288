//! Handing connections off beside HAProxy and nginx as proxies, each on a lab of its own on this machine.
//!
//! Usage: plimsoll-bench-handoff PLIMSOLL            PLIMSOLL: the optimized program
//!        plimsoll-bench-handoff PLIMSOLL border     where handing off begins to pay, see `border.rs`; with one more
//!                                                   argument only lines that contain it, such as "many, new"
//!        plimsoll-bench-handoff PLIMSOLL interrupts PART
//!                                                   packets delivered otherwise than by an interrupt for each: PART is kept,
//!                                                   new, latency or counts, see `interrupts.rs`. It changes settings of the
//!                                                   machine and sets them back, unless it is killed
//!        plimsoll-bench-handoff PLIMSOLL direct     connections distributed at layer 4, see `direct.rs`
//!        plimsoll-bench-handoff PLIMSOLL direct deliveries
//!                                                   the same with an interrupt for each packet and for many. It changes
//!                                                   settings of the machine and sets them back, unless it is killed
//!        plimsoll-bench-handoff PLIMSOLL direct interrupts
//!                                                   the same under `perf`: how much of it is interrupts between CPUs
//!        plimsoll-bench-handoff PLIMSOLL CASE SIZE  one case (a number) only, under `perf`, see `profile.rs`
//!
//! One CPU is that of the front-end's node, with all work of the kernel for it; everything else runs on the others.
//! Cases take turns within a round; ratios are formed within a round, and medians over the rounds are shown. Wrong
//! answers fail the run, missed goals are only shown. ROUNDS (5) and SECONDS (1) in the environment set the number of
//! rounds and the time of one measurement. Needs root, wrk, haproxy and nginx.

mod bed;
mod border;
mod cluster;
mod configs;
mod cost;
mod direct;
mod documents;
mod http;
mod interrupt_share;
mod interrupts;
mod latency;
mod least;
mod load;
mod profile;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use plimsoll_lab::{CpuMeter, CpuPlan, Node, check_privileges};

use bed::{Bed, Kind};
use cost::Beds;

const BACKENDS: usize = 2;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    check_privileges()?;
    let plan = CpuPlan::of_this_machine()?;
    plan.pin_this_thread(Node::Client)?;
    match &arguments[..] {
        [plimsoll] => all(&program(plimsoll)?, &plan),
        [plimsoll, word, part @ ..] if word == "border" && part.len() <= 1 => {
            border(&program(plimsoll)?, &plan, part.first().map_or("", String::as_str))
        }
        [plimsoll, word] if word == "direct" => direct::measure(
            &program(plimsoll)?,
            &plan,
            BACKENDS,
            from_environment("ROUNDS", 5)?,
            from_environment("SECONDS", 1)?,
        ),
        [plimsoll, word, what] if word == "direct" && what == "deliveries" => direct::measure_deliveries(
            &program(plimsoll)?,
            &plan,
            BACKENDS,
            from_environment("ROUNDS", 5)?,
            from_environment("SECONDS", 1)?,
        ),
        [plimsoll, word, what] if word == "direct" && what == "interrupts" => {
            let seconds = from_environment("SECONDS", 3)?;
            direct::measure_interrupts(&program(plimsoll)?, &plan, BACKENDS, seconds)
        }
        [plimsoll, word, part] if word == "interrupts" => interrupts(&program(plimsoll)?, &plan, part),
        [plimsoll, case, size] => profile::run(&start(&program(plimsoll)?, &plan)?, case, size, &plan),
        _ => bail!("give the program `plimsoll`, and nothing or a case and a size for a profile"),
    }
}

fn program(path: &str) -> Result<PathBuf> {
    Path::new(path).canonicalize().with_context(|| path.to_owned())
}

fn from_environment(name: &str, usual: u64) -> Result<u64> {
    let Ok(text) = std::env::var(name) else { return Ok(usual) };
    let number = text.parse().ok().filter(|n| (1..=1000).contains(n));
    number.with_context(|| format!("{name} is a number from 1 to 1000, not `{text}`"))
}

fn start(plimsoll: &Path, plan: &CpuPlan) -> Result<Beds> {
    let kinds = [Kind::Proxies, Kind::Origin, Kind::Shim].into_iter();
    kinds.map(|kind| Ok((kind, Bed::start(kind, plimsoll, plan, Node::FrontEnd, BACKENDS)?))).collect()
}

fn border(plimsoll: &Path, plan: &CpuPlan, part: &str) -> Result<()> {
    let rounds = usize::try_from(from_environment("ROUNDS", 5)?)?;
    let seconds = from_environment("SECONDS", 1)?;
    let beds = start(plimsoll, plan)?;
    let meter = CpuMeter::start(plan.front_end)?;
    border::measure(&beds, part, rounds, seconds, &meter)
}

fn interrupts(plimsoll: &Path, plan: &CpuPlan, part: &str) -> Result<()> {
    let rounds = usize::try_from(from_environment("ROUNDS", 5)?)?;
    let seconds = from_environment("SECONDS", 1)?;
    let _grouping = plimsoll_lab::ungroup()?;
    let kinds = [Kind::Proxies, Kind::Origin].into_iter();
    let beds = kinds.map(|kind| Ok((kind, Bed::start(kind, plimsoll, plan, Node::FrontEnd, BACKENDS)?)));
    interrupts::measure(&beds.collect::<Result<_>>()?, plan, part, rounds, seconds)
}

fn all(plimsoll: &Path, plan: &CpuPlan) -> Result<()> {
    let rounds = usize::try_from(from_environment("ROUNDS", 5)?)?;
    let seconds = from_environment("SECONDS", 1)?;
    let beds = start(plimsoll, plan)?;
    latency::measure(&beds, plan)?;
    let meter = CpuMeter::start(plan.front_end)?;
    let idle = meter.read();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let of_nothing = meter.read().since(idle);
    println!(
        "\nCPU time of the front-end's node per request, work of its kernel included. Of a second in which nothing happens,"
    );
    println!(
        "{:.1} ms are counted. in, out: packets at the front-end; led on: by its kernel, to a back-end; on: connections handed from one",
        1e3 * of_nothing.busy.as_secs_f64()
    );
    println!(
        "back-end to another; stay: requests that stay where their connection is, each per request; others: CPUs that other"
    );
    println!(
        "programs used. The third column is beside HAProxy with kept connections, or with new ones for new ones."
    );
    let mut samples = Vec::new();
    for (label, size_bytes) in cost::sizes() {
        let of_size = cost::measure(&beds, size_bytes, rounds, seconds, &meter)?;
        cost::print(label, size_bytes, &of_size);
        samples.push((label, of_size));
    }
    cost::print_capacity(&samples[0].1);
    cost::print_choices(&samples);
    for bed in beds.values() {
        bed.check(BACKENDS)?;
    }
    drop(beds);
    cluster::measure(&samples[2].1, plimsoll, plan, (rounds, seconds), &meter)?;
    cost::print_disturbance(&samples);
    Ok(())
}
