//! The runs of the study.

use plimsoll_cache::caches::lru;
use plimsoll_policy::params::GivenValue;
use plimsoll_sim::Arrivals;

use super::day::PeakWindow;
use crate::scenario::{Admission, Scenario, ScenarioError, Strategy, find_model};

/// The servers of all tables and figures.
pub(super) const NODES: usize = 16;

/// Memory cache of a server.
const CACHE_BYTES: u64 = 64 << 20;

/// How connections are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WebStrategy {
    RoundRobin,
    LeastConnections,
    /// Weighted round robin by all metrics (table 2): every 200 ms for nothing.
    WrrI,
    /// Every 500 ms for 5 ms of CPU time.
    WrrA,
    /// Every second for 5 ms.
    WrrB,
    /// `WRR_a'`: 10 ms.
    WrrDearA,
    /// `WRR_b'`: 10 ms.
    WrrDearB,
    /// `WRR_a'` measured by a daemon that overload delays.
    WrrDearLate,
    /// By polls of servers alone, so often.
    WrrPolls {
        period_ms: u32,
    },
    /// `WRR_a` with half of the threshold `t_diff`.
    WrrAHalf,
    Csld,
    /// Without a new turn of the weighted round robin at each update.
    CsldRunsOn,
    /// With slots of the cost boards that are not cleared.
    CsldUncleared,
    /// With weights in a hundred units to a request of load.
    CsldFine,
    /// With thresholds that adapt.
    CsldAdaptive,
    /// With a cheaper prediction of misses: the bytes read at the last reference.
    CsldStamped,
    /// Without prediction: always a hit.
    CsldHits,
    /// By locality, with replication: not of this paper, but of Pai et al.
    LardR,
}

impl WebStrategy {
    /// `WRR_p` of table 2.
    pub(super) const WRR_P: Self = Self::WrrPolls { period_ms: 500 };

    /// Those of table 4, in the order of its columns.
    pub(super) const TABLE_4: [Self; 9] = [
        Self::RoundRobin,
        Self::LeastConnections,
        Self::WrrI,
        Self::WrrA,
        Self::WrrB,
        Self::WrrDearA,
        Self::WrrDearB,
        Self::WRR_P,
        Self::Csld,
    ];

    /// Those of figures 6 to 11.
    pub(super) const FIGURES: [Self; 4] = [Self::RoundRobin, Self::WrrI, Self::WrrA, Self::Csld];

    /// Its name in the paper, or what sets it apart.
    pub(super) fn title(self) -> String {
        match self {
            Self::RoundRobin => "RR".to_owned(),
            Self::LeastConnections => "LC".to_owned(),
            Self::WrrI => "WRR_i".to_owned(),
            Self::WrrA => "WRR_a".to_owned(),
            Self::WrrB => "WRR_b".to_owned(),
            Self::WrrDearA => "WRR_a'".to_owned(),
            Self::WrrDearB => "WRR_b'".to_owned(),
            Self::WrrDearLate => "WRR_a', measured late".to_owned(),
            Self::WRR_P => "WRR_p".to_owned(),
            Self::WrrPolls { period_ms } => format!("WRR_p every {period_ms} ms"),
            Self::WrrAHalf => "WRR_a, half t_diff".to_owned(),
            Self::Csld => "CSLD".to_owned(),
            Self::CsldRunsOn => "CSLD, no new turn".to_owned(),
            Self::CsldUncleared => "CSLD, slots not cleared".to_owned(),
            Self::CsldFine => "CSLD, weights too fine".to_owned(),
            Self::CsldAdaptive => "CSLD, adaptive".to_owned(),
            Self::CsldStamped => "CSLD, cheap prediction".to_owned(),
            Self::CsldHits => "CSLD, always a hit".to_owned(),
            Self::LardR => "LARD/R".to_owned(),
        }
    }

