//! What was learned of one back-end, as far as it may count beside what was learned of all.

use crate::fading_ratio::FadingRatio;

/// It counts only where it differs from that of all by more than this factor.
const NOISE: f64 = 1.6;

/// A ratio of one back-end, as every choice looks at it: small, and computed when it is learned.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OwnRatio {
    own: f64,
    /// How much of it is its own; the rest is that of all.
    share: f64,
}

impl OwnRatio {
    /// This was learned; so many samples of all (`prior`) are mixed with it.
    pub(super) fn of(learned: &FadingRatio, prior: f64) -> Self {
        let samples = learned.samples();
        learned.get().map_or(Self::default(), |own| Self { own, share: samples / (samples + prior) })
    }

    /// The ratio, where that of all is `all`; differences that may be chance count only if `exact`.
    #[inline(always)]
    pub(super) fn beside(&self, all: f64, exact: bool) -> f64 {
        let mixed = all + (self.own - all) * self.share;
        let differs = (mixed >= all * NOISE) | (mixed * NOISE <= all);
        if differs | exact { mixed } else { all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_and_small_differences_do_not_count() {
        let mut learned = FadingRatio::default();
        assert_eq!(OwnRatio::of(&learned, 8.0).beside(5.0, true), 5.0);
        learned.add(20.0, 1.0);
        let one = OwnRatio::of(&learned, 8.0);
        assert_eq!(one.beside(5.0, false), 5.0, "one sample of nine is four times as large");
        assert!((6.6..6.7).contains(&one.beside(5.0, true)), "{one:?}");
        (0..100).for_each(|_| learned.add(20.0, 1.0));
        let many = OwnRatio::of(&learned, 8.0);
        assert!(many.beside(5.0, false) > 15.0, "{many:?}");
        assert_eq!(many.beside(17.0, false), 17.0);
    }
}
