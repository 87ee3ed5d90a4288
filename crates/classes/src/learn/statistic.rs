//! Sums of demands.

/// Number, sum and sum of squares of some demands in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DemandSums {
    pub(crate) count: f64,
    pub(crate) sum_s: f64,
    pub(crate) squares: f64,
}

impl DemandSums {
    pub(crate) fn add(&mut self, demand_s: f64) {
        self.count += 1.0;
        self.sum_s += demand_s;
        self.squares += demand_s * demand_s;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum_s += other.sum_s;
        self.squares += other.squares;
    }

    /// The mean; 0 for none.
    pub(crate) fn mean_s(&self) -> f64 {
        self.sum_s / self.count.max(1.0)
    }

    /// The sum of squared distances from the mean.
    pub(crate) fn within(&self) -> f64 {
        (self.squares - self.sum_s * self.mean_s()).max(0.0)
    }

    pub(crate) fn deviation_s(&self) -> f64 {
        (self.within() / (self.count - 1.0).max(1.0)).sqrt()
    }

    /// The standard error of the mean relative to the mean; of a single demand, 1.
    pub(crate) fn relative_error(&self) -> f64 {
        let mean_s = self.mean_s();
        if self.count < 2.0 || mean_s <= 0.0 {
            return 1.0;
        }
        self.deviation_s() / mean_s / self.count.sqrt()
    }
}

/// How much a division into parts explains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Explained {
    /// Share of the variance, corrected for the number of parts, so that parts by chance explain nothing on average. It may be negative.
    pub(crate) share: f64,
    /// Whether that is more than chance does.
    pub(crate) significant: bool,
}

/// What a division of requests into parts explains of their demand.
pub(crate) fn explained(parts: impl Iterator<Item = DemandSums>) -> Explained {
    let (mut all, mut within, mut count) = (DemandSums::default(), 0.0, 0.0);
    for part in parts.filter(|part| part.count > 0.0) {
        all.merge(part);
        within += part.within();
        count += 1.0;
    }
    let free = all.count - count;
    if count < 2.0 || free < 1.0 || all.within() <= 0.0 {
        return Explained { share: 0.0, significant: false };
    }
    let per_request = within / free;
    let share = 1.0 - per_request / (all.within() / (all.count - 1.0));
    let between = (all.within() - within) / (count - 1.0);
    // Under chance alone the ratio has mean 1 and about this deviation.
    let deviation = (2.0 / (count - 1.0) + 2.0 / free).sqrt();
    let significant = between > per_request * (1.0 + 4.0 * deviation);
    Explained { share, significant }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(list: &[f64]) -> DemandSums {
        let mut out = DemandSums::default();
        for demand_s in list {
            out.add(*demand_s);
        }
        out
    }

    #[test]
    fn means_and_deviations() {
        let found = sums(&[1.0, 2.0, 3.0]);
        assert_eq!((found.mean_s(), found.deviation_s(), found.within()), (2.0, 1.0, 2.0));
        assert_eq!(DemandSums::default().mean_s(), 0.0);
        assert_eq!(sums(&[3.0]).relative_error(), 1.0);
    }

    #[test]
    fn different_parts_explain_and_equal_ones_do_not() {
        let (low, high) = (sums(&[1.0, 1.1, 0.9, 1.0, 1.05]), sums(&[2.0, 2.1, 1.9, 2.0, 2.1]));
        let found = explained([low, high].into_iter());
        assert!(found.significant && found.share > 0.95, "{found:?}");
        assert!(!explained([low, low].into_iter()).significant);
        assert!(!explained([low].into_iter()).significant);
        assert!(!explained(std::iter::empty()).significant);
    }
}
