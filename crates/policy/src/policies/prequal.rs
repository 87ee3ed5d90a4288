//! Prequal: a pool of probes, from which the fastest back-end is taken among those that do not have unusually much load.
//!
//! Citation: Wydrowski, Kleinberg, Rumble and Archer, "Load is not what you should balance: introducing Prequal", NSDI 2024,
//! section 4.
//!
//! ```text
//! after each request: ask `probe_rate` back-ends drawn at random for their requests in flight (RIF) and latency
//! a report of b:      put it into the pool of at most `pool`, in place of b's earlier one or else of the oldest, for at most
//!                     `age_s` and max(1, (1 + delta) / ((1 - pool / back-ends) * probe_rate - remove_rate)) uses
//! theta <- the `rif_quantile` of the RIFs that were reported lately; hot: RIF above theta; cold: the others
//! if the pool has fewer than 2
//!     n <- back-end drawn with probability weight[n] / sum of weights
//! else if some are cold
//!     n <- the cold one with the least latency
//! else
//!     n <- the one with the least RIF
//! RIF[n] <- RIF[n] + 1
//! remove `remove_rate` from the pool, in turn the worst (of the hot ones the most RIF, else the most latency) and the oldest
//! send r to n
//! ```
//!
//! What the paper leaves open: its pool of 16 is that of a hundred back-ends. Of sixteen it would have a probe of each, as old as it
//! takes to ask all of them, and several front-ends would send their requests to who was idle then; its formula bounds no uses of
//! these probes. So `pool` is at most `pool_share` of the back-ends, and 2 at least. Where the formula still bounds no uses, age and
//! removal do. Removal leaves two probes in the pool, or a small cluster would be left to chance. RIF is per
//! unit of weight and never below the front-end's own count. Equal latencies go to the least RIF, equal ones of both to chance.
//! A reported latency is never below what this front-end itself has seen lately of the back-end at about that RIF.
//! Where reports do not tell a latency, the response times stand in that this front-end saw at about the reported RIF. Any report is
//! taken, asked for or not; without reports every choice is at random.

use crate::capability::{Probes, ShowsState, TakesReports};
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::core::random_candidates;
use crate::decision::{Candidates, Completion, Decision, LoadReport, assign_or_reject};
use crate::latency_by_load::LatencyByLoad;
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policies::random::Random;
use crate::policy::{Capabilities, Policy};
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::probe_pool::{Paced, PooledProbe, ProbePool, RecentLoads};
use crate::request::{Outcome, Request};
use crate::rng::Rng;
use crate::time::{Nanos, Time};
use crate::weight::RelativeLoad;

crate::params! {
    /// Parameters of Prequal.
    pub struct PrequalParams {
        /// m: probes in the pool at most.
        pool: u32 = 16, 2..=256, "probes";
        /// Part of the back-ends of which the pool has a probe at most; it always has room for 2.
        pool_share: f64 = 0.25, 0.0..=1.0, "";
        /// r_probe: probes after each request.
        probe_rate: f64 = 3.0, 0.0..=8.0, "probes/request";
        /// r_remove: probes that are removed from the pool after each request.
        remove_rate: f64 = 1.0, 0.0..=8.0, "probes/request";
        /// The age at which a probe is dropped.
        age_s: Nanos = Nanos::from_secs(1), 0.000001..=1000000.0, "s";
        /// Delta: by how much the pool would grow if every probe were used as often as it may be.
        delta: f64 = 1.0, 0.0..=1000.0, "";
        /// Q_RIF: the quantile of requests in flight above which a back-end is hot; 0 looks at load first, 1 at latency.
        rif_quantile: f64 = 0.84, 0.0..=1.0, "";
    }
}

/// Streams of the run's seed that this policy draws from.
const STREAM: u64 = 0x7072_6571;
const FALLBACK_STREAM: u64 = 0x7072_6572;

/// Choices by how they were made.
#[derive(Debug, Default)]
struct Counts {
    reports: u64,
    cold: u64,
    hot: u64,
    random: u64,
}

/// See the module's documentation.
pub struct Prequal {
    params: PrequalParams,
    rng: Rng,
    fallback: Random,
    pool: ProbePool,
    recent: RecentLoads,
    latencies: LatencyByLoad,
    probing: Paced,
    removing: Paced,
    /// Whether the worst is removed next, and not the oldest.
    worst_next: bool,
    counts: Counts,
}

impl Prequal {
    /// With these parameters; draws random numbers from streams of `seed`.
    #[must_use]
    pub fn new(params: &PrequalParams, seed: u64) -> Self {
        Self {
            params: *params,
            rng: Rng::new(seed, STREAM),
            fallback: Random::with_stream(seed, FALLBACK_STREAM),
            pool: ProbePool::new(params.age_s),
            recent: RecentLoads::new(),
            latencies: LatencyByLoad::default(),
            probing: Paced::new(params.probe_rate),
            removing: Paced::new(params.remove_rate),
            worst_next: true,
            counts: Counts::default(),
        }
    }

