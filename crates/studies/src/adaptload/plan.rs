//! The runs of the study.

use plimsoll_cache::caches;
use plimsoll_policy::params::GivenValue;
use plimsoll_policy::{BackendId, Time, Weight};
use plimsoll_report::SeriesLook;
use plimsoll_sim::{Arrivals, Fault, FaultAction};

use super::cluster::{BACKENDS, BackendKind, DayLoad, FAST_BACKENDS, FAST_SPEED};
use super::day::Day;
use crate::lard::Effort;
use crate::scenario::{Admission, Scenario, ScenarioError, Strategy};
use crate::strategy::strategy_look;

/// The figures of the paper that are reproduced.
pub const FIGURES: [u32; 11] = [1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 14];

/// A policy with parameters, as the study compares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contender {
    AdaptLoad,
    /// AdaptLoad of section 8, which considers queue lengths and loads idle back-ends.
    Improved,
    /// Its second scan alone, which evens out queues.
    SecondScan,
    /// Its off-loading alone, which puts idle back-ends to use.
    OffLoading,
    /// AdaptLoad with this K, and this α in per cent.
    Sampling(u32, u32),
    Jsq,
    /// LARD with these thresholds.
    Lard(u32, u32),
    /// LARD with replication, with these thresholds.
    LardR(u32, u32),
    Jswq,
    SitaE,
}

/// LARD with its own paper's thresholds.
pub(super) const LARD_PAPER: Contender = Contender::Lard(25, 65);
/// LARD with the thresholds, of all tried, that gave the least geometric mean of the whole day's mean
/// slowdowns at caches of 5, 15 and 25 %. Higher ones give the same; 100/300 has 3 % more. The paper, too,
/// used one pair for all experiments.
pub(super) const LARD_BEST: Contender = Contender::Lard(200, 600);
/// Further thresholds tried.
const LARD_SCAN: [(u32, u32); 6] = [(2, 5), (6, 16), (50, 130), (100, 300), (300, 900), (1000, 3000)];
pub(super) const SCAN_CACHES: [u32; 3] = [5, 15, 25];

/// LARD/R, which the paper does not mention, with LARD's own thresholds and higher ones.
pub(super) const LARD_R: [Contender; 2] = [Contender::LardR(25, 65), Contender::LardR(100, 300)];

/// The improved policy, and each of its two parts alone.
pub(super) const IMPROVED: [Contender; 3] =
    [Contender::Improved, Contender::SecondScan, Contender::OffLoading];

/// K and α in per cent that are tried at caches of 15 %.
pub(super) const BATCHES: [u32; 2] = [512, 32_768];
pub(super) const ALPHAS: [u32; 3] = [0, 50, 90];

pub(super) const ADAPTLOAD: Contender = Contender::AdaptLoad;
pub(super) const JSQ: Contender = Contender::Jsq;
/// In the order of the figures.
pub(super) const MAIN: [Contender; 4] = [ADAPTLOAD, JSQ, LARD_BEST, LARD_PAPER];

impl Contender {
    /// The policy's name, with what sets it apart from others of the same policy.
    pub(super) fn name(self) -> String {
        let policy = self.policy();
        match self {
            Self::AdaptLoad | Self::Improved | Self::Jsq | Self::Jswq | Self::SitaE => policy.to_owned(),
            Self::SecondScan => format!("{policy}, second scan"),
            Self::OffLoading => format!("{policy}, off-loading"),
            Self::Sampling(batch, alpha) => format!("{policy} K={batch} α=0.{alpha:02}"),
            Self::Lard(low, high) | Self::LardR(low, high) => format!("{policy} {low}/{high}"),
        }
    }

    /// The policy's look in plots; with other parameters than usual its dashes and marker differ.
    pub(super) fn look(self) -> SeriesLook {
        let variant = usize::from([LARD_PAPER, LARD_R[1]].contains(&self));
        strategy_look(self.policy()).variant(variant)
    }

