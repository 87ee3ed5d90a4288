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
//! What the paper leaves open: with no more back-ends than the pool has room for, its formula bounds no uses, as each back-end is
//! probed again soon; age and removal do. Removal leaves two probes in the pool, or a small cluster would be left to chance. RIF is per
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
            pool: ProbePool::new(params.pool as usize, params.age_s),
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

    /// How often a new probe may be used.
    fn uses(&mut self, view: &ClusterView) -> u32 {
        let p = &self.params;
        let known = f64::from(p.pool) / view.eligible().max(1) as f64;
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
        let uses = self.uses(view);
        self.pool.add(PooledProbe { backend, at: now, load, latency, uses });
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
mod tests {
    mod lies;

    use super::*;
    use crate::cluster::Cluster;
    use crate::request::TargetId;

    const REQUEST: Request = Request::of(0, TargetId(0));

    /// Removes nothing, so that a pool is what the test makes it.
    const STILL: PrequalParams = PrequalParams {
        pool: 16,
        probe_rate: 3.0,
        remove_rate: 0.0,
        age_s: Nanos::from_secs(1),
        delta: 1.0,
        rif_quantile: 0.84,
    };

    fn ms(ms: u64) -> Time {
        Time::ZERO + Nanos::from_millis(ms)
    }

    fn report(p: &mut Prequal, view: &ClusterView, at_ms: u64, (b, load, latency_ms): (u16, u32, u64)) {
        let latency = Some(Nanos::from_millis(latency_ms));
        p.on_report(&LoadReport { latency, ..LoadReport::of(BackendId(b), load) }, view, ms(at_ms));
    }

    fn choose(p: &mut Prequal, view: &ClusterView, at_ms: u64) -> u16 {
        let chosen = match p.choose(&REQUEST, view, ms(at_ms)) {
            Decision::Assign(b) => b,
            other => panic!("{other:?}"),
        };
        p.on_assign(&REQUEST, chosen, view, ms(at_ms));
        chosen.0
    }

    fn counts(p: &Prequal) -> [u64; 3] {
        [p.counts.cold, p.counts.hot, p.counts.random]
    }

    #[test]
    fn the_fastest_of_the_cold_ones_then_the_least_loaded_of_the_hot_ones() {
        let (mut p, view) = (Prequal::new(&STILL, 1), Cluster::new(6));
        // In order of load: 1, 2, 3, 4, 9. Rank 5 of 5 is the 0.84 quantile, so nobody is hot.
        let loads = [(0, 1, 40), (1, 2, 30), (2, 3, 50), (3, 4, 20), (4, 9, 10)];
        loads.iter().for_each(|&probe| report(&mut p, &view, 0, probe));
        assert_eq!(choose(&mut p, &view, 0), 4);
        // It has 10 now and is hot; 20 ms is the least of the others until its load, 4, is above 9.
        let next: Vec<u16> = (0..6).map(|_| choose(&mut p, &view, 0)).collect();
        assert_eq!(next, [3; 6]);
        assert_eq!(choose(&mut p, &view, 0), 1, "30 ms, load 2 and then 3");
        for _ in 0..50 {
            choose(&mut p, &view, 0);
        }
        // All above 9: from then on the least loaded.
        let [cold, hot, random] = counts(&p);
        let loads: Vec<u32> = p.pool.probes().iter().map(|p| p.load).collect();
        assert!(hot > 10 && cold > 25 && random == 0 && cold + hot == 58, "{:?}", counts(&p));
        assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1, "{loads:?}");
    }

    #[test]
    fn fewer_than_two_probes_leave_it_to_chance() {
        let (mut p, view) = (Prequal::new(&STILL, 1), Cluster::new(4));
        report(&mut p, &view, 0, (2, 0, 1));
        let mut got = [0u32; 4];
        (0..4_000).for_each(|_| got[usize::from(choose(&mut p, &view, 500))] += 1);
        assert!(got.iter().all(|n| n.abs_diff(1_000) < 137), "five standard errors: {got:?}");
        report(&mut p, &view, 800, (1, 9, 1));
        report(&mut p, &view, 800, (2, 0, 5));
        assert!([1, 2].contains(&choose(&mut p, &view, 1_800)));
        // Older than 1 s.
        let random = p.counts.random;
        choose(&mut p, &view, 1_801);
        assert_eq!((p.counts.random, p.pool.probes().len()), (random + 1, 0));
    }

    #[test]
    fn a_probe_may_be_used_as_often_as_the_papers_formula_says() {
        let params = PrequalParams { remove_rate: 1.0, ..PrequalParams::default() };
        let mut p = Prequal::new(&params, 1);
        let mean = |p: &mut Prequal, backends| {
            let view = Cluster::new(backends);
            (0..20_000).map(|_| f64::from(p.uses(&view))).sum::<f64>() / 20_000.0
        };
        // 2 / (3 (1 - 16 / 64) - 1) = 1.6 and 2 / (3 (1 - 16 / 32) - 1) = 4; at most 0.5 / sqrt(20,000) from rounding, five times.
        assert!((mean(&mut p, 64) - 1.6).abs() < 0.018);
        assert!((mean(&mut p, 32) - 4.0).abs() < 1e-9);
        assert_eq!(p.uses(&Cluster::new(16)), u32::MAX, "everybody is probed again soon");
        p.params.delta = 0.0;
        p.params.probe_rate = 8.0;
        assert_eq!(p.uses(&Cluster::new(10_000)), 1, "at least once");
    }

    #[test]
    fn the_worst_and_the_oldest_go_in_turn_and_two_stay() {
        let params = PrequalParams { remove_rate: 0.5, ..STILL };
        let (mut p, view) = (Prequal::new(&params, 1), Cluster::new(6));
        for b in 0..6 {
            report(&mut p, &view, 0, (b, 1, 10 + u64::from(b)));
        }
        let mut left = Vec::new();
        for _ in 0..12 {
            // To one that is not in the pool any more, or to the fastest: that changes no latency.
            p.on_assign(&REQUEST, BackendId(2), &view, ms(0));
            left.push(p.pool.probes().iter().map(|p| p.backend.0).collect::<Vec<_>>());
        }
        // Every other request removes one. Back-end 2 becomes hot by its requests, and so the worst.
        assert_eq!(left[0].len(), 6);
        assert_eq!(left[1], [0, 1, 3, 4, 5]);
        assert_eq!(left[3], [1, 3, 4, 5], "the oldest");
        assert_eq!(left[5], [1, 3, 4], "the slowest, as nobody is hot");
        assert_eq!((left[7].as_slice(), left[11].as_slice()), (&[3, 4][..], &[3, 4][..]));
    }

    #[test]
    fn rates_need_not_be_whole_and_probes_are_different_back_ends() {
        let view = Cluster::new(5);
        let mut p = Prequal::new(&PrequalParams { probe_rate: 2.25, ..STILL }, 1);
        let asked: Vec<usize> = (0..8).map(|_| p.probe(&view, ms(0)).as_slice().len()).collect();
        assert_eq!(asked, [2, 2, 2, 3, 2, 2, 2, 3]);
    }

    #[test]
    fn without_a_reported_latency_its_own_stands_in() {
        let (mut p, view) = (Prequal::new(&STILL, 1), Cluster::new(2));
        for (b, rtt_ms, outcome) in
            [(0, 50, Outcome::Completed), (1, 9, Outcome::Completed), (0, 1, Outcome::Failed)]
        {
            let (backend, response_time) = (BackendId(b), Nanos::from_millis(rtt_ms));
            let completion =
                Completion { target: TargetId(0), backend, outcome, size_bytes: None, response_time };
            p.on_complete(&completion, &view, ms(0));
        }
        // Equal loads of 3, which are not hot.
        (0..2).for_each(|b| p.on_report(&LoadReport::of(BackendId(b), 3), &view, ms(1)));
        assert_eq!(choose(&mut p, &view, 1), 1);
        // The other one tells of 2 ms itself.
        report(&mut p, &view, 2, (0, 3, 2));
        report(&mut p, &view, 2, (1, 3, 9));
        assert_eq!(choose(&mut p, &view, 2), 0);
    }

    #[test]
    fn a_back_end_that_takes_no_requests_leaves_the_pool() {
        let (mut p, mut view) = (Prequal::new(&STILL, 1), Cluster::new(3));
        (0..3).for_each(|b| report(&mut p, &view, 0, (b, 1, 1)));
        view.set_health(BackendId(0), Health::Draining);
        p.on_membership(BackendId(0), Change::Health(Health::Draining), &view, ms(0));
        report(&mut p, &view, 0, (0, 0, 0));
        assert_eq!(p.pool.probes().len(), 2);
        (0..20).for_each(|_| assert_ne!(choose(&mut p, &view, 0), 0));
    }
}
