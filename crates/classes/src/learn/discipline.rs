//! Infers from a log how back-ends share their capacity among requests.

use std::fmt;

use crate::learn::log_traits::LogTraits;
use crate::learn::queueing::{Reconstruction, Timeline};
use crate::learn::samples::Sample;
use crate::learn::slowness;

/// How a back-end shares its capacity among its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// Requests do not wait for one another: the duration is the demand.
    Independent,
    /// So many workers take requests in the order of their arrival.
    InTurn {
        /// Workers of each back-end.
        workers: u32,
    },
    /// All requests share so many cores equally.
    Shared {
        /// Cores of each back-end.
        cores: u32,
    },
}

impl fmt::Display for QueueDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: &u32| if *count == 1 { "" } else { "s" };
        match self {
            Self::Independent => f.write_str("requests that do not wait for one another"),
            Self::InTurn { workers } => {
                write!(f, "{workers} worker{} per back-end, first come first served", plural(workers))
            }
            Self::Shared { cores } => {
                write!(f, "{cores} core{} per back-end, shared equally by all its requests", plural(cores))
            }
        }
    }
}

/// The numbers of workers or cores that are tried.
const COUNTS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Share of requests that may contradict an order, because times are rounded or logged late.
const IMPOSSIBLE_MOST: f64 = 0.005;

/// By so much requests and their ends may be seen in another order than that in which they came and ended, in nanoseconds.
const UNSURE_NS: u64 = 500_000;

/// Share of requests that must have found all workers busy, for the order to say anything.
const WAITING_LEAST: f64 = 0.03;

/// A dependence on load below this needs no correction: 3 % on average.
const NO_DEPENDENCE: f64 = 0.001;

/// A discipline with the demands under it.
pub(crate) struct InferredDiscipline {
    pub(crate) discipline: QueueDiscipline,
    pub(crate) demands_s: Vec<f32>,
    /// By how much demands of one URI depend on the number of requests at arrival: root mean square, as a share of the mean.
    pub(crate) dependence: f64,
    /// The same of the durations.
    pub(crate) dependence_before: f64,
    /// By back-end, what [`slowness::take_out`] has taken out.
    pub(crate) slowness: Vec<f64>,
}

/// A discipline that may be.
struct Candidate {
    discipline: QueueDiscipline,
    demands_s: Vec<f32>,
    dependence: f64,
    slowness: Vec<f64>,
}

/// The discipline under which demands depend least on load.
pub(crate) fn infer(samples: &[Sample], log: &LogTraits, tolerance_ns: u64) -> InferredDiscipline {
    let workers = log.workers;
    let timeline = Timeline::new(samples, log.backends);
    let mean_ns = samples.iter().map(|sample| sample.takes_ns).sum::<u64>() / samples.len().max(1) as u64;
    let tolerance_ns = tolerance_ns.max(UNSURE_NS.min(mean_ns / 4));
    let groups = RoughGroups { of: samples.iter().map(|sample| sample.group).collect(), count: log.groups };
    let durations: Vec<f32> = samples.iter().map(|s| (s.takes_ns as f64 / 1e9) as f32).collect();
    let before = groups.dependence(&durations, &timeline.others_at_arrival);
    let candidate = |discipline, mut demands_s: Vec<f32>| {
        let slowness = slowness::take_out(&mut demands_s, samples, log);
        let dependence = groups.dependence(&demands_s, &timeline.others_at_arrival);
        Candidate { discipline, demands_s, dependence, slowness }
    };
    let mut best = candidate(QueueDiscipline::Independent, durations);
    if before >= NO_DEPENDENCE {
        let given = workers.map(|count| [count]);
        let counts = given.as_ref().map_or(&COUNTS[..], |count| &count[..]);
        for &cores in counts {
            let found = timeline.shared(samples, cores).demands_s;
            let found = candidate(QueueDiscipline::Shared { cores }, found);
            if found.dependence < best.dependence {
                best = found;
            }
        }
        if let Some((workers, found)) = in_turn(&timeline, samples, tolerance_ns, counts) {
            let found = candidate(QueueDiscipline::InTurn { workers }, found.demands_s);
            // That nobody overtakes is stronger evidence than a dependence near to none.
            if found.dependence < before / 2.0 {
                best = found;
            }
        }
    }
    InferredDiscipline {
        discipline: best.discipline,
        demands_s: best.demands_s,
        dependence: best.dependence.max(0.0).sqrt(),
        dependence_before: before.max(0.0).sqrt(),
        slowness: best.slowness,
    }
}

/// The least number of workers under which no request ends too early, if many requests had to wait for them.
fn in_turn(
    timeline: &Timeline,
    samples: &[Sample],
    tolerance_ns: u64,
    counts: &[u32],
) -> Option<(u32, Reconstruction)> {
    // Every number up to 16, because the least one that is possible is the true one.
    let few = if counts.len() == 1 { 0..0 } else { 1..17 };
    for workers in few.chain(counts.iter().copied().filter(|count| counts.len() == 1 || *count > 16)) {
        let waiting = timeline.others_at_arrival.iter().filter(|others| **others >= workers).count();
        if (waiting as f64) < WAITING_LEAST * samples.len() as f64 {
            return None;
        }
        let found = timeline.in_turn(samples, workers, tolerance_ns);
        // Only those that found all workers busy can contradict.
        if found.impossible * samples.len() as f64 <= IMPOSSIBLE_MOST * waiting as f64 {
            return Some((workers, found));
        }
    }
    None
}

/// The group of each request.
struct RoughGroups {
    of: Vec<u32>,
    count: usize,
}

impl RoughGroups {
    /// How much demands of a group depend on the number of other requests at arrival: the mean square of the bias at each number, as a
    /// share of the group's mean, less what chance gives.
    fn dependence(&self, demands_s: &[f32], others: &[u32]) -> f64 {
        const BINS: usize = 64;
        let mut means = vec![(0.0f64, 0.0f64); self.count];
        for (group, demand_s) in self.of.iter().zip(demands_s) {
            if let Some((sum, count)) = means.get_mut(*group as usize) {
                *sum += f64::from(*demand_s);
                *count += 1.0;
            }
        }
        let mut bins = [(0.0f64, 0.0f64, 0.0f64); BINS];
        for ((group, demand_s), others) in self.of.iter().zip(demands_s).zip(others) {
            let Some((sum, count)) = means.get(*group as usize).filter(|(sum, _)| *sum > 0.0) else {
                continue;
            };
            // A single long request must not decide.
            let relative = (f64::from(*demand_s) * count / sum).min(10.0) - 1.0;
            let bin = &mut bins[(*others as usize).min(BINS - 1)];
            *bin = (bin.0 + 1.0, bin.1 + relative, bin.2 + relative * relative);
        }
        let total: f64 = bins.iter().map(|(count, ..)| count).sum();
        let bias = |&(count, sum, squares): &(f64, f64, f64)| {
            if count < 20.0 {
                return 0.0;
            }
            let mean = sum / count;
            let variance = (squares / count - mean * mean).max(0.0);
            count * (mean * mean - variance / count)
        };
        bins.iter().map(bias).sum::<f64>() / total.max(1.0)
    }
}
