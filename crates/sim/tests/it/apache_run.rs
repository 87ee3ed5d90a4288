//! Runs of the Apache model, for its tests.

use plimsoll_policy::params::Params as _;
use plimsoll_policy::{AdmissionControl, BuildContext, Cluster, Core, Nanos, Policy, PolicyChoice};
use plimsoll_sim::models::apache::{self, ApacheParams};
use plimsoll_sim::{
    AnswerKind, Arrivals, CacheConfig, ConnectionOutcome, DecisionMade, Fault, Recording, RunConfig,
    RunOutcome, SimRequest, Simulation, Targets,
};

use crate::common::{Decisions, request, targets};

/// Nanoseconds.
pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000 * US;
/// CPU times of table 3, in nanoseconds.
pub(crate) const ESTABLISH: u64 = 66 * US;
pub(crate) const TEARDOWN: u64 = 66 * US;
pub(crate) const BASIC: u64 = 213 * US;
/// One half of a kibibyte.
pub(crate) const SEND: u64 = 37 * US;

/// Processes enough, and equal round trips of 100 ms.
pub(crate) fn plain() -> ApacheParams {
    ApacheParams {
        start_servers: 150,
        max_spare_servers: 10_000,
        round_trip_s: Nanos::from_millis(100),
        round_trip_shape: 1000.0,
        ..ApacheParams::default()
    }
}

/// A run to be varied.
pub(crate) struct ApacheRun<'a> {
    pub(crate) params: ApacheParams,
    pub(crate) policy: &'a str,
    pub(crate) backends: usize,
    pub(crate) seed: u64,
    pub(crate) arrivals: Arrivals,
    pub(crate) warmup: u64,
    pub(crate) faults: Vec<Fault>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) cache_bytes: u64,
}

impl Default for ApacheRun<'_> {
    fn default() -> Self {
        Self {
            params: plain(),
            policy: "round_robin",
            backends: 1,
            seed: 1,
            arrivals: Arrivals::Trace { speed: 1.0 },
            warmup: 0,
            faults: Vec::new(),
            sizes: vec![512; 8],
            cache_bytes: 64 << 20,
        }
    }
}

impl ApacheRun<'_> {
    /// Runs these requests.
    pub(crate) fn run(&self, requests: &[SimRequest]) -> (RunOutcome, Vec<DecisionMade>) {
        let context = BuildContext { seed: self.seed, ..BuildContext::default() };
        self.run_with(self.policy.parse::<PolicyChoice>().unwrap().build(&context).unwrap(), requests)
    }

    /// Runs these requests under a policy that is in no registry.
    pub(crate) fn run_with(
        &self,
        policy: Box<dyn Policy>,
        requests: &[SimRequest],
    ) -> (RunOutcome, Vec<DecisionMade>) {
        let targets: Targets = targets(&self.sizes);
        let config = RunConfig {
            seed: self.seed,
            arrivals: self.arrivals,
            warmup: self.warmup,
            settles: false,
            idle_below: 1.0,
            poll_time: Nanos::ZERO,
            faults: &self.faults,
            hot_spots: &[],
            targets: &targets,
        };
        let mut decisions = Decisions::default();
        let mut source = requests.iter().map(|r| Ok(*r));
        let simulation = Simulation {
            config: &config,
            recording: Recording::default(),
            core: Core::new(policy, Cluster::new(self.backends), AdmissionControl::UNLIMITED),
            front_ends: None,
            cache: CacheConfig {
                spec: &plimsoll_cache::caches::lru::SPEC,
                capacity_bytes: self.cache_bytes,
                object_limit_bytes: None,
            },
            source: &mut source,
            observer: &mut decisions,
        };
        let outcome = (apache::SPEC.run)(&self.params.to_set().unwrap(), simulation).unwrap();
        (outcome, decisions.0)
    }

    /// What became of their connections.
    pub(crate) fn connections(&self, requests: &[SimRequest]) -> ConnectionOutcome {
        *self.run(requests).0.connections.unwrap()
    }
}

/// A request that needs no document.
pub(crate) fn not_modified(at_ms: u64) -> SimRequest {
    SimRequest { answer: AnswerKind::NotModified, ..request(0, 0, at_ms) }
}

/// The server latencies of a run, summed, and the user latencies, both in nanoseconds.
pub(crate) fn sums(of: &ConnectionOutcome) -> (u64, u64) {
    let sum = |d: &plimsoll_sim::Distribution| (d.mean().unwrap() * d.count() as f64).round() as u64;
    (sum(&of.server_latency_ns), sum(&of.user_latency_ns))
}
