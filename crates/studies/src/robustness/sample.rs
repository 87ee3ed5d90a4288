//! The cells: those that are known to be hard, and a seeded sample of all.

use plimsoll_policy::Rng;

use super::cell::{ClusterShape, Half, Load, MatrixCell};
use super::workloads::WORKLOADS;

const BACKENDS: &[usize] = &[2, 4, 8, 16, 32, 64];
const MEMORY: &[f64] = &[0.1, 0.3, 0.6, 1.2, 4.0];
const HARDWARE: &[&str] = &["1998", "nvme", "sata_ssd", "network_storage", "disk"];
const LOADS: &[Load] = &[
    Load::Closed { under_way: 0.5 },
    Load::Closed { under_way: 1.0 },
    Load::Closed { under_way: 2.0 },
    Load::Closed { under_way: 4.0 },
    Load::Closed { under_way: 12.0 },
    Load::Closed { under_way: 60.0 },
    Load::Poisson { share: 0.5 },
    Load::Poisson { share: 0.7 },
    Load::Poisson { share: 0.8 },
    Load::Poisson { share: 0.9 },
    Load::Poisson { share: 0.95 },
    Load::Bursts { share: 0.7, cv: 4.0 },
];
/// Half of the cells have equal back-ends.
const CLUSTERS: &[ClusterShape] = &[
    ClusterShape::Equal,
    ClusterShape::TwoSpeeds,
    ClusterShape::Equal,
    ClusterShape::TwoMemories,
    ClusterShape::Equal,
    ClusterShape::OneSlows,
    ClusterShape::Equal,
    ClusterShape::OneReturns,
    ClusterShape::Equal,
    ClusterShape::Grows,
];

/// Stream of the seed from which the sample is drawn.
const STREAM: u64 = 0x726F_6275;

/// The same for the cells of real traces.
const TRACE_STREAM: u64 = 0x7472_6163;

/// Deals the values of one dimension so that each comes up equally often, in an order drawn for it.
struct Dealer<T: 'static> {
    values: &'static [T],
    hand: Vec<usize>,
    rng: Rng,
}

impl<T: Clone> Dealer<T> {
    fn new(values: &'static [T], seed: u64, stream: u64) -> Self {
        Self { values, hand: Vec::new(), rng: Rng::new(seed, stream) }
    }

    fn deal(&mut self) -> T {
        if self.hand.is_empty() {
            self.hand = (0..self.values.len()).collect();
        }
        let at = self.rng.below(self.hand.len() as u64) as usize;
        self.values[self.hand.swap_remove(at)].clone()
    }
}

/// Deals everything but the workload.
struct Dealers {
    backends: Dealer<usize>,
    memory: Dealer<f64>,
    loads: Dealer<Load>,
    clusters: Dealer<ClusterShape>,
    hardware: Dealer<&'static str>,
}

impl Dealers {
    fn new(seed: u64, stream: u64) -> Self {
        Self {
            backends: Dealer::new(BACKENDS, seed, stream + 1),
            memory: Dealer::new(MEMORY, seed, stream + 2),
            loads: Dealer::new(LOADS, seed, stream + 3),
            clusters: Dealer::new(CLUSTERS, seed, stream + 4),
            hardware: Dealer::new(HARDWARE, seed, stream + 5),
        }
    }

    fn deal(&mut self, half: Half, workload: &str, requests: u64, seed: u64) -> MatrixCell {
        MatrixCell {
            number: 0,
            half,
            workload: workload.to_owned(),
            requests,
            backends: self.backends.deal(),
            memory: self.memory.deal(),
            load: self.loads.deal(),
            cluster: self.clusters.deal(),
            hardware: self.hardware.deal().to_owned(),
            seed,
        }
    }
}

/// A sample of `per_trace` cells of each of these traces, given as names and numbers of requests.
#[must_use]
pub fn sample_of_traces(traces: &[(String, u64)], per_trace: u32, seed: u64) -> Vec<MatrixCell> {
    let mut dealers = Dealers::new(seed, TRACE_STREAM);
    let rounds = (0..per_trace).flat_map(|round| traces.iter().map(move |of| (round, of)));
    rounds
        .map(|(round, (name, requests))| dealers.deal(Half::Traces, name, *requests, seed + u64::from(round)))
        .collect()
}

/// A sample of `per_half` cells of each half, `requests` requests each.
#[must_use]
pub fn sample(per_half: u32, requests: u64, seed: u64) -> Vec<MatrixCell> {
    let mut dealers = Dealers::new(seed, STREAM);
    let mut out = Vec::new();
    for round in 0..per_half {
        for half in [Half::Design, Half::Judging] {
            let known: Vec<_> = WORKLOADS.iter().filter(|workload| workload.half == half).collect();
            let workload = known[round as usize % known.len()];
            out.push(dealers.deal(half, workload.name, requests, seed + u64::from(round)));
        }
    }
    out
}

/// Cells in which a policy that is good elsewhere is known to lose much: of the design half.
#[must_use]
pub fn known_hard(requests: u64, seed: u64) -> Vec<MatrixCell> {
    let cell = |workload: &str, backends: usize, load: Load, hardware: &str| MatrixCell {
        number: 0,
        half: Half::Design,
        workload: workload.to_owned(),
        requests,
        backends,
        memory: 0.36,
        load,
        cluster: ClusterShape::Equal,
        hardware: hardware.to_owned(),
        seed,
    };
    let mut out = Vec::new();
    for workload in ["hot", "rice"] {
        for under_way in [3.75, 62.4] {
            out.push(cell(workload, 16, Load::Closed { under_way }, "1998"));
        }
        out.push(cell(workload, 4, Load::Closed { under_way: 15.0 }, "1998"));
        out.push(cell(workload, 16, Load::Closed { under_way: 3.75 }, "nvme"));
        out.push(cell(workload, 4, Load::Poisson { share: 0.6 }, "1998"));
        out.push(cell(workload, 16, Load::Poisson { share: 0.8 }, "1998"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_share_no_workload_and_the_seed_decides() {
        let cells = sample(40, 1000, 7);
        assert_eq!(cells.len(), 80);
        let of = |half| {
            let mut names: Vec<_> =
                cells.iter().filter(|c| c.half == half).map(|c| c.workload.clone()).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let (design, judging) = (of(Half::Design), of(Half::Judging));
        assert!(!design.is_empty() && judging.iter().all(|name| !design.contains(name)));
        assert_eq!(cells, sample(40, 1000, 7));
        assert_ne!(cells, sample(40, 1000, 8));
        for &backends in BACKENDS {
            let count = cells.iter().filter(|c| c.backends == backends).count();
            assert!((12..=15).contains(&count), "{backends} back-ends in {count} cells");
        }
    }

    #[test]
    fn a_cell_is_data() {
        for cell in known_hard(10, 1).into_iter().chain(sample(20, 10, 1)) {
            let text = serde_json::to_string(&cell).unwrap();
            assert_eq!(serde_json::from_str::<MatrixCell>(&text).unwrap(), cell, "{text}");
        }
    }
}
