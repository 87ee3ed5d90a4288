//! Counts of one direction of a link.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::link_statistics::{DirectionStatistics, TimeQuantiles};

/// Longer times count as this.
const LONGEST_NS: u64 = 200_000_000_000;

/// The counts of one direction.
#[derive(Debug)]
pub(crate) struct DirectionTally {
    /// Without quantiles, and without what is held.
    pub(crate) counts: DirectionStatistics,
    delays_ns: Histogram<u64>,
    lateness_ns: Histogram<u64>,
}

impl DirectionTally {
    pub(crate) fn new() -> Self {
        let histogram = || Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("the bounds are valid");
        Self { counts: DirectionStatistics::default(), delays_ns: histogram(), lateness_ns: histogram() }
    }

    /// A frame left.
    pub(crate) fn leaves(&mut self, delay_ns: u64, lateness_ns: u64) {
        self.counts.delivered += 1;
        self.delays_ns.saturating_record(delay_ns);
        self.lateness_ns.saturating_record(lateness_ns);
    }

    /// All counts, with what is held now.
    pub(crate) fn statistics(&self, held_frames: usize, held_bytes: usize) -> DirectionStatistics {
        DirectionStatistics {
            held_frames: held_frames as u64,
            held_bytes: held_bytes as u64,
            delay: quantiles(&self.delays_ns),
            lateness: quantiles(&self.lateness_ns),
            ..self.counts
        }
    }
}

fn quantiles(times_ns: &Histogram<u64>) -> TimeQuantiles {
    let at = |share| Duration::from_nanos(times_ns.value_at_quantile(share));
    TimeQuantiles { median: at(0.5), p90: at(0.9), p99: at(0.99), longest: at(1.0) }
}
