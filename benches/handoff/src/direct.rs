//! Connections distributed at layer 4 beside HAProxy in TCP mode and address translation by nftables: CPU time of the node that
//! distributes, per connection. A connection is for one request.

use std::path::Path;

use anyhow::{Context as _, Result};
use plimsoll_lab::{CpuMeter, CpuPlan, DELIVERIES_ONE_AND_MANY, Deliverer, Node, ungroup};

use crate::bed::{Bed, Kind};
use crate::configs::PLIMSOLL_PORT;
use crate::cost::{median, median_of, met};
use crate::interrupt_share;
use crate::load::{Load, Mode, Sample};

const SIZES: [(&str, usize); 2] = [("1 KB", 1 << 10), ("100 KB", 100 << 10)];
const CASES: [(&str, Kind); 5] = [
    ("direct", Kind::Direct),
    ("direct, what passes is read (csld)", Kind::Sniffed),
    ("HAProxy, TCP mode", Kind::Tcp),
    ("nftables, DNAT and masquerade", Kind::Nat),
    ("the least, which keeps nothing", Kind::Least),
];
const CONNECTIONS: usize = 32;
/// The most CPU time per connection, as a share of theirs.
const BESIDE_HAPROXY: f64 = 0.2;
const BESIDE_NAT: f64 = 0.5;
/// The least rate with reading, as a share of that without.
const WITH_READING: f64 = 0.9;

/// Measures and prints everything.
pub fn measure(plimsoll: &Path, plan: &CpuPlan, backends: usize, rounds: u64, seconds: u64) -> Result<()> {
    let beds = start(plimsoll, plan, backends)?;
    let meter = CpuMeter::start(plan.front_end)?;
    println!(
        "\nCPU time of the node that distributes per connection with one request, work of its kernel included"
    );
    for (label, size_bytes) in SIZES {
        print(label, &sample(&beds, size_bytes, &meter, rounds, seconds)?);
    }
    for bed in &beds {
        bed.check(backends)?;
    }
    Ok(())
}

/// The same where packets come by an interrupt for each, and by an interrupt for many, as from network cards.
pub fn measure_deliveries(
    plimsoll: &Path,
    plan: &CpuPlan,
    backends: usize,
    rounds: u64,
    seconds: u64,
) -> Result<()> {
    let _grouping = ungroup()?;
    let beds = start(plimsoll, plan, backends)?;
    let deliverer = Deliverer::new(beds.iter().map(Bed::lab), plan)?;
    let meter = CpuMeter::start(plan.front_end)?;
    for delivery in &DELIVERIES_ONE_AND_MANY {
        deliverer.apply(delivery)?;
        println!("\nCPU time of the node that distributes; packets: {}", delivery.name);
        for (label, size_bytes) in SIZES {
            print(label, &sample(&beds, size_bytes, &meter, rounds, seconds)?);
        }
    }
    Ok(())
}

/// Samples of all cases, which take turns.
fn sample(
    beds: &[Bed],
    size_bytes: usize,
    meter: &CpuMeter,
    rounds: u64,
    seconds: u64,
) -> Result<[Vec<Sample>; 5]> {
    let mut samples: [Vec<Sample>; 5] = Default::default();
    for round in 0..usize::try_from(rounds)? {
        for turn in 0..CASES.len() {
            let number = (turn + round) % CASES.len();
            let bed = &beds[number];
            let paths = bed.paths(size_bytes)?;
            let load = load(bed, size_bytes, &paths, seconds);
            samples[number].push(load.run(meter).with_context(|| CASES[number].0)?);
        }
    }
    Ok(samples)
}

fn start(plimsoll: &Path, plan: &CpuPlan, backends: usize) -> Result<Vec<Bed>> {
    let bed = |(name, kind): &(&str, Kind)| {
        Bed::start(*kind, plimsoll, plan, Node::FrontEnd, backends).with_context(|| name.to_string())
    };
    CASES.iter().map(bed).collect()
}

fn load<'a>(bed: &'a Bed, size_bytes: usize, paths: &'a [String; 2], seconds: u64) -> Load<'a> {
    let (port, mode, connections) = (PLIMSOLL_PORT, Mode::New, CONNECTIONS);
    Load { bed, port, mode, size_bytes, paths, connections, seconds }
}

/// Measures each case once under `perf`, and prints how much of the CPU time is interrupts between CPUs.
pub fn measure_interrupts(plimsoll: &Path, plan: &CpuPlan, backends: usize, seconds: u64) -> Result<()> {
    let beds = start(plimsoll, plan, backends)?;
    let meter = CpuMeter::start(plan.front_end)?;
    println!("\nCPU time per connection under perf, and without interrupts between CPUs");
    for (label, size_bytes) in SIZES {
        println!(
            "\n{label:<36}{:>12}{:>14}{:>14}{:>14}{:>10}",
            "connections", "CPU/conn.", "interrupts", "the rest", "others"
        );
        let mut rests = Vec::new();
        for (bed, (name, _)) in beds.iter().zip(CASES) {
            let paths = bed.paths(size_bytes)?;
            let load = load(bed, size_bytes, &paths, seconds);
            let (sample, share) =
                interrupt_share::run(&load, plan.front_end, &meter).with_context(|| name)?;
            let rest_us = sample.cpu_us * (1.0 - share);
            println!(
                "  {name:<34}{:>10.0}/s{:>11.2} us{:>12.1} %{rest_us:>11.2} us{:>10.2}",
                sample.requests_per_s,
                sample.cpu_us,
                share * 100.0,
                sample.other_cpus
            );
            rests.push(rest_us);
        }
        println!(
            "  the rest, direct / HAProxy: {:.2}, direct / nftables: {:.2}; direct / the least: {:.2}",
            rests[0] / rests[2],
            rests[0] / rests[3],
            rests[0] / rests[4]
        );
    }
    Ok(())
}

fn print(label: &str, samples: &[Vec<Sample>; 5]) {
    println!(
        "\n{label:<36}{:>12}{:>14}{:>12}{:>16}{:>10}",
        "connections", "CPU/conn.", "packets in", "CPU/packet in", "others"
    );
    for ((name, _), of_one) in CASES.iter().zip(samples) {
        let (cpu_us, packets) = (median_of(of_one, |s| s.cpu_us), median_of(of_one, |s| s.packets_in));
        println!(
            "  {name:<34}{:>10.0}/s{cpu_us:>11.2} us{packets:>12.1}{:>13.2} us{:>10.2}",
            median_of(of_one, |s| s.requests_per_s),
            cpu_us / packets,
            median_of(of_one, |s| s.other_cpus)
        );
    }
    let [direct, read, haproxy, nat, least] = samples;
    let beside = |theirs: &[Sample]| median(direct.iter().zip(theirs).map(|(a, b)| a.cpu_us / b.cpu_us));
    for (name, ratio, goal) in
        [("HAProxy", beside(haproxy), BESIDE_HAPROXY), ("nftables", beside(nat), BESIDE_NAT)]
    {
        println!("  direct / {name}: {ratio:.2} of the CPU time  goal {goal}: {}", met(ratio <= goal));
    }
    for (name, theirs) in [("HAProxy", haproxy), ("nftables", nat)] {
        let ratio = median(least.iter().zip(theirs).map(|(a, b)| a.cpu_us / b.cpu_us));
        println!("  the least / {name}: {ratio:.2} of the CPU time");
    }
    let rate = median(read.iter().zip(direct).map(|(a, b)| a.requests_per_s / b.requests_per_s));
    println!("  read / not read: {rate:.2} of the rate  goal {WITH_READING}: {}", met(rate >= WITH_READING));
}
