//! Confidence intervals of means, by Student's t.

/// How sure a confidence interval is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfidenceLevel {
    /// The magnitude that so much of the normal distribution stays below.
    normal: f64,
    /// That of Student's t for 1, 2, … degrees of freedom, for which the expansion is too small.
    few: &'static [f64],
}

impl ConfidenceLevel {
    pub(crate) const PERCENT_95: Self = Self {
        normal: 1.959_964,
        few: &[12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228],
    };
    pub(crate) const PERCENT_99: Self =
        Self { normal: 2.575_829, few: &[63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499] };

    /// Student's t: the magnitude that so much of all values with so many degrees of freedom, at least one, stays below. Beyond the few by
    /// the expansion of Cornish and Fisher, which is right to 0.1 % there.
    fn student(self, degrees: usize) -> f64 {
        if let Some(&known) = self.few.get(degrees.saturating_sub(1)) {
            return known;
        }
        let (z, degrees) = (self.normal, degrees as f64);
        let first = (z.powi(3) + z) / 4.0;
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
        z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
    }

    /// The mean of these, and half of its confidence interval; not a number without values, and `None` with fewer than two.
    pub(crate) fn of_mean(self, values: &[f64]) -> (f64, Option<f64>) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let degrees = values.len().checked_sub(1).filter(|&degrees| degrees > 0);
        let half_width = degrees.map(|degrees| {
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / degrees as f64;
            self.student(degrees) * (variance / count).sqrt()
        });
        (mean, half_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_is_that_of_the_tables() {
        let is = |level: ConfidenceLevel, degrees: usize, t: f64| {
            let ours = level.student(degrees);
            assert!((ours / t - 1.0).abs() < 0.001, "{level:?} {degrees}: {ours}");
        };
        for (degrees, t) in [(1, 63.657), (7, 3.499), (8, 3.355), (11, 3.106), (17, 2.898), (39, 2.708)] {
            is(ConfidenceLevel::PERCENT_99, degrees, t);
        }
        is(ConfidenceLevel::PERCENT_99, 1 << 40, 2.576);
        for (degrees, t) in [(1, 12.706), (10, 2.228), (11, 2.201), (20, 2.086), (60, 2.000)] {
            is(ConfidenceLevel::PERCENT_95, degrees, t);
        }
    }

    #[test]
    fn intervals_by_hand() {
        let (mean, half) = ConfidenceLevel::PERCENT_95.of_mean(&[1.0, 2.0, 3.0]);
        // Deviation 1, over the root of 3, times 4.303.
        assert!(mean == 2.0 && (half.unwrap() - 4.303 / 3_f64.sqrt()).abs() < 1e-9);
        assert_eq!(ConfidenceLevel::PERCENT_99.of_mean(&[4.0]), (4.0, None));
        assert!(ConfidenceLevel::PERCENT_99.of_mean(&[]).0.is_nan());
    }
}
