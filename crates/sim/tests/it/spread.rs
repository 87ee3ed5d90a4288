//! Runs with several front-ends, to be varied.

use plimsoll_policy::{
    AdmissionControl, AdmissionLimit, BuildContext, Cluster, Core, Inquiries, Nanos, PolicyChoice, mix,
};
use plimsoll_sim::models::fifo::{FifoModel, FifoParams};
use plimsoll_sim::models::lard::{LardModel, LardModelParams};
use plimsoll_sim::{
    Arrivals, CacheConfig, Dealing, DecisionMade, Fault, FrontEndsSetup, HotSpot, LoadInformation,
    PartitionPlan, Recording, RunConfig, RunOutcome, ServiceDraw, SimRequest, Simulation, SourceError,
    Targets, TimeDistribution,
};

use crate::common::{Decisions, request, targets};
use crate::theory::interval;

/// Mean service time.
pub(crate) const SERVICE: Nanos = Nanos::from_millis(50);

/// A run with FIFO back-ends, or with those of LARD.
#[derive(Clone)]
pub(crate) struct Spread<'a> {
    pub(crate) policy: &'a str,
    pub(crate) backends: usize,
    /// `None` for one front-end that knows all.
    pub(crate) loads: Option<LoadInformation>,
    pub(crate) front_ends: u16,
    pub(crate) partitions: PartitionPlan,
    pub(crate) hop: Nanos,
    pub(crate) exchange_interval: Nanos,
    pub(crate) seed: u64,
    pub(crate) arrivals: Arrivals,
    pub(crate) limit: AdmissionLimit,
    pub(crate) faults: Vec<Fault>,
    pub(crate) hot_spots: Vec<HotSpot>,
    pub(crate) warmup: u64,
    pub(crate) fifo: FifoParams,
    /// Service times of all requests; exponential of mean [`SERVICE`] without.
    pub(crate) service: Option<TimeDistribution>,
}

impl Default for Spread<'_> {
    fn default() -> Self {
        Self {
            policy: "join_shortest_queue",
            backends: 16,
            loads: None,
            front_ends: 1,
            partitions: PartitionPlan::Whole,
            hop: Nanos::ZERO,
            exchange_interval: Nanos::ZERO,
            seed: 1,
            arrivals: poisson(0.9, 16),
            limit: AdmissionLimit::Unlimited,
            faults: Vec::new(),
            hot_spots: Vec::new(),
            warmup: 0,
            fifo: FifoParams { service_s: SERVICE, ..FifoParams::default() },
            service: None,
        }
    }
}

/// Poisson arrivals that give so many workers this load.
pub(crate) fn poisson(load: f64, workers: usize) -> Arrivals {
    Arrivals::Poisson { rate_rps: load * workers as f64 / SERVICE.as_secs_f64() }
}

impl Spread<'_> {
    fn core(&self, front_end: u16) -> Core {
        let seed = if front_end == 0 { self.seed } else { mix(self.seed ^ mix(u64::from(front_end))) };
        let context = BuildContext { seed, cache_bytes: 1 << 20, ..BuildContext::default() };
        let policy = self.policy.parse::<PolicyChoice>().unwrap().build(&context).unwrap();
        let admission = AdmissionControl { limit: self.limit, queue: 1_000_000 };
        let mut core = Core::new(policy, Cluster::new(self.backends), admission);
        match self.loads {
            Some(LoadInformation::Poll(how)) if !core.policy().capabilities().can_probe() => {
                core.set_inquiries(Some(Inquiries { size: how.size as u8, seed }));
            }
            Some(LoadInformation::Broadcast(how)) if how.counts_own == 0 => core.count_reports_only(),
            _ => {}
        }
        core
    }

    fn simulate(
        &self,
        targets: &Targets,
        requests: &[SimRequest],
        run: impl FnOnce(Simulation<'_>) -> RunOutcome,
    ) -> (RunOutcome, Vec<DecisionMade>) {
        let config = RunConfig {
            seed: self.seed,
            arrivals: self.arrivals,
            warmup: self.warmup,
            settles: false,
            idle_below: 1.0,
            poll_time: Nanos::ZERO,
            faults: &self.faults,
            hot_spots: &self.hot_spots,
            targets,
        };
        let partitions = self.partitions.on(self.backends).unwrap();
        let count = partitions.count() as u16;
        let setup = |load_information| FrontEndsSetup {
            load_information,
            count: self.front_ends,
            dealing: Dealing::AtRandom,
            hop: self.hop,
            exchange_interval: self.exchange_interval,
            partitions,
        };
        let others = match self.loads {
            Some(LoadInformation::Central(_)) | None => count,
            Some(_) => self.front_ends * count,
        };
        let mut services = ServiceDraw::new(self.service, self.seed);
        let mut source = requests.iter().map(|&(mut request)| {
            services.draw(&mut request);
            Ok::<_, SourceError>(request)
        });
        let mut decisions = Decisions::default();
        let outcome = run(Simulation {
            config: &config,
            recording: Recording::default(),
            core: self.core(0),
            front_ends: self.loads.map(|loads| (setup(loads), (1..others).map(|f| self.core(f)).collect())),
            cache: cache(),
            source: &mut source,
            observer: &mut decisions,
        });
        (outcome, decisions.0)
    }

    /// On FIFO back-ends.
    pub(crate) fn on_fifo(
        &self,
        targets: &Targets,
        requests: &[SimRequest],
    ) -> (RunOutcome, Vec<DecisionMade>) {
        let model = FifoModel::new(self.fifo, self.backends, self.seed);
        self.simulate(targets, requests, |simulation| simulation.run(model).unwrap())
    }

    /// On LARD back-ends with LRU caches.
    pub(crate) fn on_lard(
        &self,
        targets: &Targets,
        requests: &[SimRequest],
    ) -> (RunOutcome, Vec<DecisionMade>) {
        let model = LardModel::new(LardModelParams::default(), self.backends, cache(), targets, false);
        self.simulate(targets, requests, |simulation| simulation.run(model).unwrap())
    }

    /// So many equal requests on FIFO back-ends.
    pub(crate) fn run(&self, requests: usize) -> RunOutcome {
        self.on_fifo(&targets(&[0]), &vec![request(0, 0, 0); requests]).0
    }

    /// The decisions about so many equal requests.
    pub(crate) fn decisions(&self, requests: usize) -> Vec<DecisionMade> {
        self.on_fifo(&targets(&[0]), &vec![request(0, 0, 0); requests]).1
    }

    /// A figure of 16 runs with different seeds, of which a fifth is warm-up.
    pub(crate) fn figures(&self, requests: usize, of: impl Fn(&RunOutcome) -> f64) -> Vec<f64> {
        (0..16)
            .map(|seed| of(&Self { seed, warmup: requests as u64 / 5, ..self.clone() }.run(requests)))
            .collect()
    }

    /// Mean response times in units of [`SERVICE`].
    pub(crate) fn responses(&self, requests: usize) -> Vec<f64> {
        self.figures(requests, mean_response)
    }

    /// The mean of [`Spread::responses`].
    pub(crate) fn response(&self, requests: usize) -> f64 {
        interval(&self.responses(requests)).0
    }
}

/// In units of [`SERVICE`].
pub(crate) fn mean_response(outcome: &RunOutcome) -> f64 {
    outcome.response_ns.mean().unwrap() / SERVICE.as_nanos() as f64
}

fn cache() -> CacheConfig {
    CacheConfig {
        spec: plimsoll_cache::find("lru").unwrap(),
        capacity_bytes: 500_000,
        object_limit_bytes: None,
    }
}
