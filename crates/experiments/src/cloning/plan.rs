//! Which runs are made, and how long they are.

use plimsoll_studies::cloning::{CloningPart, Effort, LiveSetting, MicroMechanism, NodeStrategy};

/// Sizes of documents of figure 8 in bytes.
const SIZES_BYTES: [u64; 8] = [64, 1024, 4096, 16_384, 32_768, 65_536, 262_144, 1_048_576];
const QUICK_SIZES_BYTES: [u64; 2] = [1024, 65_536];
/// From this size on answers come so slowly that a round has to be long.
const SLOW_BYTES: u64 = 262_144;

/// Sizes below which documents are answered where they are asked for.
const THRESHOLDS_BYTES: [u64; 5] = [0, 4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Numbers of nodes with which thresholds are compared, and whether they fetch documents from one another, too.
const THRESHOLD_NODES: [(usize, bool); 3] = [(4, false), (8, false), (8, true)];
/// The most seeds with which they are.
const THRESHOLD_SEEDS: usize = 2;

/// Lengths of the runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LiveLengths {
    /// Requests of figure 9 that fill caches, at full speed.
    pub(super) warm_requests: u64,
    /// Seconds until queues are as long as they will be.
    pub(super) settle_s: f64,
    /// Seconds that a run of figure 9 is measured.
    pub(super) nodes_s: f64,
    /// Rounds of figure 8.
    pub(super) rounds: u64,
    /// Seconds that each half of a round is measured.
    pub(super) round_s: f64,
    /// Clones whose startup is measured.
    pub(super) clones: usize,
}

pub(super) fn lengths(effort: Effort) -> LiveLengths {
    match effort {
        Effort::Full => LiveLengths {
            warm_requests: 15_000,
            settle_s: 1.0,
            nodes_s: 5.0,
            rounds: 3,
            round_s: 1.2,
            clones: 2_000,
        },
        Effort::Quick => LiveLengths {
            warm_requests: 4_000,
            settle_s: 0.5,
            nodes_s: 1.5,
            rounds: 1,
            round_s: 0.5,
            clones: 200,
        },
    }
}

/// The runs of figure 9, once each, in an order in which those that are compared stand together.
pub(super) fn nodes(effort: Effort) -> Vec<LiveSetting> {
    let numbers: &[usize] = if effort == Effort::Full { &[1, 2, 4, 6, 8] } else { &[4] };
    let mut runs = Vec::new();
    for &nodes in numbers {
        for strategy in NodeStrategy::FIGURE {
            let setting = LiveSetting::new(strategy.with_nodes(nodes), nodes);
            if !runs.contains(&setting) {
                runs.push(setting);
            }
        }
    }
    runs
}

/// The runs with thresholds; none in the quick form.
pub(super) fn thresholds(effort: Effort) -> Vec<LiveSetting> {
    let mut runs = Vec::new();
    for (nodes, fetches) in THRESHOLD_NODES.into_iter().filter(|_| effort == Effort::Full) {
        let with =
            |min_bytes| LiveSetting { min_bytes, fetches, ..LiveSetting::new(NodeStrategy::Sc, nodes) };
        runs.extend(THRESHOLDS_BYTES.map(with));
    }
    runs
}

/// The seeds.
pub(super) fn seeds(effort: Effort, one: Option<u64>, count: Option<u64>) -> Vec<u64> {
    let count = count.unwrap_or(if effort == Effort::Full { 3 } else { 1 });
    one.map_or_else(|| (1..=count).collect(), |seed| vec![seed])
}

/// Of the seeds, those of runs with thresholds.
pub(super) fn threshold_seeds(seeds: &[u64]) -> &[u64] {
    &seeds[..seeds.len().min(THRESHOLD_SEEDS)]
}

/// Sizes of figure 8, and how long each half of a round is, in seconds.
pub(super) fn sizes(effort: Effort) -> Vec<(u64, f64)> {
    let sizes: &[u64] = if effort == Effort::Full { &SIZES_BYTES } else { &QUICK_SIZES_BYTES };
    let round_s = lengths(effort).round_s;
    sizes.iter().map(|&size| (size, if size >= SLOW_BYTES { 4.0 * round_s } else { round_s })).collect()
}

/// How long a part takes, about, in seconds.
pub(super) fn seconds(effort: Effort, part: CloningPart, seeds: usize) -> f64 {
    let of = lengths(effort);
    let run_s = of.warm_requests as f64 / 4_000.0 + of.settle_s + of.nodes_s + 0.5;
    let mut seconds = 0.0;
    if part.wants(CloningPart::LiveMicro) {
        let half_s: f64 = sizes(effort).iter().map(|(_, half_s)| half_s + 0.5).sum();
        seconds += 5.0 + 2.0 * half_s * of.rounds as f64 * MicroMechanism::FIGURE.len() as f64;
    }
    if part.wants(CloningPart::LiveNodes) {
        seconds += (seeds * nodes(effort).len()) as f64 * run_s;
    }
    if part.wants(CloningPart::Thresholds) {
        seconds += (seeds.min(THRESHOLD_SEEDS) * thresholds(effort).len()) as f64 * run_s;
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_made_once_and_the_quick_form_is_short() {
        // With one node there is nothing to share: only the memory differs.
        assert_eq!(nodes(Effort::Full).len(), 2 + 4 * 5);
        assert_eq!((nodes(Effort::Quick).len(), thresholds(Effort::Quick).len()), (5, 0));
        let all = thresholds(Effort::Full);
        assert_eq!(all.len(), 3 * 5);
        assert!(seconds(Effort::Quick, CloningPart::All, 1) < 45.0);
        assert!(seconds(Effort::Full, CloningPart::All, 3) < 1500.0);
        assert_eq!(seeds(Effort::Full, Some(7), None), [7]);
        assert_eq!(seeds(Effort::Full, None, None), [1, 2, 3]);
    }
}