    fn policy(self) -> &'static str {
        match self {
            Self::AdaptLoad | Self::Sampling(..) => "adaptload",
            Self::Improved | Self::SecondScan | Self::OffLoading => "adaptload_queue",
            Self::Jsq => "join_shortest_queue",
            Self::Lard(..) => "lard",
            Self::LardR(..) => "lard_r",
            Self::Jswq => "join_shortest_weighted_queue",
            Self::SitaE => "sita_e",
        }
    }
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DayRun {
    pub(super) load: DayLoad,
    pub(super) dynamic_percent: u32,
    pub(super) backends: usize,
    /// Cache of a back-end in per cent of the working set.
    pub(super) cache_percent: u32,
    pub(super) contender: Contender,
    pub(super) backend_kind: BackendKind,
}

/// Network time to establish a connection and to tear it down, in microseconds at the paper's speed: 145 each, as on the
/// machine of the LARD paper, whose other costs this paper took.
const CONNECTION_US: f64 = 290.0;
/// The same as bytes: 40 µs send 512.
const CONNECTION_BYTES: u32 = 3_712;
/// What a back-end sends in a second at the paper's speed.
const SERVICE_RATE: f64 = 12_800_000.0;
/// A queue that none has.
const NEVER: u32 = 1_000_000_000;

impl DayRun {
    /// The paper's standard setting: the whole day, static, four back-ends.
    pub(super) fn day(contender: Contender, cache_percent: u32) -> Self {
        Self {
            load: DayLoad::Day,
            dynamic_percent: 0,
            backends: BACKENDS,
            cache_percent,
            contender,
            backend_kind: BackendKind::Usual,
        }
    }

    /// 35,000 to 45,000 s of figure 11.
    pub(super) fn quiet(contender: Contender, heavy: bool) -> Self {
        Self { load: DayLoad::Quiet { heavy }, ..Self::day(contender, 15) }
    }

    /// 58,000 to 68,000 s of figure 11.
    pub(super) fn peak(contender: Contender, heavy: bool) -> Self {
        Self { load: DayLoad::Peak { heavy }, ..Self::day(contender, 15) }
    }

    /// Figure 12.
    pub(super) fn dynamic(contender: Contender, dynamic_percent: u32) -> Self {
        Self { dynamic_percent, ..Self::day(contender, DYNAMIC_CACHE) }
    }

    /// Figure 10.
    pub(super) fn cluster(contender: Contender, backends: usize) -> Self {
        Self { backends, ..Self::day(contender, CLUSTER_CACHE) }
    }

    /// The standard setting with connections that cost network time.
    pub(super) fn connections(contender: Contender) -> Self {
        Self { backend_kind: BackendKind::Connections, ..Self::day(contender, 15) }
    }

    /// The standard setting on back-ends of unequal speed.
    pub(super) fn unequal(contender: Contender, weighted: bool) -> Self {
        Self { backend_kind: BackendKind::Unequal { weighted }, ..Self::day(contender, 15) }
    }

    pub(super) fn scenario(&self, day: &Day) -> Result<Scenario, ScenarioError> {
        let strategy = Strategy::find(self.contender.policy())?;
        let mut scenario = Scenario {
            model: &plimsoll_sim::models::adaptload::SPEC,
            arrivals: Arrivals::Trace { speed: 1.0 },
            admission: Admission::Unlimited,
            cache: &caches::lru::SPEC,
            cache_bytes: day.workload.working_set_bytes() * u64::from(self.cache_percent) / 100,
            dynamic_share: f64::from(self.dynamic_percent) / 100.0,
            ..Scenario::lard(strategy, self.backends, day.seed)
        };
        let mut speed = day.speed(self.load);
        let mut model = Vec::new();
        match self.backend_kind {
            BackendKind::Usual => {}
            BackendKind::Connections => {
                // So much faster that the network is used as much as without them.
                speed *= 1.0 + f64::from(CONNECTION_BYTES) / day.mean_bytes();
                model.push(("connection_us", CONNECTION_US.into()));
            }
            BackendKind::Unequal { weighted } => {
                let fast = f64::from(FAST_BACKENDS);
                speed *= self.backends as f64 / (self.backends as f64 + fast * (FAST_SPEED - 1.0));
                model.push(("fast_backends", u32::from(FAST_BACKENDS).into()));
                model.push(("fast_speed", FAST_SPEED.into()));
                scenario.faults = if weighted { weights() } else { Vec::new() };
            }
        }
        model.push(("speed", speed.into()));
        scenario.set_model(model)?;
        scenario.set_policy(self.policy_params(speed))?;
        Ok(scenario)
    }

