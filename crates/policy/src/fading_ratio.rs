//! A ratio of sums in which older samples fade.

/// What each sample leaves of the ones before it.
const KEPT: f64 = 1.0 - 1.0 / 64.0;

/// Such a ratio.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FadingRatio {
    sum: f64,
    by: f64,
    samples: f64,
    /// Asked for far more often than it changes.
    ratio: f64,
}

impl FadingRatio {
    /// Adds a sample; `by` is above 0.
    pub(crate) fn add(&mut self, value: f64, by: f64) {
        self.sum = self.sum * KEPT + value;
        self.by = self.by * KEPT + by;
        self.samples = self.samples * KEPT + 1.0;
        self.ratio = self.sum / self.by;
    }

    /// How many samples there were, older ones counted less: at most 64.
    pub(crate) fn samples(&self) -> f64 {
        self.samples
    }

    /// The ratio; `None` without a sample.
    #[inline]
    pub(crate) fn get(&self) -> Option<f64> {
        (self.by > 0.0).then_some(self.ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_samples_count_more() {
        let mut ratio = FadingRatio::default();
        assert_eq!(ratio.get(), None);
        ratio.add(6.0, 2.0);
        assert_eq!(ratio.get(), Some(3.0));
        (0..64).for_each(|_| ratio.add(5.0, 1.0));
        let now = ratio.get().unwrap();
        assert!((4.9..5.0).contains(&now), "{now}");
    }
}
