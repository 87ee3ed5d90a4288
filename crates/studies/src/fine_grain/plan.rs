//! The runs of the study.

use plimsoll_policy::params::GivenValue;
use plimsoll_sim::{Arrivals, Dealing};

use crate::scenario::{Admission, Scenario, ScenarioError, Strategy, find_load_information};

/// The figures that are simulated.
pub const FIGURES: [u32; 3] = [2, 3, 4];

/// The figure that is measured: the paper's prototype.
pub const PROTOTYPE_FIGURE: u32 = 6;

/// The servers of figures 3 and 4.
pub(super) const SERVERS: usize = 16;

/// Half of a TCP round trip with setup and teardown (section 2), each way.
const LATENCY_S: f64 = 0.000_258;

/// Half of a UDP round trip between idle machines (section 3.2).
pub(super) const POLL_LATENCY_US: u32 = 145;

/// The workloads of section 1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// The trace of 208.9 ms.
    Medium,
    /// Poisson arrivals and exponential service times of 50 ms.
    PoissonExp,
    /// The trace of 22.2 ms.
    Fine,
    /// The Fine-Grain service with Weibull distributions (section 1.1 names them as an alternative).
    FineWeibull,
}

impl Grain {
    /// Those of the figures, in the paper's order.
    pub const PAPER: [Self; 3] = [Self::Medium, Self::PoissonExp, Self::Fine];
    pub(super) const ALL: [Self; 4] = [Self::Medium, Self::PoissonExp, Self::Fine, Self::FineWeibull];

    /// Name of the workload, and its generator.
    #[must_use]
    pub fn workload(self) -> (&'static str, &'static str) {
        match self {
            Self::Medium => ("medium_grain", "gamma"),
            Self::PoissonExp => ("poisson_exp", "gamma"),
            Self::Fine => ("fine_grain", "gamma"),
            Self::FineWeibull => ("fine_grain", "weibull"),
        }
    }

    /// Its name in the paper.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Medium => "Medium-Grain",
            Self::PoissonExp => "Poisson/Exp",
            Self::Fine => "Fine-Grain",
            Self::FineWeibull => "Fine-Grain, Weibull",
        }
    }

    /// The mean service time in seconds.
    #[must_use]
    pub fn service_s(self) -> f64 {
        self.means_s().1
    }

    /// Mean arrival interval of the workload and mean service time, in seconds.
    fn means_s(self) -> (f64, f64) {
        match self {
            Self::Medium => (0.3415, 0.2089),
            Self::PoissonExp => (0.1, 0.05),
            Self::Fine | Self::FineWeibull => (0.4367, 0.0222),
        }
    }
}

/// Where loads come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoadsFrom {
    Exact,
    Broadcast { interval_us: u32, counts_own: bool, jittered: bool, latency_us: u32, cpu_us: u32 },
    Poll { latency_us: u32, cpu_us: u32, late: bool, discard_ms: u32 },
    Central,
}

/// How a back-end is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Choice {
    Random,
    /// Of so many back-ends that are asked.
    Polled(u32),
    /// The least loaded one that the front-end knows of.
    Least,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FineGrainRun {
    pub(super) grain: Grain,
    pub(super) load_percent: u32,
    pub(super) choice: Choice,
    pub(super) source: LoadsFrom,
    pub(super) clients: u16,
    pub(super) servers: usize,
    /// Without network latencies: for figures that theory gives.
    pub(super) without_delays: bool,
}

/// The client nodes of the paper's cluster.
pub(super) const CLIENTS: u16 = 6;

/// Mean broadcast intervals of figure 3, in microseconds.
pub(super) const INTERVALS_US: [u32; 6] = [31_250, 62_500, 125_000, 250_000, 500_000, 1_000_000];

/// Poll sizes of figure 4.
pub(super) const POLL_SIZES: [u32; 4] = [2, 3, 4, 8];

/// Loads of figure 4, in per cent.
pub(super) const LOADS: [u32; 5] = [50, 60, 70, 80, 90];

/// Latencies of an inquiry in the sweep, in microseconds: from a fast network to half of the paper's TCP round trip.
pub(super) const SWEEP_US: [u32; 4] = [5, 50, 145, 516];

