//! Means over seeds with confidence intervals.

use crate::confidence::ConfidenceLevel;

/// A mean with the half-width of its confidence interval of 95 %; `None` for one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SeedMean {
    pub(crate) mean: f64,
    pub(crate) half_width: Option<f64>,
}

impl SeedMean {
    /// Of the values of all seeds; `None` without a value.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let (mean, half_width) = ConfidenceLevel::PERCENT_95.of_mean(values);
        (!values.is_empty()).then_some(Self { mean, half_width })
    }

    /// As text, scaled.
    pub(crate) fn words(self, scale: f64, decimals: usize) -> String {
        let mean = self.mean * scale;
        match self.half_width {
            Some(half) => format!("{mean:.decimals$} ± {:.decimals$}", half * scale),
            None => format!("{mean:.decimals$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_by_hand() {
        // Deviation 1, over the root of 3, times 4.303.
        let of = SeedMean::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((of.half_width.unwrap() - 4.303 / 3_f64.sqrt()).abs() < 1e-9);
        assert_eq!(of.words(1.0, 1), "2.0 ± 2.5");
        assert_eq!(SeedMean::of(&[4.0]).unwrap().words(10.0, 0), "40");
        assert!(SeedMean::of(&[]).is_none());
    }
}