    fn policy(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::LeastConnections => "least_connections",
            Self::LardR => "lard_r",
            Self::WrrI
            | Self::WrrA
            | Self::WrrB
            | Self::WrrDearA
            | Self::WrrDearB
            | Self::WrrDearLate
            | Self::WrrAHalf
            | Self::WrrPolls { .. } => "weighted_round_robin_host",
            _ => "csld",
        }
    }

    /// CPU time of a measurement at a server, in milliseconds (table 2).
    fn metrics_ms(self) -> u32 {
        match self {
            Self::WrrA | Self::WrrB | Self::WrrAHalf => 5,
            Self::WrrDearA | Self::WrrDearB | Self::WrrDearLate => 10,
            _ => 0,
        }
    }

    fn params(self, dynamic_ms: f64) -> Vec<(&'static str, GivenValue)> {
        let measured = |interval_s: f64| {
            vec![("interval_s", interval_s.into()), ("dynamic_s", (dynamic_ms / 1000.0).into())]
        };
        let number = |value: f64| GivenValue::from(value);
        match self {
            Self::WrrI => measured(0.2),
            Self::WrrA | Self::WrrDearA | Self::WrrDearLate => measured(0.5),
            Self::WrrB | Self::WrrDearB => measured(1.0),
            Self::WrrAHalf => [measured(0.5), vec![("t_diff", number(0.5))]].concat(),
            Self::WrrPolls { period_ms } => vec![
                ("interval_s", number(f64::from(period_ms) / 1000.0)),
                ("f_i", number(0.0)),
                ("f_p", number(1.0)),
                ("f_h", number(0.0)),
            ],
            Self::CsldRunsOn => vec![("restart", 0_u32.into())],
            Self::CsldUncleared => vec![("clear_slots", 0_u32.into())],
            Self::CsldFine => vec![("fineness", number(100.0))],
            Self::CsldAdaptive => vec![("adaptive", 1_u32.into())],
            Self::CsldStamped => vec![("predictor", 1_u32.into())],
            Self::CsldHits => vec![("predictor", 2_u32.into())],
            Self::RoundRobin | Self::LeastConnections | Self::LardR | Self::Csld => Vec::new(),
        }
    }
}

/// When requests arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WebArrivals {
    /// Exponential gaps, so many requests per second.
    Exponential { rate_rps: u32 },
    /// The peak day's, as figures 7 to 11 have them.
    PeakDay,
}

/// The files of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WebSite {
    WorldCup,
    /// Twice as many files, so that the caches hold a smaller part of them.
    LowLocality,
}

impl WebSite {
    pub(super) const ALL: [Self; 2] = [Self::WorldCup, Self::LowLocality];

    /// Parameters of the workload `worldcup66` that make this site.
    pub(super) fn parameters(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::WorldCup => &[],
            // Twice as many files of the same mean size; the mean answer stays as it is. Three times as many overload the disks.
            Self::LowLocality => &[("targets", "34664"), ("total_mib", "389.4")],
        }
    }
}

/// How many requests a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionLife {
    /// One: HTTP/1.0.
    Single,
    /// Many where the log has HTTP/1.1.
    Persistent,
    /// Many for every client.
    AllPersistent,
}

/// What the front-end does with connections: the model's `apache.front_end`, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FrontEndKind {
    /// It chooses at the SYN.
    AtSyn,
    /// It reads the first request of a connection and hands it off.
    OneHandoff,
    /// It hands a connection off for each request.
    MultipleHandoff,
    /// It hands a connection off once; its back-end fetches what is chosen for others from them.
    Forwarding,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WebRun {
    pub(super) strategy: WebStrategy,
    /// Classes of dynamic requests, one digit each, 0 for class 10.
    pub(super) classes: u64,
    /// Dynamic requests among a thousand.
    pub(super) dynamic_permille: u32,
    pub(super) arrivals: WebArrivals,
    pub(super) nodes: usize,
    pub(super) site: WebSite,
    /// Standard deviation of dynamic costs over their mean.
    pub(super) deviation_percent: u32,
    /// Mean round-trip time of clients.
    pub(super) round_trip_ms: u32,
    pub(super) connections: ConnectionLife,
    /// Whether a connection counts as load from its SYN, not only from its establishment.
    pub(super) counted_from_syn: bool,
    pub(super) front_end: FrontEndKind,
}

/// How much of the paper's time is simulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WebExtent {
    /// Before a run with exponential gaps is measured.
    pub(super) warmup_s: f64,
    /// While it is measured.
    pub(super) measured_s: f64,
    /// The peak day's part, warm-up included.
    pub(super) window: PeakWindow,
}

/// Warm-up after which heavily loaded cases are about in their steady state: runs of 5 and of 15 minutes of it agree.
const WARM_S: f64 = 300.0;

impl WebExtent {
    /// Why verdicts of runs of this length over so many seeds say little, if so.
    pub(super) fn caution(&self, seeds: usize) -> Option<String> {
        let cold = (self.warmup_s < WARM_S).then(|| {
            format!("{:.1} minutes of warm-up leave caches cold and queues short", self.warmup_s / 60.0)
        });
        let few = (seeds < 3).then(|| {
            let plural = if seeds == 1 { "" } else { "s" };
            format!("{seeds} seed{plural} give no confidence intervals to speak of")
        });
        let why: Vec<String> = cold.into_iter().chain(few).collect();
        (!why.is_empty()).then(|| {
            format!("Do not rely on these verdicts: {}. Give --minutes 10 or more and --seeds 3, or run the full form.", why.join(", and "))
        })
    }
}

