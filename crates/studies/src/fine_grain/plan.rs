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
const POLL_LATENCY_US: u32 = 145;

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
    Broadcast { interval_us: u32, counts_own: bool, jittered: bool },
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
    /// Without network latencies, and with more requests: for figures that theory gives.
    pub(super) exact_theory: bool,
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
            exact_theory: false,
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
        let source = LoadsFrom::Broadcast { interval_us, counts_own, jittered: true };
        Self { source, clients, ..Self::ideal(grain, load_percent) }
    }

    pub(super) const fn anchor(choice: Choice, load_percent: u32) -> Self {
        let ideal = Self::ideal(Grain::PoissonExp, load_percent);
        Self { choice, clients: 1, exact_theory: true, ..ideal }
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
        let latency_s = if self.exact_theory { 0.0 } else { LATENCY_S };
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
            LoadsFrom::Broadcast { interval_us, counts_own, jittered } => (
                "broadcast",
                vec![
                    ("interval_s", seconds(interval_us)),
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
        cells.extend(anchors().map(|(choice, load, _)| FineGrainRun::anchor(choice, load)));
    }
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// The figures that theory or exact computation gives: choice, load in per cent, mean response in service times on 16 servers.
pub(super) fn anchors() -> [(Choice, u32, f64); 6] {
    [
        (Choice::Random, 90, 10.0),
        (Choice::Polled(2), 90, 2.83),
        (Choice::Least, 90, 1.575),
        (Choice::Random, 50, 2.0),
        (Choice::Polled(2), 50, 1.277),
        (Choice::Least, 50, 1.005),
    ]
}

/// Runs for sections 2.4, 4 and 5: how messages scale, slow answers, faster networks, dearer messages, other distributions.
fn beyond() -> Vec<FineGrainRun> {
    let mut cells = Vec::new();
    let interval = INTERVALS_US[2];
    for (clients, servers, load) in SCALING {
        for base in [
            FineGrainRun::broadcast(Grain::Fine, load, interval, (clients, false)),
            FineGrainRun::polled(Grain::Fine, load, 2),
        ] {
            cells.push(FineGrainRun { clients, servers, ..base });
        }
    }
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
    for interval_us in INTERVALS_US {
        let source = LoadsFrom::Broadcast { interval_us, counts_own: false, jittered: false };
        cells.push(FineGrainRun { source, ..FineGrainRun::ideal(Grain::PoissonExp, 90) });
    }
    for grain in [Grain::Fine, Grain::FineWeibull] {
        cells.extend([FineGrainRun::ideal(grain, 90), FineGrainRun::random(grain, 90)]);
        cells.extend([2, 8].map(|size| FineGrainRun::polled(grain, 90, size)));
        cells.push(FineGrainRun::broadcast(grain, 90, INTERVALS_US[5], READINGS[0]));
    }
    cells
}

/// Clients, servers and load in per cent of the runs that show how messages scale: the first is changed in one thing at a time.
pub(super) const SCALING: [(u16, usize, u32); 4] =
    [(CLIENTS, SERVERS, 45), (2 * CLIENTS, SERVERS, 45), (CLIENTS, 2 * SERVERS, 45), (CLIENTS, SERVERS, 90)];

/// A run of the Fine-Grain trace with inquiries that take this long, and this CPU time at their back-end.
pub(super) fn swept(size: u32, latency_us: u32, cpu_us: u32) -> FineGrainRun {
    let source = LoadsFrom::Poll { latency_us, cpu_us, late: false, discard_ms: 0 };
    FineGrainRun { source, ..FineGrainRun::polled(Grain::Fine, 90, size) }
}
