//! How sure a gain is: the bootstrap over blocks of a log.
//!
//! Runs of two policies answer the same requests. Cut into blocks, each block says by how much one of them was faster there. To draw as many
//! blocks with replacement, again and again, shows how far the gain depends on which blocks there happen to be. Blocks are of neighbouring
//! requests, and of no fewer than the cluster has at once (`plan.rs`), so that what neighbours have in common makes the interval no narrower than
//! it has to. What blocks of a day have in common with one another does make it too narrow.

use plimsoll_policy::Rng;
use serde::Serialize;

/// Draws of the bootstrap.
const DRAWS: usize = 1_000;
/// Stream of the seed from which they are drawn.
const STREAM: u64 = 0x626F_6F74;

/// A ratio with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GainInterval {
    /// The ratio over all blocks.
    pub ratio: f64,
    /// What 2.5 % of the draws are below.
    pub low: f64,
    /// What 2.5 % of the draws are above.
    pub high: f64,
}

impl GainInterval {
    /// Certain: what is compared with itself.
    pub const NONE: Self = Self { ratio: 1.0, low: 1.0, high: 1.0 };
}

/// What one run took for each block, and how long it took at least, as something beside it did: the longer one of both sums counts.
#[derive(Debug, Clone, Copy)]
pub struct BlockTimes<'a> {
    /// What it took.
    pub taken: &'a [f64],
    /// What it took at least; nothing if this is empty.
    pub least: &'a [f64],
}

impl BlockTimes<'_> {
    fn at(&self, block: usize) -> (f64, f64) {
        (self.taken[block], self.least.get(block).copied().unwrap_or(0.0))
    }
}

/// Sums of both.
fn plus(sum: (f64, f64), of: (f64, f64)) -> (f64, f64) {
    (sum.0 + of.0, sum.1 + of.1)
}

/// How many times as much `other` took as `own`, each block by block.
#[must_use]
pub fn gain(own: BlockTimes<'_>, other: BlockTimes<'_>, seed: u64) -> GainInterval {
    let blocks = own.taken.len().min(other.taken.len());
    let ratio = |own: (f64, f64), other: (f64, f64)| {
        let (own, other) = (own.0.max(own.1), other.0.max(other.1));
        if own > 0.0 && other > 0.0 { other / own } else { 1.0 }
    };
    let all = |of: BlockTimes<'_>| (0..blocks).map(|block| of.at(block)).fold((0.0, 0.0), plus);
    let whole = ratio(all(own), all(other));
    if blocks < 2 {
        return GainInterval { ratio: whole, low: 0.0, high: f64::INFINITY };
    }
    let mut rng = Rng::new(seed, STREAM);
    let mut draws: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let (mut of_own, mut of_other) = ((0.0, 0.0), (0.0, 0.0));
            for _ in 0..blocks {
                let block = rng.below(blocks as u64) as usize;
                of_own = plus(of_own, own.at(block));
                of_other = plus(of_other, other.at(block));
            }
            ratio(of_own, of_other)
        })
        .collect();
    draws.sort_unstable_by(f64::total_cmp);
    GainInterval { ratio: whole, low: draws[DRAWS / 40], high: draws[DRAWS - 1 - DRAWS / 40] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(taken: &[f64]) -> BlockTimes<'_> {
        BlockTimes { taken, least: &[] }
    }

    #[test]
    fn equal_blocks_leave_no_doubt() {
        let twice = gain(times(&[1.0; 10]), times(&[2.0; 10]), 1);
        assert_eq!(twice, GainInterval { ratio: 2.0, low: 2.0, high: 2.0 });
    }

    #[test]
    fn unlike_blocks_leave_doubt_and_the_seed_decides_the_draws() {
        let own = [1.0; 20];
        let other: Vec<f64> = (0..20).map(|block| 1.5 + (f64::from(block) - 9.5) / 9.5).collect();
        let found = gain(times(&own), times(&other), 1);
        assert!((found.ratio - 1.5).abs() < 1e-12);
        // The standard error of the mean is 0.136: 1.23 to 1.77 by the normal distribution.
        assert!((1.15..1.35).contains(&found.low) && (1.65..1.85).contains(&found.high), "{found:?}");
        assert_eq!(found, gain(times(&own), times(&other), 1));
        assert_ne!(found, gain(times(&own), times(&other), 2));
    }

    #[test]
    fn what_is_bounded_elsewhere_gains_nothing() {
        let (own, other) = ([1.0, 3.0, 1.0, 3.0], [2.0, 3.0, 2.0, 4.0]);
        let of = |taken, least| BlockTimes { taken, least };
        assert_eq!(gain(of(&own, &[5.0; 4]), of(&other, &[5.0; 4]), 1), GainInterval::NONE);
        assert_eq!(gain(of(&own, &[2.5; 4]), of(&other, &[2.5; 4]), 1).ratio, 11.0 / 10.0);
        // Only the other one is bounded, in some blocks more than in others.
        let uneven = gain(times(&own), of(&other, &[12.0, 3.0, 6.0, 3.0]), 1);
        assert!(uneven.ratio == 3.0 && uneven.low < 3.0 && uneven.high > 3.0, "{uneven:?}");
    }

    #[test]
    fn one_block_says_nothing_of_doubt() {
        let found = gain(times(&[1.0]), times(&[3.0]), 1);
        assert!(found.ratio == 3.0 && found.low == 0.0 && found.high.is_infinite());
    }
}
