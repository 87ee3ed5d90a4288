//! Decisions per second through one lock, as a front-end's workers make them: `decision_lock [DECISIONS]`.
//!
//! Each thread offers requests and completes older ones, each under the lock that guards policy and decision log, and reads
//! the clock under it. With one thread the time per decision is the time that the lock is held, and its inverse is what any
//! number of workers can decide at most; with two threads the lock is fought for. One JSON line for each.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use plimsoll_decisions::Recorder;
use plimsoll_policy::{
    AdmissionControl, AdmissionLimit, BuildContext, Cluster, Core, Ending, Offered, Policy, Request, Rng,
    TargetId, Thresholds, Time, Witness, build, mix,
};

const TARGETS: u64 = 100_000;
const BACKENDS: usize = 16;
/// Requests in progress per back-end.
const LOAD: usize = 50;

struct Shared<W> {
    core: Core<W>,
    number: u64,
}

/// Wall time in seconds of so many decisions by so many threads.
fn seconds<W: Witness + Send>(
    shared: &Mutex<Shared<W>>,
    threads: usize,
    decisions: u64,
    drain: fn(&mut W),
) -> f64 {
    let origin = Instant::now();
    let now = || Time::from_nanos(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let work = |thread: u64| {
        let mut rng = Rng::new(1, thread);
        let mut under_way = VecDeque::new();
        for _ in 0..decisions / threads as u64 {
            let target = TargetId(mix(rng.below(TARGETS) + 1));
            let offered = {
                let mut shared = lock();
                let number = shared.number;
                shared.number += 1;
                let request = Request { size_bytes: Some(10_000), ..Request::of(number, target) };
                let offered = shared.core.offer(&request, now());
                drain(shared.core.witness_mut());
                offered
            };
            if let Offered::Assigned(assigned) = offered {
                under_way.push_back(assigned);
            }
            if under_way.len() > LOAD * BACKENDS / threads
                && let Some(oldest) = under_way.pop_front()
            {
                let mut shared = lock();
                shared.core.complete(&oldest, Ending::answered(Some(10_000)), now());
                drain(shared.core.witness_mut());
            }
        }
        // The next run begins without load.
        for assigned in under_way {
            lock().core.complete(&assigned, Ending::answered(Some(10_000)), now());
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            scope.spawn(move || work(thread));
        }
    });
    origin.elapsed().as_secs_f64()
}

fn measure<W: Witness + Send>(
    name: &str,
    (policy, witness): (Box<dyn Policy>, W),
    decisions: u64,
    drain: fn(&mut W),
    log: bool,
) {
    // As in the live front-end.
    let limit = AdmissionLimit::Adaptive(Thresholds::default());
    let admission = AdmissionControl { limit, queue: 1024 };
    let core = Core::with_witness(policy, Cluster::new(BACKENDS), admission, witness);
    let shared = Mutex::new(Shared { core, number: 0 });
    // Targets become known before the clock starts.
    seconds(&shared, 1, decisions / 4, drain);
    for threads in [1, 2] {
        let seconds = seconds(&shared, threads, decisions, drain);
        println!(
            "{{\"policy\":\"{name}\",\"log\":{log},\"threads\":{threads},\"decisions_per_s\":{:.0},\
             \"wall_ns_per_decision\":{:.1}}}",
            decisions as f64 / seconds,
            1e9 * seconds / decisions as f64
        );
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let decisions: u64 = std::env::args().nth(1).as_deref().unwrap_or("4000000").parse()?;
    for name in ["weighted_round_robin", "least_connections", "uri_hash", "lard_r"] {
        let policy = || build(name, &BuildContext::default(), &[]);
        measure(name, (policy()?, ()), decisions, |()| {}, false);
        let drain = |recorder: &mut Recorder| {
            if recorder.is_chunk_full() {
                let chunk = recorder.take();
                recorder.recycle(chunk);
            }
        };
        measure(name, (policy()?, Recorder::new()), decisions, drain, true);
    }
    Ok(())
}