    fn theta(&self) -> u32 {
        self.recent.quantile(self.params.rif_quantile)
    }

    /// The hot-cold lexicographic rule; `None` with fewer than two probes.
    fn by_hot_and_cold(&mut self, view: &ClusterView) -> Option<BackendId> {
        let theta = self.theta();
        let (mut least, mut chosen, mut ties, mut usable) = ((true, u64::MAX, u32::MAX), None, 0, 0);
        for probe in self.pool.probes().iter().filter(|p| view.is_eligible(p.backend)) {
            usable += 1;
            let relative = probe.relative(view);
            let hot = relative > theta;
            let rank = (hot, if hot { 0 } else { probe.latency.as_nanos() }, relative);
            ties = if rank < least { 1 } else { ties + u64::from(rank == least) };
            if rank < least || (rank == least && self.rng.below(ties) == 0) {
                (least, chosen) = (rank, Some(probe.backend));
            }
        }
        let chosen = chosen.filter(|_| usable >= 2)?;
        *(if least.0 { &mut self.counts.hot } else { &mut self.counts.cold }) += 1;
        Some(chosen)
    }

    /// Probes in the pool at most.
    fn room(&self, view: &ClusterView) -> usize {
        let share = self.params.pool_share * view.eligible() as f64;
        (share as usize).clamp(2, self.params.pool as usize)
    }

    /// How often a new probe may be used.
    fn uses(&mut self, view: &ClusterView) -> u32 {
        let known = self.room(view) as f64 / view.eligible().max(1) as f64;
        let p = &self.params;
        let surplus = (1.0 - known) * p.probe_rate - p.remove_rate;
        if surplus <= 0.0 {
            return u32::MAX;
        }
        let uses = ((1.0 + p.delta) / surplus).max(1.0);
        // Rounded at random, so that the mean is exact.
        let extra = self.rng.unit() < uses.fract();
        (uses as u32).saturating_add(u32::from(extra))
    }
}

impl Policy for Prequal {
    fn choose(&mut self, _: &Request, view: &ClusterView, now: Time) -> Decision {
        self.pool.age(now);
        if let Some(b) = self.by_hot_and_cold(view) {
            return Decision::Assign(b);
        }
        self.counts.random += 1;
        assign_or_reject(self.fallback.draw(view))
    }

    fn on_assign(&mut self, _: &Request, backend: BackendId, view: &ClusterView, _: Time) {
        self.pool.used(backend);
        let (theta, removed) = (self.theta(), self.removing.next());
        for _ in 0..removed.min(self.pool.probes().len().saturating_sub(2)) {
            if self.worst_next {
                self.pool.remove_worst(theta, view);
            } else {
                self.pool.remove_oldest();
            }
            self.worst_next = !self.worst_next;
        }
    }

    fn on_complete(&mut self, completion: &Completion, view: &ClusterView, now: Time) {
        // One that fails quickly must not seem fast. The load is that of the end, which is about that of the beginning.
        if completion.outcome == Outcome::Completed {
            let load = view.load(completion.backend).saturating_add(1);
            self.latencies.saw(completion.backend, load, completion.response_time, now);
        }
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, view: &ClusterView, _: Time) {
        if !view.is_eligible(backend) || change == Change::Joined {
            self.pool.forget(backend);
        }
        if matches!(change, Change::Joined | Change::Left | Change::Health(Health::Down)) {
            self.latencies.forget(backend);
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl TakesReports for Prequal {
    fn on_report(&mut self, report: &LoadReport, view: &ClusterView, now: Time) {
        let LoadReport { backend, load, latency } = *report;
        if !view.is_eligible(backend) {
            return;
        }
        self.counts.reports += 1;
        self.recent.add(RelativeLoad::of(load, view.weight(backend)));
        let latency = self.latencies.believable(latency, backend, load.saturating_add(1), now);
        let (uses, room) = (self.uses(view), self.room(view));
        self.pool.add(PooledProbe { backend, at: now, load, latency, uses }, room);
    }
}

impl Probes for Prequal {
    fn probe(&mut self, view: &ClusterView, _: Time) -> Candidates {
        match self.probing.next() {
            0 => Candidates::NONE,
            probes => random_candidates(view, probes, &mut self.rng),
        }
    }
}

impl ShowsState for Prequal {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        let Counts { reports, cold, hot, random } = self.counts;
        let counted =
            [("reports", reports), ("cold_choices", cold), ("hot_choices", hot), ("random_choices", random)];
        let pool = ("pool", self.pool.probes().len() as f64);
        counted.into_iter().map(|(name, count)| (name, count as f64)).chain([pool]).collect()
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE.probes::<Prequal>().shows_state::<Prequal>();

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(Prequal::new(&PrequalParams::of(params), context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "prequal",
    aliases: &["hot_cold"],
    summary: "from a pool of probes the fastest back-end without unusually much load",
    source: "Wydrowski, Kleinberg, Rumble, Archer, NSDI 2024",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::Reports,
    weighted: true,
    params: PrequalParams::SPECS,
    build,
};

#[cfg(test)]
mod tests;
