//! Measurements of a real cluster, for figure 6 and table 2. They are not made here: the caller measures and passes them in.

use super::plan::Grain;

/// What a cluster of the paper's kind did in real time.
#[derive(Debug, Clone, Default)]
pub struct ServicePrototype {
    /// The setting, in words.
    pub setting: String,
    /// Median round trip of an inquiry between idle nodes.
    pub round_trip_us: f64,
    /// What was measured with each seed.
    pub seeds: Vec<ServiceRuns>,
    /// Why there are no measurements, on one line.
    pub left_out: Option<String>,
}

/// What was measured with the workloads and policies of one seed.
#[derive(Debug, Clone, Default)]
pub struct ServiceRuns {
    /// The seed.
    pub seed: u64,
    /// What counts as 100 % load, for each workload.
    pub full_loads: Vec<FullLoad>,
    /// Every run.
    pub points: Vec<ServicePoint>,
}

/// The load at which one server completes 98 % of its accesses within 2 s.
#[derive(Debug, Clone, Copy)]
pub struct FullLoad {
    /// The workload.
    pub grain: Grain,
    /// Share of the time that a server's worker is busy.
    pub utilization: f64,
    /// Share of the accesses that were completed within 2 s at this load, by servers of which each was alone.
    pub completed: f64,
    /// The same for the same arrivals by Lindley's recursion.
    pub completed_by_theory: f64,
}

/// How servers were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceChoice {
    /// At random.
    Random,
    /// The least loaded of so many that are asked.
    Polled {
        /// How many.
        size: u32,
        /// Whether slow answers are discarded.
        discards: bool,
    },
    /// By the load index manager.
    Manager,
}

impl ServiceChoice {
    /// The name in figures and tables.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Random => "random".to_owned(),
            Self::Manager => "ideal (manager)".to_owned(),
            Self::Polled { size, discards: false } => format!("poll of {size}"),
            Self::Polled { size, discards: true } => format!("poll of {size}, slow discarded"),
        }
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct ServicePoint {
    /// The workload.
    pub grain: Grain,
    /// Of full load.
    pub load_percent: u32,
    /// How servers were chosen.
    pub choice: ServiceChoice,
    /// Accesses that arrived in the time of measurement and were answered.
    pub accesses: u64,
    /// Accesses of the whole run that were not answered.
    pub unanswered: u64,
    /// Mean time from arrival to answer.
    pub response_s: f64,
    /// Standard error of it, from ten batches in order of time.
    pub response_error_s: f64,
    /// Mean time from arrival until a server was chosen.
    pub asking_s: f64,
    /// Share of the polls that were not complete within 10 ms.
    pub over_10_ms: f64,
    /// Share of the polls that were not complete within 20 ms.
    pub over_20_ms: f64,
    /// Share of the inquiries of the whole run whose answer was discarded.
    pub discarded: f64,
    /// Share of the time that the CPUs of the machine were busy; `None` if unknown.
    pub machine_busy: Option<f64>,
}

impl ServicePrototype {
    /// The means over the seeds. Counts are sums.
    pub(super) fn means(&self) -> ServiceRuns {
        let mut means = ServiceRuns::default();
        for point in self.seeds.first().map_or(&[][..], |runs| &runs.points) {
            let same =
                |runs: &ServiceRuns| runs.point(point.grain, point.load_percent, point.choice).cloned();
            means.points.extend(mean_point(&self.seeds.iter().filter_map(same).collect::<Vec<_>>()));
        }
        for full in self.seeds.first().map_or(&[][..], |runs| &runs.full_loads) {
            let all: Vec<FullLoad> =
                self.seeds.iter().filter_map(|runs| runs.full_load(full.grain)).copied().collect();
            let mean = |of: fn(&FullLoad) -> f64| mean(&all.iter().map(of).collect::<Vec<_>>());
            means.full_loads.push(FullLoad {
                grain: full.grain,
                utilization: mean(|full| full.utilization),
                completed: mean(|full| full.completed),
                completed_by_theory: mean(|full| full.completed_by_theory),
            });
        }
        means
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and standard error of what the seeds have shown; the error of one is NaN.
pub(super) fn mean_with_error(values: &[f64]) -> (f64, f64) {
    let (mean, count) = (mean(values), values.len() as f64);
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (square / (count - 1.0) / count).sqrt())
}

/// The mean of one run with several seeds.
fn mean_point(points: &[ServicePoint]) -> Option<ServicePoint> {
    let first = points.first()?;
    let mean_of = |of: fn(&ServicePoint) -> f64| mean(&points.iter().map(of).collect::<Vec<_>>());
    let (response_s, over_seeds_s) =
        mean_with_error(&points.iter().map(|point| point.response_s).collect::<Vec<_>>());
    Some(ServicePoint {
        accesses: points.iter().map(|point| point.accesses).sum(),
        unanswered: points.iter().map(|point| point.unanswered).sum(),
        response_s,
        response_error_s: if points.len() > 1 { over_seeds_s } else { first.response_error_s },
        asking_s: mean_of(|point| point.asking_s),
        over_10_ms: mean_of(|point| point.over_10_ms),
        over_20_ms: mean_of(|point| point.over_20_ms),
        discarded: mean_of(|point| point.discarded),
        machine_busy: points
            .iter()
            .map(|point| point.machine_busy)
            .sum::<Option<f64>>()
            .map(|sum| sum / points.len() as f64),
        ..first.clone()
    })
}

impl ServiceRuns {
    /// Where a run is.
    pub(super) fn point(
        &self,
        grain: Grain,
        load_percent: u32,
        choice: ServiceChoice,
    ) -> Option<&ServicePoint> {
        let is_it =
            |p: &&ServicePoint| p.grain == grain && p.load_percent == load_percent && p.choice == choice;
        self.points.iter().find(is_it)
    }

    fn full_load(&self, grain: Grain) -> Option<&FullLoad> {
        self.full_loads.iter().find(|full| full.grain == grain)
    }

    /// Mean response time in seconds.
    pub(super) fn response_s(&self, grain: Grain, load_percent: u32, choice: ServiceChoice) -> Option<f64> {
        self.point(grain, load_percent, choice).map(|point| point.response_s)
    }

    /// The loads that were measured, in per cent.
    pub(super) fn loads(&self) -> Vec<u32> {
        let mut loads: Vec<u32> = self.points.iter().map(|point| point.load_percent).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    }
}
