//! The rate of a cluster with two back-ends: measured on this machine, and computed for machines of their own.

use std::path::Path;

use anyhow::Result;
use plimsoll_lab::{CpuMeter, CpuPlan, Node};

use crate::bed::{Bed, Kind};
use crate::configs::{HAPROXY_PORT, PLIMSOLL_PORT};
use crate::cost::{HAPROXY, STAY, Samples, median, median_of, met};
use crate::load::{Load, Mode};

const SIZE_BYTES: usize = 100 << 10;
const BACKENDS: f64 = 2.0;
const GOAL: f64 = 3.0;

/// CPU time of a back-end per request, in microseconds: of HAProxy's and of ours.
fn backends_us(
    plimsoll: &Path,
    plan: &CpuPlan,
    rounds: usize,
    seconds: u64,
    meter: &CpuMeter,
) -> Result<[f64; 2]> {
    let measured = Node::Backend(0);
    let beds = [
        (Bed::start(Kind::Proxies, plimsoll, plan, measured, 1)?, HAPROXY_PORT),
        (Bed::start(Kind::Origin, plimsoll, plan, measured, 1)?, PLIMSOLL_PORT),
    ];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for ((bed, port), times) in beds.iter().zip(&mut times) {
            let paths = bed.paths(SIZE_BYTES)?;
            let load = Load {
                bed,
                port: *port,
                mode: Mode::Stay,
                size_bytes: SIZE_BYTES,
                paths: &paths,
                connections: 16,
                seconds,
            };
            times.push(load.run(meter)?.cpu_us);
        }
    }
    Ok(times.map(median))
}

/// Measures the back-ends and prints; `samples` are those of the front-end for 100 KB.
pub fn measure(
    samples: &Samples,
    plimsoll: &Path,
    plan: &CpuPlan,
    (rounds, seconds): (usize, u64),
    meter: &CpuMeter,
) -> Result<()> {
    let [theirs, ours] = backends_us(plimsoll, plan, rounds, seconds, meter)?;
    let ratio =
        median(samples[STAY].iter().zip(&samples[HAPROXY]).map(|(a, b)| a.requests_per_s / b.requests_per_s));
    println!("\nRequests per second of a cluster with two back-ends, 100 KB");
    println!(
        "  measured, back-ends and client on one CPU, front-end on the other: handoff {ratio:.2} times HAProxy"
    );
    println!("  computed from the CPU time of each node, each with a CPU of its own (not of the client):");
    let mut rates = [0.0; 2];
    for (number, (name, case, backend_us)) in
        [("HAProxy and nginx", HAPROXY, theirs), ("handoff and agents", STAY, ours)].into_iter().enumerate()
    {
        let front_end_us = median_of(&samples[case], |s| s.cpu_us);
        rates[number] = (1e6 / front_end_us).min(BACKENDS * 1e6 / backend_us);
        println!(
            "    {name:<20} front-end {front_end_us:>6.1} us, back-end {backend_us:>6.1} us per request: {:>7.0} requests/s; \
             a front-end keeps {:.1} back-ends busy",
            rates[number],
            backend_us / front_end_us
        );
    }
    let times = rates[1] / rates[0];
    println!("    handoff / HAProxy: {times:.2}  goal {GOAL}: {}", met(times >= GOAL));
    Ok(())
}
