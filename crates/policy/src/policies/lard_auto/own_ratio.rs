//! What was learned of one back-end, as far as it may count beside what was learned of all.

use crate::fading_ratio::FadingRatio;

/// It counts only where it differs from that of all by more than this factor.
const NOISE: f64 = 1.6;

/// A ratio of one back-end. What it says is computed when it is learned, since every choice looks at those of all back-ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnRatio {
    learned: FadingRatio,
    /// So many samples of all are mixed with its own.
    prior: f64,
    own: f64,
    /// How much of it is its own.
    share: f64,
}

impl OwnRatio {
    /// Nothing is known.
    pub(super) const fn new(prior: f64) -> Self {
        Self { learned: FadingRatio::NONE, prior, own: 0.0, share: 0.0 }
    }

    /// Adds a sample; `by` is above 0.
    pub(super) fn add(&mut self, value: f64, by: f64) {
        self.learned.add(value, by);
        self.own = self.learned.get().unwrap_or(0.0);
        self.share = self.learned.samples() / (self.learned.samples() + self.prior);
    }

    /// The ratio, where that of all is `all`; differences that may be chance count only if `exact`.
    #[inline]
    pub(super) fn beside(&self, all: f64, exact: bool) -> f64 {
        let mixed = all + (self.own - all) * self.share;
        let differs = mixed >= all * NOISE || mixed * NOISE <= all;
        if differs || exact { mixed } else { all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_and_small_differences_do_not_count() {
        let mut ratio = OwnRatio::new(8.0);
        assert_eq!(ratio.beside(5.0, true), 5.0);
        ratio.add(20.0, 1.0);
        assert_eq!(ratio.beside(5.0, false), 5.0, "one sample of nine is four times as large");
        assert!((6.6..6.7).contains(&ratio.beside(5.0, true)), "{ratio:?}");
        (0..100).for_each(|_| ratio.add(20.0, 1.0));
        assert!(ratio.beside(5.0, false) > 15.0, "{ratio:?}");
        assert_eq!(ratio.beside(17.0, false), 17.0);
    }
}
