//! Spans of time in which one target gets a share of all requests.

use plimsoll_policy::{Rng, Time};

use crate::workload::{SimRequest, Targets};

/// A span in which a share of all requests goes to the most requested target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HotSpot {
    /// Its begin.
    pub from: Time,
    /// Its end.
    pub until: Time,
    /// The probability with which a request goes there, 0 to 1.
    pub share: f64,
}

/// Stream of the seed from which the redirected requests are drawn.
const STREAM: u64 = 0x686F_7400;

/// Redirects requests.
pub(crate) struct HotSpots<'a> {
    spots: &'a [HotSpot],
    targets: &'a Targets,
    hottest: u32,
    rng: Rng,
}

impl<'a> HotSpots<'a> {
    pub(crate) fn new(spots: &'a [HotSpot], targets: &'a Targets, seed: u64) -> Self {
        let hottest = targets.rank.iter().position(|&rank| rank == 0).unwrap_or(0) as u32;
        Self { spots, targets, hottest, rng: Rng::new(seed, STREAM) }
    }

    /// Redirects a request that arrives at `time`, perhaps.
    #[inline(never)]
    pub(crate) fn redirect(&mut self, request: &mut SimRequest, time: Time) {
        for spot in self.spots {
            if (spot.from..spot.until).contains(&time) && self.rng.unit() < spot.share {
                request.target = self.hottest;
                request.size_bytes = self.targets.size_bytes[self.hottest as usize];
            }
        }
    }
}
