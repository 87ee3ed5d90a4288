//! What is gained when packets come to the front-end's CPU, and leave it, otherwise than by an interrupt for each.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use plimsoll_lab::{CpuMeter, CpuPlan, Deliverer};

use crate::bed::Bed;
use crate::cost::{Beds, CASES, HAND_ON, HAPROXY, HAPROXY_NEW, NEW, STAY, median, median_of, run_one};
use crate::latency;
use crate::load::Sample;

/// Cases, each with a size of documents; they are compared to the first.
const KEPT: [(usize, usize); 2] = [(HAPROXY, 100 << 10), (STAY, 100 << 10)];
const OF_NEW: [(usize, usize); 3] = [(HAPROXY_NEW, 100), (NEW, 100), (HAND_ON, 100)];
/// Connections of a client alone, of each kind and within a round.
const CONNECTIONS: usize = 200;
/// What is counted on the front-end's CPU: interrupts from other CPUs and of timers, those sent to other CPUs, and threads
/// that were woken.
const CPU_EVENTS: [(&str, &str); 5] = [
    ("irq_vectors:call_function_single_entry", "packets from others"),
    ("irq_vectors:reschedule_entry", "wake-ups from others"),
    ("irq_vectors:local_timer_entry", "timers"),
    ("ipi:ipi_send_cpu", "sent"),
    ("sched:sched_wakeup", "threads woken"),
];
/// What is counted of the front-end's process.
const PROCESS_EVENTS: [(&str, &str); 5] = [
    ("raw_syscalls:sys_enter", "all calls"),
    ("syscalls:sys_enter_epoll_wait", "epoll_wait"),
    ("syscalls:sys_enter_recvfrom", "recvfrom"),
    ("syscalls:sys_enter_sendto", "sendto"),
    ("syscalls:sys_enter_bpf", "bpf"),
];

/// Measures all deliveries by turns and prints medians: CPU time under load with kept connections (`kept`) and with new ones
/// (`new`), the time of a client alone (`latency`), or how many interrupts, wake-ups and system calls there are (`counts`).
pub fn measure(beds: &Beds, plan: &CpuPlan, part: &str, rounds: usize, seconds: u64) -> Result<()> {
    let deliverer = Deliverer::new(beds.values().map(Bed::lab), plan)?;
    match part {
        "kept" => costs(beds, plan, &deliverer, &KEPT, (rounds, seconds)),
        "new" => costs(beds, plan, &deliverer, &OF_NEW, (rounds, seconds)),
        "latency" => latencies(beds, plan, &deliverer, rounds),
        "counts" => counts(beds, plan, &deliverer),
        _ => bail!("the parts are kept, new, latency and counts, not `{part}`"),
    }
}

fn costs(
    beds: &Beds,
    plan: &CpuPlan,
    deliverer: &Deliverer<'_>,
    loads: &[(usize, usize)],
    (rounds, seconds): (usize, u64),
) -> Result<()> {
    let deliveries = deliverer.deliveries();
    let meter = CpuMeter::start(plan.front_end)?;
    // By delivery and load.
    let mut samples = vec![vec![Vec::new(); loads.len()]; deliveries.len()];
    for round in 0..rounds {
        for turn in 0..deliveries.len() {
            let number = (turn + round) % deliveries.len();
            deliverer.apply(deliveries[number])?;
            for (&(case, size_bytes), samples) in loads.iter().zip(&mut samples[number]) {
                let sample = run_one(beds, &CASES[case], size_bytes, seconds, &meter);
                samples.push(sample.with_context(|| deliveries[number].name)?);
            }
        }
    }
    println!("CPU time of the front-end's node per request, beside that with RPS, and beside HAProxy's");
    let ratio = |ours: &[Sample], theirs: &[Sample]| {
        median(ours.iter().zip(theirs).map(|(ours, theirs)| ours.cpu_us / theirs.cpu_us))
    };
    for (at, &(case, size_bytes)) in loads.iter().enumerate() {
        println!("\n{}, {size_bytes} B", CASES[case].name);
        for (delivery, of_all) in deliveries.iter().zip(&samples) {
            let ours = &of_all[at];
            println!(
                "  {:<29} {:>6.1} us  {:.2} RPS  {:.3} HAProxy {:>7.0} requests/s, {:>6.0} per s and core, {:.2} packets led on",
                delivery.name,
                median_of(ours, |s| s.cpu_us),
                ratio(ours, &samples[0][at]),
                ratio(ours, &of_all[0]),
                median_of(ours, |s| s.requests_per_s),
                median_of(ours, |s| s.requests_per_s / s.share),
                median_of(ours, |s| s.forwarded),
            );
        }
    }
    Ok(())
}

