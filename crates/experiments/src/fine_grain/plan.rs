//! The runs of the prototype.

use plimsoll_studies::fine_grain::{Effort, Grain, ServiceChoice};

use super::choosing::NOTHING_DISCARDED_NS;
use super::node_cluster::ChosenBy;

/// As the paper's cluster.
pub(super) const SERVERS: usize = 16;
pub(super) const CLIENTS: usize = 6;

/// Slow answers are discarded after this time (section 3.2).
const DISCARD_AFTER_NS: u64 = 10_000_000;

/// The load of table 2, and the only one of the quick form.
pub(super) const MOST_LOAD: u32 = 90;

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlannedPoint {
    pub(super) grain: Grain,
    pub(super) load_percent: u32,
    pub(super) choice: ServiceChoice,
}

/// Lengths in seconds: until measuring begins, and of measuring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PointLength {
    pub(super) warmup_s: f64,
    pub(super) measured_s: f64,
}

impl PlannedPoint {
    /// How long it takes: until queues are as long as they will be, and until means say something.
    pub(super) fn length(self, effort: Effort) -> PointLength {
        let busy = self.load_percent >= MOST_LOAD;
        let (warmup_s, measured_s) = match (effort, self.grain) {
            (Effort::Quick, _) => (1.0, 4.0),
            (_, Grain::Medium) => {
                if busy {
                    (10.0, 90.0)
                } else {
                    (5.0, 25.0)
                }
            }
            (_, Grain::PoissonExp) => {
                if busy {
                    (5.0, 35.0)
                } else {
                    (3.0, 12.0)
                }
            }
            (_, Grain::Fine | Grain::FineWeibull) => {
                if busy {
                    (4.0, 24.0)
                } else {
                    (2.0, 6.0)
                }
            }
        };
        PointLength { warmup_s, measured_s }
    }

    /// By what servers are chosen.
    pub(super) fn by(self) -> ChosenBy {
        let policy = |policy: String, discard_after_ns| ChosenBy::Policy { policy, discard_after_ns };
        match self.choice {
            ServiceChoice::Random => policy("random".to_owned(), NOTHING_DISCARDED_NS),
            ServiceChoice::Polled { size, discards } => policy(
                format!("random_polling:size={size}"),
                if discards { DISCARD_AFTER_NS } else { NOTHING_DISCARDED_NS },
            ),
            ServiceChoice::Manager => ChosenBy::Manager,
        }
    }
}

/// The workloads, in the order in which they are measured.
pub(super) fn grains(effort: Effort) -> &'static [Grain] {
    match effort {
        Effort::Quick => &[Grain::Fine],
        Effort::Full => &[Grain::Fine, Grain::PoissonExp, Grain::Medium],
    }
}

/// Length in seconds of the measurement of full load: until measuring begins, and of measuring.
pub(super) fn full_load_length(effort: Effort) -> PointLength {
    match effort {
        Effort::Quick => PointLength { warmup_s: 2.0, measured_s: 4.0 },
        Effort::Full => PointLength { warmup_s: 10.0, measured_s: 30.0 },
    }
}

/// The seeds of workloads and policies.
pub(super) fn seeds(effort: Effort) -> &'static [u64] {
    match effort {
        Effort::Quick => &[1, 2, 3],
        Effort::Full => &[1, 2, 3, 4, 5],
    }
}

/// How many runs of a workload are made side by side. A run of the Fine-Grain trace takes about an eighth of a CPU, one of a coarser
/// workload so much less as its accesses are fewer: all together leave most of two CPUs idle.
fn side_by_side(grain: Grain) -> usize {
    match grain {
        Grain::Medium => 35,
        Grain::PoissonExp => 14,
        Grain::Fine | Grain::FineWeibull => 5,
    }
}

/// The runs with their seeds, in sets that are made side by side.
pub(super) fn points(effort: Effort, seeds: &[u64]) -> Vec<Vec<(u64, PlannedPoint)>> {
    let loads: &[u32] = match effort {
        Effort::Quick => &[MOST_LOAD],
        Effort::Full => &[50, 60, 70, 80, MOST_LOAD],
    };
    let mut sets = Vec::new();
    for &grain in grains(effort) {
        let mut of_grain = Vec::new();
        for &load_percent in loads {
            let mut choices = vec![ServiceChoice::Random, ServiceChoice::Manager];
            choices.extend([2, 3, 4, 8].map(|size| ServiceChoice::Polled { size, discards: false }));
            if load_percent == MOST_LOAD {
                choices.push(ServiceChoice::Polled { size: 3, discards: true });
            }
            let planned = |choice| PlannedPoint { grain, load_percent, choice };
            // Runs of one seed stand together: what disturbs one of them disturbs those it is compared with.
            of_grain.extend(
                seeds.iter().flat_map(|&seed| choices.iter().map(move |&choice| (seed, planned(choice)))),
            );
        }
        // Runs of one length stand together.
        let (busy, other): (Vec<_>, Vec<_>) =
            of_grain.into_iter().partition(|(_, planned)| planned.load_percent >= MOST_LOAD);
        for part in [other, busy] {
            sets.extend(part.chunks(side_by_side(grain)).map(<[_]>::to_vec));
        }
    }
    sets
}

/// How long all takes, about, in seconds.
pub(super) fn seconds(effort: Effort, seeds: &[u64]) -> f64 {
    let PointLength { warmup_s, measured_s } = full_load_length(effort);
    let of_set = |set: &Vec<(u64, PlannedPoint)>| {
        let lengths = set.iter().map(|(_, planned)| planned.length(effort));
        lengths.map(|length| length.warmup_s + length.measured_s).fold(0.0, f64::max) + 1.0
    };
    warmup_s + measured_s + 2.0 + points(effort, seeds).iter().map(of_set).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_are_as_long_as_they_may_be() {
        let all = |effort| points(effort, seeds(effort)).into_iter().flatten().count();
        assert!(seconds(Effort::Quick, seeds(Effort::Quick)) < 45.0);
        assert!(seconds(Effort::Full, seeds(Effort::Full)) < 1200.0);
        assert_eq!((all(Effort::Full), all(Effort::Quick)), (5 * 3 * (5 * 6 + 1), 3 * 7));
    }
}