    fn policy_params(&self, speed: f64) -> Vec<(&'static str, GivenValue)> {
        let service_rate = ("service_rate", (SERVICE_RATE * speed).into());
        match self.contender {
            Contender::Lard(low, high) | Contender::LardR(low, high) => {
                vec![("t_low", low.into()), ("t_high", high.into())]
            }
            Contender::Sampling(batch, alpha) => {
                vec![("batch", batch.into()), ("alpha", (f64::from(alpha) / 100.0).into())]
            }
            Contender::Improved => vec![service_rate],
            Contender::SecondScan => vec![service_rate, ("off_load_from", NEVER.into())],
            Contender::OffLoading => vec![service_rate, ("th_1", NEVER.into())],
            Contender::AdaptLoad if self.backend_kind == BackendKind::Connections => {
                vec![("connection_bytes", CONNECTION_BYTES.into())]
            }
            _ => Vec::new(),
        }
    }
}

/// Speeds as weights, from the start.
fn weights() -> Vec<Fault> {
    let fast = |b| {
        let action = FaultAction::Weight(Weight::new(FAST_SPEED)?);
        Some(Fault { at: Time::ZERO, backend: BackendId(b), action })
    };
    (0..FAST_BACKENDS).filter_map(fast).collect()
}

/// Caches of figure 8, in per cent.
const CACHES: [u32; 11] = [2, 5, 10, 15, 20, 25, 30, 40, 60, 80, 100];
const QUICK_CACHES: [u32; 5] = [5, 10, 15, 25, 60];
/// Back-ends of figure 10 beside four.
const CLUSTERS: [usize; 4] = [8, 12, 16, 20];
const QUICK_CLUSTERS: [usize; 2] = [8, 12];
/// The cache at which figure 10 is run.
const CLUSTER_CACHE: u32 = 15;
const DYNAMIC_CACHE: u32 = 30;
pub(super) const IMPROVED_CACHE: u32 = 60;

/// The runs on one day, for the whole study or for one figure; each once. Only the first day has those that no
/// claim needs.
pub(super) fn cells(effort: Effort, figure: Option<u32>, first: bool) -> Vec<DayRun> {
    let wants = |figures: &[u32]| figure.is_none_or(|f| figures.contains(&f));
    let full = effort == Effort::Full;
    let main: &[Contender] = if full && first { &MAIN } else { &MAIN[..3] };
    let mut cells = Vec::new();
    let mut add = |contenders: &[Contender], of: &dyn Fn(Contender) -> DayRun| {
        cells.extend(contenders.iter().map(|&contender| of(contender)));
    };
    let caches: &[u32] = match figure {
        Some(5 | 7) => &[5, 15, 25],
        Some(6 | 9 | 10) => &[15],
        Some(14) => &[IMPROVED_CACHE],
        None | Some(8) if full => &CACHES,
        None | Some(8) => &QUICK_CACHES,
        Some(_) => &[],
    };
    for &cache in caches {
        add(main, &|c| DayRun::day(c, cache));
    }
    if wants(&[6]) {
        add(&[ADAPTLOAD, JSQ], &|c| DayRun::unequal(c, true));
        add(&[ADAPTLOAD], &|c| DayRun::unequal(c, false));
    }
    if wants(&[10]) {
        for &backends in if full { &CLUSTERS[..] } else { &QUICK_CLUSTERS } {
            add(main, &|c| DayRun::cluster(c, backends));
        }
    }
    if wants(&[11]) {
        for heavy in [false, true] {
            add(&MAIN[..3], &|c| DayRun::quiet(c, heavy));
            add(&MAIN[..3], &|c| DayRun::peak(c, heavy));
            if full && first {
                add(&LARD_R, &|c| DayRun::peak(c, heavy));
            }
        }
    }
    if wants(&[12]) {
        for dynamic_percent in [30, 70] {
            add(&[ADAPTLOAD, JSQ], &|c| DayRun::dynamic(c, dynamic_percent));
        }
    }
    if wants(&[14]) {
        add(&IMPROVED, &|c| DayRun::day(c, IMPROVED_CACHE));
    }
    if figure.is_none() {
        add(&[Contender::Jswq], &|c| DayRun::day(c, 15));
        add(&MAIN[..3], &DayRun::connections);
        for batch in BATCHES {
            add(&ALPHAS.map(|alpha| Contender::Sampling(batch, alpha)), &|c| DayRun::day(c, 15));
        }
    }
    if figure.is_none() && full && first {
        for cache in SCAN_CACHES {
            add(&LARD_SCAN.map(|(low, high)| Contender::Lard(low, high)), &|c| DayRun::day(c, cache));
            add(&LARD_R, &|c| DayRun::day(c, cache));
        }
        add(&[Contender::SitaE, Contender::Improved], &|c| DayRun::day(c, 15));
    }
    cells
}