/// CPU times of an inquiry in the sweep, in microseconds.
pub(super) const SWEEP_CPU_US: [u32; 4] = [0, 10, 100, 500];

/// Mean intervals of broadcasts in the sweep, in microseconds: from the least of figure 3 downwards.
pub(super) const SWEEP_INTERVALS_US: [u32; 5] = [2_000, 4_000, 8_000, 16_000, 31_250];

/// What the paper leaves open of broadcast: clients, and whether they count what they send between two announcements.
pub(super) const READINGS: [(u16, bool); 4] = [(CLIENTS, false), (CLIENTS, true), (1, false), (16, true)];

impl FineGrainRun {
    pub(super) const fn ideal(grain: Grain, load_percent: u32) -> Self {
        Self {
            grain,
            load_percent,
            choice: Choice::Least,
            source: LoadsFrom::Exact,
            clients: CLIENTS,
            servers: SERVERS,
            without_delays: false,
        }
    }

    pub(super) const fn random(grain: Grain, load_percent: u32) -> Self {
        Self { choice: Choice::Random, ..Self::ideal(grain, load_percent) }
    }

    pub(super) const fn polled(grain: Grain, load_percent: u32, size: u32) -> Self {
        let source = LoadsFrom::Poll { latency_us: POLL_LATENCY_US, cpu_us: 0, late: false, discard_ms: 0 };
        Self { choice: Choice::Polled(size), source, ..Self::ideal(grain, load_percent) }
    }

    /// With inquiries that busy back-ends read late, as the paper's did.
    pub(super) const fn late(grain: Grain, size: u32, discard_ms: u32) -> Self {
        let source = LoadsFrom::Poll { latency_us: POLL_LATENCY_US, cpu_us: 0, late: true, discard_ms };
        Self { source, ..Self::polled(grain, 90, size) }
    }

    pub(super) const fn broadcast(
        grain: Grain,
        load_percent: u32,
        interval_us: u32,
        (clients, counts_own): (u16, bool),
    ) -> Self {
        let latency_us = POLL_LATENCY_US;
        let source = LoadsFrom::Broadcast { interval_us, counts_own, jittered: true, latency_us, cpu_us: 0 };
        Self { source, clients, ..Self::ideal(grain, load_percent) }
    }

    /// All servers announce at once, at equal intervals, to clients that do not count what they send.
    pub(super) const fn fixed_broadcast(grain: Grain, interval_us: u32) -> Self {
        let latency_us = POLL_LATENCY_US;
        let source =
            LoadsFrom::Broadcast { interval_us, counts_own: false, jittered: false, latency_us, cpu_us: 0 };
        Self { source, ..Self::ideal(grain, 90) }
    }

    pub(super) const fn anchor(choice: Choice, load_percent: u32) -> Self {
        let ideal = Self::ideal(Grain::PoissonExp, load_percent);
        Self { choice, clients: 1, without_delays: true, ..ideal }
    }

    /// The mean service time in seconds.
    pub(super) fn service_s(&self) -> f64 {
        self.grain.service_s()
    }

    /// The scenario for a workload of this grain.
    pub(super) fn scenario(&self, requests: u64, seed: u64) -> Result<Scenario, ScenarioError> {
        let (interval_s, service_s) = self.grain.means_s();
        let rate_rps = f64::from(self.load_percent) / 100.0 * self.servers as f64 / service_s;
        let policy = match (self.choice, self.source) {
            (Choice::Random, _) => "random",
            (Choice::Polled(_), _) => "random_polling",
            (Choice::Least, LoadsFrom::Broadcast { .. }) => "broadcast_least_loaded",
            (Choice::Least, _) => "join_shortest_queue",
        };
        let mut scenario = Scenario {
            model: &plimsoll_sim::models::fifo::SPEC,
            arrivals: Arrivals::Trace { speed: rate_rps * interval_s },
            admission: Admission::Unlimited,
            front_ends: self.clients,
            dealing: Dealing::AtRandom,
            warmup: requests / 10,
            ..Scenario::lard(Strategy::find(policy)?, self.servers, seed)
        };
        let latency_s = if self.without_delays { 0.0 } else { LATENCY_S };
        scenario.set_model([("latency_s", latency_s.into())])?;
        if let Choice::Polled(size) = self.choice {
            scenario.set_policy([("size", size.into())])?;
        }
        let (kind, params) = self.load_information();
        scenario.set_load_information(find_load_information(kind)?, params)?;
        Ok(scenario)
    }

