//! Which runs make which part of figure 9.

use super::plan::{NodeReading, NodeRun, NodeStrategy};
use super::published::{MOST_NODES, TURNING_NODES};
use super::sites::Site;
use crate::lard::Effort;

/// A part of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloningPart {
    /// Everything.
    All,
    /// Figure 8: normalized efficiency by the size of the document, and what a clone costs to start.
    Micro,
    /// Figure 9: throughput by the number of nodes.
    Trace,
    /// What is measured live.
    Live,
    /// Of that, figure 8, and what a clone costs to start.
    LiveMicro,
    /// Of that, figure 9.
    LiveNodes,
    /// Of that, throughput where small documents are answered by the node that is asked.
    Thresholds,
}

impl CloningPart {
    /// Whether something of this part is wanted.
    #[must_use]
    pub fn wants(self, part: Self) -> bool {
        let live = [Self::LiveMicro, Self::LiveNodes, Self::Thresholds];
        self == Self::All || self == part || (self == Self::Live && live.contains(&part))
    }
}

/// Numbers of nodes, on `berkeley` and on the others.
const ALL_NODES: [usize; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const SOME_NODES: [usize; 5] = [2, 4, 8, 10, 12];
const QUICK_NODES: [usize; 4] = [4, 8, 10, 12];

/// Numbers of nodes with changed readings.
pub(super) const CONTROL_NODES: [usize; 3] = [4, TURNING_NODES, MOST_NODES];

/// The workloads.
pub(super) fn sites(effort: Effort) -> &'static [Site] {
    if effort == Effort::Quick { &Site::ALL[..2] } else { &Site::ALL }
}

/// The runs of figure 9 on a workload, in order and each once.
pub(super) fn cells(effort: Effort, part: CloningPart, site: Site) -> Vec<NodeRun> {
    if !part.wants(CloningPart::Trace) {
        return Vec::new();
    }
    let quick = effort == Effort::Quick;
    let numbers = match site {
        _ if quick => &QUICK_NODES[..],
        Site::Berkeley => &ALL_NODES[..],
        _ => &SOME_NODES[..],
    };
    let figure = numbers.iter().flat_map(|&n| NodeStrategy::FIGURE.map(|s| NodeRun::new(s, n)));
    let mut cells: Vec<NodeRun> = figure.collect();
    if site == Site::Berkeley && !quick {
        cells.push(NodeRun::new(NodeStrategy::ScLardR, MOST_NODES));
        for (reading, n) in NodeReading::CHANGED.into_iter().flat_map(|r| CONTROL_NODES.map(|n| (r, n))) {
            cells.extend(NodeStrategy::FIGURE.map(|s| NodeRun::new(s, n).with(reading)));
        }
    }
    cells.sort_unstable();
    cells.dedup();
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_a_part_of_the_whole_and_figure_8_has_no_nodes() {
        for site in Site::ALL {
            let whole = cells(Effort::Full, CloningPart::All, site);
            let quick = cells(Effort::Quick, CloningPart::Trace, site);
            assert!(quick.len() < whole.len() && quick.iter().all(|run| whole.contains(run)));
            assert!(cells(Effort::Full, CloningPart::Micro, site).is_empty());
        }
        let berkeley = cells(Effort::Full, CloningPart::Trace, Site::Berkeley);
        // Four readings concern all five strategies, two those that fetch, one those with LFU.
        assert_eq!(berkeley.len(), 12 * 5 + 1 + 3 * (4 * 5 + 2 * 2 + 2));
    }
}
