//! Peak EWMA with power of two choices: of two back-ends drawn at random, the one whose recent response time and load promise the
//! earlier answer.
//!
//! Citation: Finagle's `p2c` balancer with the load metric "peak EWMA" (Twitter), since then in linkerd and tower; two choices:
//! Mitzenmacher, IEEE TPDS 2001.
//!
//! ```text
//! when b answers after rtt:  if rtt > ewma[b]: ewma[b] <- rtt
//!                            else: w <- exp(-time since b's last answer / decay)
//!                                  ewma[b] <- w * ewma[b] + (1 - w) * rtt
//! cost[b] <- ewma[b] * exp(-time since b's last answer / decay) * (load[b] + 1) / weight[b]
//! a, b <- two different back-ends drawn at random
//! n <- the one with the lower cost; a on ties
//! send r to n
//! ```
//!
//! So a slow answer counts at once and fades slowly, and a back-end that was slow is tried again when that has faded. A back-end
//! that has not answered yet costs nothing without load, so that it is tried at once, and has the response time `default_s` as soon
//! as it has load. A failed request may raise the estimate and never lowers it: one that fails quickly must not attract requests.

use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::{Completion, Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Outcome, Request};
use crate::time::{Nanos, Time};
use crate::two_choices::TwoChoices;

crate::params! {
    /// Parameters of peak EWMA.
    pub struct PeakEwmaParams {
        /// Tau: the time in which the weight of a past response time falls to 37 %.
        decay_s: Nanos = Nanos::from_secs(10), 0.000001..=1000000.0, "s";
        /// The response time of a back-end that has requests and has not answered any yet.
        default_s: Nanos = Nanos::from_secs(1), 0.0..=1000000.0, "s";
    }
}

/// Stream of the run's seed that this policy draws from.
const STREAM: u64 = 0x7065_616B;

/// What is known of a back-end's response times.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    ewma_ns: f64,
    at: Time,
}

/// See the module's documentation.
pub struct PeakEwma {
    decay_ns: f64,
    default_ns: f64,
    choices: TwoChoices,
    /// By back-end; `None` for one that has not answered.
    estimates: Vec<Option<Estimate>>,
}

impl PeakEwma {
    /// With these parameters; draws random numbers from the stream of `seed`.
    #[must_use]
    pub fn new(params: &PeakEwmaParams, seed: u64) -> Self {
        Self {
            decay_ns: params.decay_s.as_nanos() as f64,
            default_ns: params.default_s.as_nanos() as f64,
            choices: TwoChoices::new(seed, STREAM),
            estimates: Vec::new(),
        }
    }

    /// The share of an estimate that is left at `now`.
    fn left(&self, since: Time, now: Time) -> f64 {
        libm::exp(-(now.since(since).as_nanos() as f64) / self.decay_ns)
    }

    fn cost(&self, b: BackendId, view: &ClusterView, now: Time) -> f64 {
        let load = view.load(b);
        let response_ns = match self.estimates.get(b.index()).copied().flatten() {
            Some(Estimate { ewma_ns, at }) => ewma_ns * self.left(at, now),
            None if load == 0 => 0.0,
            None => self.default_ns,
        };
        response_ns * (f64::from(load) + 1.0) / f64::from(view.weight(b).steps())
    }
}

impl Policy for PeakEwma {
    fn choose(&mut self, _: &Request, view: &ClusterView, now: Time) -> Decision {
        let drawn = self.choices.draw(view);
        let lesser = |(a, b)| if self.cost(b, view, now) < self.cost(a, view, now) { b } else { a };
        assign_or_reject(drawn.map(lesser))
    }