    fn load_information(&self) -> (&'static str, Vec<(&'static str, GivenValue)>) {
        let seconds = |us: u32| GivenValue::from(f64::from(us) / 1e6);
        match self.source {
            LoadsFrom::Exact => ("exact", Vec::new()),
            LoadsFrom::Central => ("central", Vec::new()),
            LoadsFrom::Broadcast { interval_us, counts_own, jittered, latency_us, cpu_us } => (
                "broadcast",
                vec![
                    ("interval_s", seconds(interval_us)),
                    ("latency_s", seconds(latency_us)),
                    ("cpu_s", seconds(cpu_us)),
                    ("counts_own", u32::from(counts_own).into()),
                    ("jittered", u32::from(jittered).into()),
                ],
            ),
            LoadsFrom::Poll { latency_us, cpu_us, late, discard_ms } => (
                "poll",
                vec![
                    ("latency_s", seconds(latency_us)),
                    ("cpu_s", seconds(cpu_us)),
                    ("late_share", if late { LATE_SHARE } else { 0.0 }.into()),
                    ("discard_after_s", (f64::from(discard_ms) / 1e3).into()),
                ],
            ),
        }
    }
}

/// The share of inquiries that a busy back-end reads late; with the default mean of 26.4 ms it gives the paper's profile of polls of
/// three (section 3.2): 8.1 % of them not completed within 10 ms and 5.6 % not within 20 ms. (If the profile were of single
/// inquiries, their mean polling time would be more than three times what table 2 has.)
const LATE_SHARE: f64 = 0.045;

/// Slow answers are discarded after this time (section 3.2).
pub(super) const DISCARD_MS: u32 = 10;

/// The runs for a figure, or all.
pub(super) fn cells(figure: Option<u32>) -> Vec<FineGrainRun> {
    let wanted = |number: u32| figure.is_none_or(|figure| figure == number);
    let mut cells = Vec::new();
    if wanted(3) {
        for grain in Grain::PAPER {
            for load in [50, 90] {
                cells.push(FineGrainRun::ideal(grain, load));
                for condition in READINGS {
                    cells.extend(
                        INTERVALS_US
                            .map(|interval| FineGrainRun::broadcast(grain, load, interval, condition)),
                    );
                }
            }
        }
    }
    if wanted(4) {
        for grain in Grain::PAPER {
            for load in LOADS {
                cells.extend([FineGrainRun::ideal(grain, load), FineGrainRun::random(grain, load)]);
                cells.extend(POLL_SIZES.map(|size| FineGrainRun::polled(grain, load, size)));
            }
        }
    }
    if figure.is_none() {
        cells.extend(beyond());
    }
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// Runs for sections 2.4, 4 and 5: how messages scale, slow answers, faster networks, dearer messages, other distributions.
fn beyond() -> Vec<FineGrainRun> {
    let mut cells = Vec::new();
    for case in SCALING {
        cells.extend([scaled_polls(case), scaled_broadcast(case)]);
    }
    cells.push(scaled_broadcast(SCALED_WITH_LOAD));
    // What they are nearest to: their own ideal.
    cells.push(FineGrainRun::ideal(Grain::Fine, SCALING[0].load_percent));
    for grain in Grain::PAPER {
        for size in [2, 3, 8] {
            cells.extend([0, DISCARD_MS].map(|discard_ms| FineGrainRun::late(grain, size, discard_ms)));
        }
        cells.push(FineGrainRun::late(grain, 3, 2 * DISCARD_MS));
        cells.push(FineGrainRun { source: LoadsFrom::Central, ..FineGrainRun::ideal(grain, 90) });
    }
    for size in [2, 8] {
        for latency_us in SWEEP_US {
            cells.push(swept(size, latency_us, 0));
        }
        for cpu_us in SWEEP_CPU_US {
            cells.push(swept(size, POLL_LATENCY_US, cpu_us));
        }
    }
    for interval_us in SWEEP_INTERVALS_US {
        cells.extend(SWEEP_US.map(|latency_us| swept_broadcast(interval_us, latency_us, 0)));
        cells.extend(SWEEP_CPU_US.map(|cpu_us| swept_broadcast(interval_us, POLL_LATENCY_US, cpu_us)));
    }
    cells.extend(
        INTERVALS_US.map(|interval_us| FineGrainRun::fixed_broadcast(Grain::PoissonExp, interval_us)),
    );
    for grain in [Grain::Fine, Grain::FineWeibull] {
        cells.extend([FineGrainRun::ideal(grain, 90), FineGrainRun::random(grain, 90)]);
        cells.extend([2, 8].map(|size| FineGrainRun::polled(grain, 90, size)));
        cells.push(FineGrainRun::broadcast(grain, 90, INTERVALS_US[5], READINGS[0]));
    }
    cells
}

/// A run that shows how messages scale.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScalingCase {
    pub(super) clients: u16,
    pub(super) servers: usize,
    pub(super) load_percent: u32,
    /// Mean interval of broadcasts.
    pub(super) interval_us: u32,
}

