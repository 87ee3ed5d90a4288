//! What the tests share.

use std::convert::Infallible;

use plimsoll_cache::find as find_cache;
use plimsoll_policy::{
    AdmissionControl, AdmissionLimit, BuildContext, Cluster, Core, Nanos, Policy, PolicyChoice, TargetId,
    Time,
};
use plimsoll_sim::models::adaptload::{AdaptLoadModel, AdaptLoadModelParams};
use plimsoll_sim::models::fifo::{FifoModel, FifoParams};
use plimsoll_sim::models::lard::{LardModel, LardModelParams};
use plimsoll_sim::{
    Arrivals, CacheConfig, DecisionMade, Fault, RunConfig, RunError, RunObserver, RunOutcome, SimRequest,
    Targets, run,
};

/// A request for `target` of `size_bytes` at `at_ms`.
pub(crate) fn request(target: u32, size_bytes: u64, at_ms: u64) -> SimRequest {
    let time = Time::ZERO + Nanos::from_millis(at_ms);
    SimRequest { time, target, size_bytes, ..SimRequest::default() }
}

/// Targets with these document sizes.
pub(crate) fn targets(sizes: &[u64]) -> Targets {
    let ids = (0..sizes.len() as u64).map(|t| TargetId::from_key(&t.to_le_bytes())).collect();
    Targets::new(ids, sizes.to_vec(), &[])
}

/// Keeps every decision.
#[derive(Default)]
pub(crate) struct Decisions(pub(crate) Vec<DecisionMade>);

impl RunObserver for Decisions {
    fn decided(&mut self, decided: DecisionMade) {
        self.0.push(decided);
    }
}

/// A run to be varied.
pub(crate) struct Setup<'a> {
    /// A policy, perhaps with parameters: `lard:t_low=10`.
    pub(crate) policy: &'a str,
    pub(crate) backends: usize,
    pub(crate) seed: u64,
    pub(crate) arrivals: Arrivals,
    pub(crate) limit: AdmissionLimit,
    pub(crate) poll_time: Nanos,
    pub(crate) faults: Vec<Fault>,
    pub(crate) cache_bytes: u64,
    pub(crate) global_memory: bool,
    pub(crate) warmup: u64,
    pub(crate) settles: bool,
    pub(crate) params: LardModelParams,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            policy: "least_connections",
            backends: 1,
            seed: 1,
            arrivals: Arrivals::Trace { speed: 1.0 },
            limit: AdmissionLimit::Unlimited,
            poll_time: Nanos::ZERO,
            faults: Vec::new(),
            cache_bytes: 1 << 20,
            global_memory: false,
            warmup: 0,
            settles: false,
            params: LardModelParams::default(),
        }
    }
}

impl Setup<'_> {
    fn core(&self) -> Core {
        let context =
            BuildContext { seed: self.seed, cache_bytes: self.cache_bytes, ..BuildContext::default() };
        self.core_with(self.policy.parse::<PolicyChoice>().unwrap().build(&context).unwrap())
    }

    fn core_with(&self, policy: Box<dyn Policy>) -> Core {
        let admission = AdmissionControl { limit: self.limit, queue: 1_000_000 };
        Core::new(policy, Cluster::new(self.backends), admission)
    }

    fn config<'c>(&'c self, targets: &'c Targets) -> RunConfig<'c> {
        RunConfig {
            seed: self.seed,
            arrivals: self.arrivals,
            warmup: self.warmup,
            settles: self.settles,
            idle_below: 10.0,
            poll_time: self.poll_time,
            faults: &self.faults,
            hot_spots: &[],
            targets,
        }
    }

    fn lru(&self) -> CacheConfig {
        CacheConfig {
            spec: find_cache("lru").unwrap(),
            capacity_bytes: self.cache_bytes,
            object_limit_bytes: None,
        }
    }

    /// Runs on `AdaptLoad` back-ends with LRU caches.
    pub(crate) fn adaptload(
        &self,
        params: &AdaptLoadModelParams,
        targets: &Targets,
        requests: &[SimRequest],
    ) -> (RunOutcome, Vec<DecisionMade>) {
        self.try_adaptload(params, targets, requests).unwrap()
    }

    /// The same, for runs that may fail.
    pub(crate) fn try_adaptload(
        &self,
        params: &AdaptLoadModelParams,
        targets: &Targets,
        requests: &[SimRequest],
    ) -> Result<(RunOutcome, Vec<DecisionMade>), RunError<Infallible>> {
        let model = AdaptLoadModel::new(params, self.backends, self.lru(), targets, self.seed);
        let mut decisions = Decisions::default();
        let source = requests.iter().map(|r| Ok::<_, Infallible>(*r));
        let outcome = run(&self.config(targets), self.core(), model, source, &mut decisions)?;
        Ok((outcome, decisions.0))
    }

    /// Runs on LARD back-ends with LRU caches.
    pub(crate) fn lard(&self, targets: &Targets, requests: &[SimRequest]) -> (RunOutcome, Vec<DecisionMade>) {
        self.try_lard(targets, requests).unwrap()
    }

    /// The same, for runs that may fail.
    pub(crate) fn try_lard(
        &self,
        targets: &Targets,
        requests: &[SimRequest],
    ) -> Result<(RunOutcome, Vec<DecisionMade>), RunError<Infallible>> {
        let model = LardModel::new(self.params, self.backends, self.lru(), targets, self.global_memory);
        let mut decisions = Decisions::default();
        let source = requests.iter().map(|r| Ok::<_, Infallible>(*r));
        let outcome = run(&self.config(targets), self.core(), model, source, &mut decisions)?;
        Ok((outcome, decisions.0))
    }

    /// Runs on LARD back-ends with LRU caches, under a policy that is in no registry.
    pub(crate) fn lard_with(
        &self,
        policy: Box<dyn Policy>,
        targets: &Targets,
        requests: &[SimRequest],
    ) -> (RunOutcome, Vec<DecisionMade>) {
        let model = LardModel::new(self.params, self.backends, self.lru(), targets, self.global_memory);
        let mut decisions = Decisions::default();
        let source = requests.iter().map(|r| Ok::<_, Infallible>(*r));
        let outcome =
            run(&self.config(targets), self.core_with(policy), model, source, &mut decisions).unwrap();
        (outcome, decisions.0)
    }

    /// Runs `requests` equal requests on FIFO back-ends with exponential service of mean 1 s.
    pub(crate) fn fifo(&self, requests: usize) -> RunOutcome {
        let targets = targets(&[0]);
        let model = FifoModel::new(
            FifoParams { service_s: Nanos::from_secs(1), ..FifoParams::default() },
            self.backends,
            self.seed,
        );
        let source = (0..requests).map(|_| Ok::<_, Infallible>(request(0, 0, 0)));
        run(&self.config(&targets), self.core(), model, source, &mut ()).unwrap()
    }
}