    fn on_complete(&mut self, completion: &Completion, view: &ClusterView, now: Time) {
        let b = completion.backend;
        self.estimates.resize(view.len(), None);
        let rtt_ns = completion.response_time.as_nanos() as f64;
        let completed = completion.outcome == Outcome::Completed;
        let new = match self.estimates[b.index()] {
            Some(known) if rtt_ns <= known.ewma_ns => {
                if !completed {
                    return;
                }
                let left = self.left(known.at, now);
                known.ewma_ns * left + rtt_ns * (1.0 - left)
            }
            None if !completed => rtt_ns.max(self.default_ns),
            _ => rtt_ns,
        };
        self.estimates[b.index()] = Some(Estimate { ewma_ns: new, at: now });
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, _: &ClusterView, _: Time) {
        // What comes back, or has this index next, is measured anew.
        if matches!(change, Change::Joined | Change::Left | Change::Health(Health::Down))
            && let Some(estimate) = self.estimates.get_mut(backend.index())
        {
            *estimate = None;
        }
    }
}

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(PeakEwma::new(&PeakEwmaParams::of(params), context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "peak_ewma",
    aliases: &["p2c_peak_ewma", "p2c_ewma"],
    summary: "of two back-ends drawn at random, the lower recent response time times load",
    source: "Finagle, linkerd and tower (peak EWMA)",
    capabilities: &Capabilities::NONE,
    load_use: LoadUse::ViewAndResponseTimes,
    weighted: true,
    params: PeakEwmaParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::request::TargetId;
    use crate::weight::Weight;

    const B0: BackendId = BackendId(0);
    const B1: BackendId = BackendId(1);

    fn policy() -> PeakEwma {
        PeakEwma::new(&PeakEwmaParams::default(), 1)
    }

    fn s(seconds: u64) -> Time {
        Time::ZERO + Nanos::from_secs(seconds)
    }

    fn ended(backend: BackendId, ms: u64, outcome: Outcome) -> Completion {
        let response_time = Nanos::from_millis(ms);
        Completion::of(TargetId(0), backend, outcome, response_time)
    }

    fn ewma_ms(policy: &PeakEwma, b: BackendId) -> f64 {
        policy.estimates[b.index()].unwrap().ewma_ns / 1e6
    }

    fn choose(policy: &mut PeakEwma, cluster: &Cluster, now: Time) -> BackendId {
        match policy.choose(&Request::of(0, TargetId(0)), cluster, now) {
            Decision::Assign(b) => b,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_peak_counts_at_once_and_fades() {
        let (mut p, cluster) = (policy(), Cluster::new(2));
        p.on_complete(&ended(B0, 10, Outcome::Completed), &cluster, s(0));
        assert!((ewma_ms(&p, B0) - 10.0).abs() < 1e-9);
        p.on_complete(&ended(B0, 100, Outcome::Completed), &cluster, s(1));
        assert!((ewma_ms(&p, B0) - 100.0).abs() < 1e-9);
        // After 10 s, the decay, 1/e of 100 ms and the rest of 10 ms: 36.788 + 6.321.
        p.on_complete(&ended(B0, 10, Outcome::Completed), &cluster, s(11));
        assert!((ewma_ms(&p, B0) - 43.109).abs() < 0.001, "{}", ewma_ms(&p, B0));
        // Failures raise it only.
        p.on_complete(&ended(B0, 1, Outcome::Failed), &cluster, s(12));
        assert!((ewma_ms(&p, B0) - 43.109).abs() < 0.001);
        p.on_complete(&ended(B0, 500, Outcome::Failed), &cluster, s(12));
        assert!((ewma_ms(&p, B0) - 500.0).abs() < 1e-9);
        p.on_complete(&ended(B1, 1, Outcome::Failed), &cluster, s(12));
        assert!((ewma_ms(&p, B1) - 1000.0).abs() < 1e-9, "the default");
    }

    #[test]
    fn cost_is_response_time_by_load_by_weight() {
        let (mut p, mut cluster) = (policy(), Cluster::new(2));
        p.on_complete(&ended(B0, 10, Outcome::Completed), &cluster, s(0));
        p.on_complete(&ended(B1, 25, Outcome::Completed), &cluster, s(0));
        assert_eq!(choose(&mut p, &cluster, s(0)), B0);
        cluster.assign(B0);
        assert_eq!(choose(&mut p, &cluster, s(0)), B0, "20 against 25");
        cluster.assign(B0);
        assert_eq!(choose(&mut p, &cluster, s(0)), B1, "30 against 25");
        cluster.set_weight(B0, Weight::new(2.0).unwrap());
        assert_eq!(choose(&mut p, &cluster, s(0)), B0, "15 against 25");
    }

    #[test]
    fn one_not_yet_measured_is_tried_once() {
        let (mut p, mut cluster) = (policy(), Cluster::new(2));
        p.on_complete(&ended(B0, 10, Outcome::Completed), &cluster, s(0));
        assert_eq!(choose(&mut p, &cluster, s(0)), B1);
        cluster.assign(B1);
        assert_eq!(choose(&mut p, &cluster, s(0)), B0, "2 s against 10 ms");
        p.on_complete(&ended(B1, 2, Outcome::Completed), &cluster, s(0));
        assert_eq!(choose(&mut p, &cluster, s(0)), B1, "4 ms against 10 ms");
    }

    #[test]
    fn a_slow_one_is_tried_again_after_a_while() {
        let (mut p, cluster) = (policy(), Cluster::new(2));
        p.on_complete(&ended(B0, 1000, Outcome::Completed), &cluster, s(0));
        for second in 0..60 {
            p.on_complete(&ended(B1, 10, Outcome::Completed), &cluster, s(second));
            // exp(-t / 10 s) falls below 1/100 after 46.05 s.
            let wanted = if second <= 46 { B1 } else { B0 };
            assert_eq!(choose(&mut p, &cluster, s(second)), wanted, "after {second} s");
        }
        p.on_membership(B1, Change::Health(Health::Down), &cluster, s(60));
        assert!(p.estimates[1].is_none());
    }
}