fn latencies(beds: &Beds, plan: &CpuPlan, deliverer: &Deliverer<'_>, rounds: usize) -> Result<()> {
    let deliveries = deliverer.deliveries();
    for awake in [false, true] {
        println!(
            "\nFirst response on a new connection, 100 B, one client, {}; medians",
            if awake { "CPUs kept awake" } else { "CPUs sleep when idle" }
        );
        let _awake = awake.then(|| [plan.front_end, plan.others[0]].map(CpuMeter::start));
        let mut found = vec![Vec::new(); deliveries.len()];
        for round in 0..rounds {
            for turn in 0..deliveries.len() {
                let number = (turn + round) % deliveries.len();
                deliverer.apply(deliveries[number])?;
                let mut times = latency::times(beds, CONNECTIONS)?;
                found[number].push(times.each_mut().map(|times| latency::us(latency::quantile(times, 0.5))));
            }
        }
        for (delivery, found) in deliveries.iter().zip(&found) {
            let [direct, proxy, handoff] =
                [0, 1, 2].map(|way| median(found.iter().map(|f: &[f64; 3]| f[way])));
            let added = median(found.iter().map(|[direct, _, handoff]| handoff - direct));
            println!(
                "  {:<29} straight {direct:>6.1} us  by proxy {proxy:>6.1} us  by handoff {handoff:>6.1} us  added {added:>6.1} us",
                delivery.name
            );
        }
    }
    Ok(())
}

/// Counts under `perf`, which makes everything slower.
fn counts(beds: &Beds, plan: &CpuPlan, deliverer: &Deliverer<'_>) -> Result<()> {
    let deliveries = deliverer.deliveries();
    println!(
        "\nPer request: on the front-end's CPU interrupts and wake-ups, and system calls of the front-end"
    );
    let meter = CpuMeter::start(plan.front_end)?;
    for delivery in deliveries {
        deliverer.apply(delivery)?;
        for (case, size_bytes) in [(STAY, 100 << 10), (NEW, 100), (HAND_ON, 100)] {
            let bed = beds.get(&CASES[case].kind).context("no such lab")?;
            let process = bed.front_end_process().context("no front-end")?.to_string();
            let cpu = plan.front_end.to_string();
            print!("  {:<29} {:<27}", delivery.name, CASES[case].name);
            for (of, events) in [(["-C", &cpu], CPU_EVENTS), (["-p", &process], PROCESS_EVENTS)] {
                let counted = count(of, &events, || run_one(beds, &CASES[case], size_bytes, 2, &meter))?;
                for ((_, name), count) in events.iter().zip(counted) {
                    print!("  {name} {count:.2}");
                }
            }
            println!();
        }
    }
    Ok(())
}

/// Counts events within a load of two seconds; answers how many there were per request.
fn count(of: [&str; 2], events: &[(&str, &str)], load: impl FnOnce() -> Result<Sample>) -> Result<Vec<f64>> {
    let names: Vec<&str> = events.iter().map(|(event, _)| *event).collect();
    // The load begins with some checks.
    let mut command = Command::new("perf");
    command.args(["stat", "-x", ",", "--delay", "700", "--timeout", "1000", "-e", &names.join(",")]).args(of);
    let perf = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("run perf")?;
    let sample = load()?;
    let output = perf.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = |name: &str| {
        let line = text.lines().find(|line| line.split(',').nth(2) == Some(name));
        let number = line.and_then(|line| line.split(',').next()?.parse::<f64>().ok());
        number.with_context(|| format!("perf did not count {name}: {text}"))
    };
    names.iter().map(|name| Ok(count(name)? / sample.requests_per_s)).collect()
}