/// Caches at which another day of the World Cup is run, in per cent.
const OTHER_CACHES: [u32; 2] = [5, 15];

/// The runs on another day, for the whole study or for the figure with whose discussion the paper calls its own day
/// representative.
pub(super) fn other_cells(figure: Option<u32>) -> Vec<DayRun> {
    if figure.is_some_and(|figure| figure != 2) {
        return Vec::new();
    }
    let at = |cache| MAIN[..3].iter().map(move |&contender| DayRun::day(contender, cache));
    OTHER_CACHES.into_iter().flat_map(at).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn fast_back_ends_have_their_speed_as_weight_and_the_cluster_no_more_speed() {
        let day = super::super::testing::day("60000");
        let scenario = |cell: DayRun| cell.scenario(&day).unwrap();
        let model = |s: &Scenario, key| s.model_params.get::<f64>(key).unwrap();
        let (usual, unequal) = (scenario(DayRun::day(JSQ, 15)), scenario(DayRun::unequal(JSQ, true)));
        let weights: Vec<(u16, FaultAction)> =
            unequal.faults.iter().map(|f| (f.backend.0, f.action)).collect();
        let two = FaultAction::Weight(Weight::new(2.0).unwrap());
        assert_eq!(weights, [(0, two), (1, two)]);
        assert!(unequal.faults.iter().all(|fault| fault.at == Time::ZERO));
        let in_all = model(&unequal, "speed") * (2.0 * model(&unequal, "fast_speed") + 2.0);
        assert!((in_all / (4.0 * model(&usual, "speed")) - 1.0).abs() < 1e-9);
        assert_eq!(unequal.model_params.get::<u32>("fast_backends"), Some(2));
        assert!(scenario(DayRun::unequal(JSQ, false)).faults.is_empty());
    }

    #[test]
    fn what_connections_cost_leaves_the_network_as_busy() {
        let day = super::super::testing::day("60000");
        let of = |cell: DayRun| cell.scenario(&day).unwrap();
        let (usual, with) = (of(DayRun::day(ADAPTLOAD, 15)), of(DayRun::connections(ADAPTLOAD)));
        let speed = |s: &Scenario| s.model_params.get::<f64>("speed").unwrap();
        let connection_us = with.model_params.get::<f64>("connection_us").unwrap();
        // Network time of a mean request, in µs.
        let sent_us = day.mean_bytes() * 40.0 / 512.0;
        assert!(((sent_us + connection_us) / speed(&with) / (sent_us / speed(&usual)) - 1.0).abs() < 1e-9);
        assert_eq!(usual.model_params.get::<f64>("connection_us"), Some(0.0));
        assert_eq!(with.policy_params.get::<u64>("connection_bytes"), Some(3_712));
    }

    #[test]
    fn every_run_is_made_once() {
        for effort in [Effort::Quick, Effort::Full] {
            for figure in FIGURES.map(Some).into_iter().chain([None]) {
                let cells = cells(effort, figure, true);
                assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), cells.len(), "{figure:?}");
                assert_eq!(cells.is_empty(), matches!(figure, Some(1 | 2)), "{figure:?}");
            }
        }
    }

    #[test]
    fn a_figure_needs_no_run_that_the_whole_study_lacks() {
        for figure in FIGURES {
            let all = cells(Effort::Full, None, true);
            assert!(
                cells(Effort::Full, Some(figure), true).iter().all(|cell| all.contains(cell)),
                "{figure}"
            );
        }
    }
}
