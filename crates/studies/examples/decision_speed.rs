//! Nanoseconds per decision of every policy, or of those named: `decision_speed [DECISIONS [POLICY...]]` prints one JSON line per policy,
//! number of back-ends and popularity of the 1,000,000 targets. A decision is the whole of what a front-end does for a request:
//! admission, choice, counting, and the completion of an older request.

use std::collections::VecDeque;

use plimsoll_datapath::ProgramAllocator;
use plimsoll_policy::{
    AdmissionControl, Assigned, BuildContext, Cluster, Core, Ending, LoadReport, Offered, PollAnswer,
    REGISTRY, Request, Rng, TargetId, Time, build, mix,
};

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

/// As the `plimsoll` command has it.
#[global_allocator]
static ALLOCATOR: ProgramAllocator = ProgramAllocator;

const TARGETS: u64 = 1_000_000;
/// Requests in progress per back-end, about what LARD's S allows.
const LOAD: usize = 50;

/// Targets drawn evenly, or by Zipf's law with exponent 0.9 (inverse of its continuous form).
fn targets(zipf: bool, count: usize) -> Vec<TargetId> {
    let mut rng = Rng::new(1, 1);
    let exponent = 1.0 - 0.9;
    let top = (TARGETS as f64).powf(exponent) - 1.0;
    let mut draw = || {
        if !zipf {
            return rng.below(TARGETS);
        }
        let rank = (rng.unit() * top + 1.0).powf(1.0 / exponent) - 1.0;
        (rank as u64).min(TARGETS - 1)
    };
    (0..count).map(|_| TargetId(mix(draw() + 1))).collect()
}

/// One request in, the oldest one out.
fn step(core: &mut Core, in_progress: &mut VecDeque<Assigned>, request: &Request, now: Time) {
    let mut offered = core.offer(request, now);
    // Polls and probes are answered at once: the policy's part of them is measured.
    if let Offered::Poll(asked) = offered {
        let answers: Vec<PollAnswer> = core.view().answers(asked).collect();
        offered = core.answer(request.number, &answers, now).unwrap_or(offered);
    }
    if let Offered::Assigned(assigned) = offered {
        in_progress.push_back(assigned);
        for &b in core.take_probes().as_slice() {
            core.report(&LoadReport::of(b, core.view().load(b)), now);
        }
    }
    if in_progress.len() > LOAD * core.view().len()
        && let Some(oldest) = in_progress.pop_front()
    {
        core.complete(&oldest, Ending::answered(request.size_bytes), now);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let decisions: usize = std::env::args().nth(1).as_deref().unwrap_or("2000000").parse()?;
    let named: Vec<String> = std::env::args().skip(2).collect();
    if let Some(unknown) = named.iter().find(|&name| REGISTRY.iter().all(|spec| spec.name != name)) {
        return Err(format!("{unknown} is no policy").into());
    }
    for zipf in [true, false] {
        let stream = targets(zipf, decisions);
        for backends in [16, 256] {
            for spec in
                REGISTRY.iter().filter(|spec| named.is_empty() || named.iter().any(|n| n == spec.name))
            {
                let policy = build(spec.name, &BuildContext::default(), &[])?;
                let mut core = Core::new(policy, Cluster::new(backends), AdmissionControl::UNLIMITED);
                let mut in_progress = VecDeque::new();
                // Every target is known before the clock starts, so that its state is as large as it gets.
                for number in 0..TARGETS {
                    let request = Request {
                        size_bytes: Some(10_000),
                        ..Request::of(number, TargetId(mix(number + 1)))
                    };
                    step(&mut core, &mut in_progress, &request, Time::ZERO);
                }
                let before_s = cpu_time::cpu_s()?;
                for (number, &target) in stream.iter().enumerate() {
                    let request = Request { size_bytes: Some(10_000), ..Request::of(number as u64, target) };
                    step(&mut core, &mut in_progress, &request, Time::from_nanos(number as u64 * 100_000));
                }
                let ns = (cpu_time::cpu_s()? - before_s) * 1e9 / decisions as f64;
                let popularity = if zipf { "zipf 0.9" } else { "uniform" };
                println!(
                    r#"{{"policy":"{}","backends":{backends},"targets":{TARGETS},"popularity":"{popularity}","ns_per_decision":{ns:.1}}}"#,
                    spec.name
                );
            }
        }
    }
    Ok(())
}
