//! What `adaptload` costs beside requests and back-ends: `boundary_speed [DECISIONS]` prints one JSON line with
//! microseconds to set the boundaries of 256 back-ends anew from 2,048 bins, and one for each of several numbers of
//! back-ends with nanoseconds for a decision, that is, choice and count of a request, adjustments included.

use plimsoll_policy::policies::adaptload::{AdaptLoad, AdaptLoadParams};
use plimsoll_policy::{Cluster, Decision, Policy as _, Request, Rng, SizeBased, TargetId, Time};

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

/// Sizes spread over all bins alike, up to a gigabyte or so: nearly as many loaded bins as there can be.
fn sizes(count: usize) -> Vec<u64> {
    let mut rng = Rng::new(1, 1);
    (0..count).map(|_| (rng.unit() * 21.0).exp() as u64).collect()
}

fn adjustment_us(rounds: u32) -> Result<f64, Box<dyn std::error::Error>> {
    // A request is a batch, and earlier batches hardly fade: each round ends a batch and cuts the whole histogram.
    let params = AdaptLoadParams { batch: 1, alpha: 0.9999, base: 1.0103, ..AdaptLoadParams::default() };
    let mut sizes_based = SizeBased::new(&params.sizing(), 1, 1);
    let cluster = Cluster::new(256);
    let sized = |n: u64, size_bytes| Request { size_bytes: Some(size_bytes), ..Request::of(n, TargetId(n)) };
    sizes_based.choose(&sized(0, 0), &cluster, Time::ZERO);
    let sizes = sizes(20_000);
    for (n, &size) in (0..).zip(&sizes) {
        sizes_based.count(&sized(n, size), Time::ZERO);
    }
    let before_s = cpu_time::cpu_s()?;
    for (n, &size) in (0..u64::from(rounds)).zip(sizes.iter().cycle()) {
        sizes_based.count(&sized(n, size), Time::from_nanos(n));
    }
    let us = (cpu_time::cpu_s()? - before_s) * 1e6 / f64::from(rounds);
    let loaded = sizes_based.weights().iter().filter(|w| **w > 0.0).count();
    assert!(
        loaded > 1_600 && sizes_based.intervals().boundaries().len() == 255,
        "{loaded} bins hold anything"
    );
    Ok(us)
}

fn decision_ns(backends: usize, decisions: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut policy = AdaptLoad::new(&AdaptLoadParams::default(), 1);
    let cluster = Cluster::new(backends);
    let requests: Vec<Request> = (0..)
        .zip(sizes(decisions))
        .map(|(n, size)| Request { size_bytes: Some(size), ..Request::of(n, TargetId(n)) })
        .collect();
    let mut assigned = 0u64;
    let before_s = cpu_time::cpu_s()?;
    for request in &requests {
        let now = Time::from_nanos(request.number);
        if let Decision::Assign(backend) = policy.choose(request, &cluster, now) {
            policy.on_assign(request, backend, &cluster, now);
            assigned += 1;
        }
    }
    let ns = (cpu_time::cpu_s()? - before_s) * 1e9 / decisions as f64;
    assert_eq!(assigned, decisions as u64, "every request has a back-end");
    Ok(ns)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let decisions: usize = std::env::args().nth(1).as_deref().unwrap_or("4000000").parse()?;
    println!(r#"{{"bins":2048,"backends":256,"us_per_adjustment":{:.2}}}"#, adjustment_us(20_000)?);
    for backends in [4, 16, 256] {
        println!(
            r#"{{"policy":"adaptload","backends":{backends},"ns_per_decision":{:.1}}}"#,
            decision_ns(backends, decisions)?
        );
    }
    Ok(())
}
