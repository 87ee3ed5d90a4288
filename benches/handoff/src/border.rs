//! Where handing off begins to pay, and whether `auto` finds it: one front-end that proxies, one that hands everything off and
//! one that chooses, in front of the same back-ends.

use anyhow::{Context as _, Result};
use plimsoll_lab::CpuMeter;

use crate::bed::Kind;
use crate::configs::{AUTO_PORT, PLIMSOLL_PORT, PROXY_PORT};
use crate::cost::{Beds, CHOICE_GOAL, median, median_of, met};
use crate::documents::SIZES;
use crate::load::{Load, Mode, Sample};

/// The front-ends by turns, the one that chooses last.
const PORTS: [u16; 3] = [PROXY_PORT, PLIMSOLL_PORT, AUTO_PORT];
/// Loads: a client alone, whose rate is the reciprocal of its response time, and many.
const LOADS: [(&str, Mode, usize); 6] = [
    ("alone, kept", Mode::Stay, 1),
    ("alone, by turns", Mode::Alternate, 1),
    ("alone, new", Mode::New, 1),
    ("many, kept", Mode::Stay, 16),
    ("many, by turns", Mode::Alternate, 16),
    ("many, new", Mode::New, 32),
];

/// Measures and prints the lines that begin with size and load in which `part` occurs.
pub fn measure(beds: &Beds, part: &str, rounds: usize, seconds: u64, meter: &CpuMeter) -> Result<()> {
    let bed = beds.get(&Kind::Origin).context("no such lab")?;
    println!(
        "\nrequests/s, CPU time of the front-end's node per request, share of requests answered by back-ends directly"
    );
    println!("{:<26}{:>30}{:>30}{:>38}", "", "proxy", "handoff", "auto, and its rate beside the better");
    let mut missed = 0;
    for (label, size_bytes) in SIZES {
        let wanted = LOADS.iter().filter(|(name, ..)| format!("{label} {name}").contains(part));
        for &(name, mode, connections) in wanted {
            let paths = bed.paths(size_bytes)?;
            let mut samples: [Vec<Sample>; 3] = Default::default();
            for round in 0..rounds {
                for turn in 0..PORTS.len() {
                    let number = (turn + round) % PORTS.len();
                    let load = Load {
                        bed,
                        port: PORTS[number],
                        mode,
                        size_bytes,
                        paths: &paths,
                        connections,
                        seconds,
                    };
                    samples[number].push(load.run(meter).with_context(|| name)?);
                }
            }
            let [proxy, handoff, auto] = &samples;
            let beside = |(auto, others): (&Sample, (&Sample, &Sample))| {
                auto.requests_per_s / others.0.requests_per_s.max(others.1.requests_per_s)
            };
            let ratio = median(auto.iter().zip(proxy.iter().zip(handoff)).map(beside));
            missed += usize::from(ratio < CHOICE_GOAL);
            print!("{label:>8} {name:<17}");
            for of_one in &samples {
                print!(
                    "{:>10.0}/s {:>7.1} us {:>3.0} %",
                    median_of(of_one, |s| s.requests_per_s),
                    median_of(of_one, |s| s.cpu_us),
                    100.0 * median_of(of_one, |s| s.handoffs + s.stayed)
                );
            }
            println!("   {ratio:.2} {}", met(ratio >= CHOICE_GOAL));
        }
    }
    println!("{missed} lines below {CHOICE_GOAL}");
    Ok(())
}
