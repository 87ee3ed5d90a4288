//! Chance that follows from a seed.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// A stream of chance: the same seed gives the same stream.
#[derive(Debug)]
pub(crate) struct Chance(Pcg64Mcg);

impl Chance {
    /// Stream `stream` of `seed`; different streams of a seed have nothing to do with one another.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(mix(seed ^ mix(stream.wrapping_add(1)))))
    }

    /// A number from 0 to 1, without 1.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True in this share of calls.
    #[inline]
    pub(crate) fn falls(&mut self, share: f64) -> bool {
        self.unit() < share
    }
}

/// The finalizer of `SplitMix64`, which spreads numbers that differ little.
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