const SCALING_BASE: ScalingCase =
    ScalingCase { clients: CLIENTS, servers: SERVERS, load_percent: 45, interval_us: INTERVALS_US[1] };

/// The first one, and it with one thing doubled: clients, servers, load.
pub(super) const SCALING: [ScalingCase; 4] = [
    SCALING_BASE,
    ScalingCase { clients: 2 * CLIENTS, ..SCALING_BASE },
    ScalingCase { servers: 2 * SERVERS, ..SCALING_BASE },
    ScalingCase { load_percent: 90, ..SCALING_BASE },
];

/// Twice the load, and broadcasts twice as often: so the paper would have their frequency scale with the load.
pub(super) const SCALED_WITH_LOAD: ScalingCase =
    ScalingCase { load_percent: 90, interval_us: SCALING_BASE.interval_us / 2, ..SCALING_BASE };

/// CPU time of an inquiry or an announcement at its server in these runs.
pub(super) const SCALING_CPU_US: u32 = 100;

pub(super) fn scaled_polls(case: ScalingCase) -> FineGrainRun {
    let source =
        LoadsFrom::Poll { latency_us: POLL_LATENCY_US, cpu_us: SCALING_CPU_US, late: false, discard_ms: 0 };
    let base = FineGrainRun::polled(Grain::Fine, case.load_percent, 2);
    FineGrainRun { clients: case.clients, servers: case.servers, source, ..base }
}

pub(super) fn scaled_broadcast(case: ScalingCase) -> FineGrainRun {
    let source = LoadsFrom::Broadcast {
        interval_us: case.interval_us,
        counts_own: false,
        jittered: true,
        latency_us: POLL_LATENCY_US,
        cpu_us: SCALING_CPU_US,
    };
    let base = FineGrainRun::ideal(Grain::Fine, case.load_percent);
    FineGrainRun { clients: case.clients, servers: case.servers, source, ..base }
}

/// A run of the Fine-Grain trace with inquiries that take this long, and this CPU time at their back-end.
pub(super) fn swept(size: u32, latency_us: u32, cpu_us: u32) -> FineGrainRun {
    let source = LoadsFrom::Poll { latency_us, cpu_us, late: false, discard_ms: 0 };
    FineGrainRun { source, ..FineGrainRun::polled(Grain::Fine, 90, size) }
}

/// The same with announcements, to clients that count what they send between two of them: the reading that meets figure 3.
pub(super) fn swept_broadcast(interval_us: u32, latency_us: u32, cpu_us: u32) -> FineGrainRun {
    let source = LoadsFrom::Broadcast { interval_us, counts_own: true, jittered: true, latency_us, cpu_us };
    FineGrainRun { source, ..FineGrainRun::ideal(Grain::Fine, 90) }
}