impl WebRun {
    /// A run of tables 4 and 5 with these classes and dynamic requests among a thousand.
    pub(super) const fn table(
        strategy: WebStrategy,
        (classes, dynamic_permille): (u64, u32),
        rate_rps: u32,
    ) -> Self {
        Self {
            strategy,
            classes,
            dynamic_permille,
            arrivals: WebArrivals::Exponential { rate_rps },
            nodes: NODES,
            site: WebSite::WorldCup,
            deviation_percent: 20,
            round_trip_ms: 150,
            connections: ConnectionLife::Single,
            counted_from_syn: false,
            front_end: FrontEndKind::AtSyn,
        }
    }

    /// A run of figures 7 to 11.
    pub(super) const fn figure(strategy: WebStrategy, mix: (u64, u32)) -> Self {
        Self { arrivals: WebArrivals::PeakDay, ..Self::table(strategy, mix, 0) }
    }

    /// Mean CPU time of a dynamic request, in milliseconds.
    fn dynamic_ms(&self) -> f64 {
        let (mut rest, mut sum, mut count) = (self.classes, 0, 0);
        while rest > 0 {
            sum += if rest % 10 == 0 { 10 } else { rest % 10 };
            (rest, count) = (rest / 10, count + 1);
        }
        10.0 * sum as f64 / f64::max(f64::from(count), 1.0)
    }

    /// Requests in all, and those of the warm-up.
    pub(super) fn requests(&self, extent: &WebExtent) -> (u64, u64) {
        match self.arrivals {
            WebArrivals::Exponential { rate_rps } => {
                let rate_rps = f64::from(rate_rps);
                let all = (rate_rps * (extent.warmup_s + extent.measured_s)).round();
                (all as u64, (rate_rps * extent.warmup_s).round() as u64)
            }
            WebArrivals::PeakDay => (extent.window.requests(), extent.window.warmup_requests()),
        }
    }

    /// The scenario.
    pub(super) fn scenario(&self, extent: &WebExtent, seed: u64) -> Result<Scenario, ScenarioError> {
        let arrivals = match self.arrivals {
            WebArrivals::Exponential { rate_rps } => Arrivals::Poisson { rate_rps: rate_rps.into() },
            WebArrivals::PeakDay => Arrivals::Trace { speed: 1.0 },
        };
        let mut scenario = Scenario {
            model: find_model("apache")?,
            arrivals,
            admission: Admission::Unlimited,
            cache: &lru::SPEC,
            cache_bytes: CACHE_BYTES,
            warmup: self.requests(extent).1,
            ..Scenario::lard(Strategy::find(self.strategy.policy())?, self.nodes, seed)
        };
        scenario.set_model(self.model_params())?;
        scenario.set_policy(self.strategy.params(self.dynamic_ms()))?;
        Ok(scenario)
    }

    fn model_params(&self) -> Vec<(&'static str, GivenValue)> {
        let share = |part: u32, of: f64| GivenValue::from(f64::from(part) / of);
        let mut params = vec![
            ("dynamic_share", share(self.dynamic_permille, 1000.0)),
            ("dynamic_classes", self.classes.into()),
            ("dynamic_deviation", share(self.deviation_percent, 100.0)),
            ("round_trip_s", share(self.round_trip_ms, 1000.0)),
            ("counted_from_syn", u32::from(self.counted_from_syn).into()),
            ("metrics_cpu_s", share(self.strategy.metrics_ms(), 1000.0)),
            ("metrics_first", u32::from(self.strategy != WebStrategy::WrrDearLate).into()),
        ];
        match self.connections {
            ConnectionLife::Single => {}
            ConnectionLife::Persistent => params.push(("http11_of_input", 1_u32.into())),
            ConnectionLife::AllPersistent => params.push(("http11_share", 1.0.into())),
        }
        params.push(("front_end", (self.front_end as u32).into()));
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_digits() {
        let ms = |classes| WebRun::table(WebStrategy::Csld, (classes, 50), 4000).dynamic_ms();
        assert_eq!((ms(3), ms(12345), ms(24680)), (30.0, 30.0, 60.0));
    }
}
