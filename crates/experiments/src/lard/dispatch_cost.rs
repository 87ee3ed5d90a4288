//! What the dispatcher takes for a request, alone in a loop: choice, admission and completion.

use std::collections::VecDeque;
use std::time::Instant;

use plimsoll_policy::{
    AdmissionControl, BuildContext, Cluster, Core, Ending, Offered, Request, TargetId, Time, build, mix,
};

const REQUESTS: u64 = 300_000;
/// Targets of the Rice trace.
const TARGETS: u64 = 37_703;
/// Requests under way.
const UNDER_WAY: usize = 100;
/// Other programs make a round longer, never shorter, so the shortest of several counts.
const ROUNDS: usize = 5;

/// Seconds for a request by LARD/R with so many back-ends; `None` without such a policy.
pub(super) fn dispatch_s(backends: usize) -> Option<f64> {
    let round = |_| {
        let policy = build("lard_r", &BuildContext::default(), &[]).ok()?;
        let mut core = Core::new(policy, Cluster::new(backends), AdmissionControl::UNLIMITED);
        let mut under_way = VecDeque::new();
        let begin = Instant::now();
        for number in 0..REQUESTS {
            let now = Time::from_nanos(100_000 * number);
            let target = TargetId(mix(number) % TARGETS);
            if let Offered::Assigned(assigned) = core.offer(&Request::of(number, target), now) {
                under_way.push_back(assigned);
            }
            if let Some(oldest) = under_way.pop_front_if(|_| number >= UNDER_WAY as u64) {
                core.complete(&oldest, Ending::answered(Some(1_024)), now);
            }
        }
        Some(begin.elapsed().as_secs_f64() / REQUESTS as f64)
    };
    (0..ROUNDS).filter_map(round).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dispatcher_takes_some_time() {
        assert!(dispatch_s(2).is_some_and(|seconds| seconds > 0.0));
    }
}
