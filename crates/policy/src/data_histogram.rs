//! The discrete data histogram (DDH) of request sizes, batch by batch.
//!
//! Source: AdaptLoad, section 4 and figure 4. `O_i` is what batch i held, `U_(i+1)` what the next batch is distributed by:
//!
//! ```text
//! U_(i+1) <- ((1 - alpha) O_i + (alpha - alpha^(i+1)) U_i) / (1 - alpha^(i+1))
//! ```
//!
//! With `alpha = 0` that is the batch before, with `alpha = 1` (in the limit) the mean of all batches.

/// Sums per bin: of the batch under way, and of earlier ones with geometrically falling weights.
#[derive(Debug, Clone)]
pub struct DataHistogram {
    observed: Vec<u64>,
    used: Vec<f64>,
    alpha: f64,
    /// alpha^(i+1), i being the batch under way.
    power: f64,
    batches: u32,
}

impl DataHistogram {
    /// Empty, with this many bins; `alpha` is from 0 to 1.
    #[must_use]
    pub fn new(bins: usize, alpha: f64) -> Self {
        Self { observed: vec![0; bins], used: vec![0.0; bins], alpha, power: alpha, batches: 0 }
    }

    /// Adds to a bin of the batch under way.
    #[inline]
    pub fn add(&mut self, bin: usize, amount: u64) {
        self.observed[bin] = self.observed[bin].saturating_add(amount);
    }

    /// Ends the batch and returns the weights of this batch and of the earlier ones. An empty batch changes
    /// nothing.
    pub fn end_batch(&mut self) -> Option<(f64, f64)> {
        self.observed.iter().any(|&o| o > 0).then(|| {
            let (new, old) = discounts(self.alpha, self.power, self.batches);
            for (used, observed) in self.used.iter_mut().zip(&mut self.observed) {
                *used = new * std::mem::take(observed) as f64 + old * *used;
            }
            self.power *= self.alpha;
            self.batches = self.batches.saturating_add(1);
            (new, old)
        })
    }

    /// The weights by which the next batch is distributed; during the first batch, what it has held so far.
    pub fn weights(&self, into: &mut Vec<f64>) {
        into.clear();
        if self.batches == 0 {
            into.extend(self.observed.iter().map(|&o| o as f64));
        } else {
            into.extend_from_slice(&self.used);
        }
    }

    /// Number of non-empty batches that have ended.
    #[must_use]
    pub fn batches(&self) -> u32 {
        self.batches
    }
}

/// The weights of the batch that ends and of what came before it, for a batch with `batches` before it.
fn discounts(alpha: f64, power: f64, batches: u32) -> (f64, f64) {
    if alpha >= 1.0 {
        let all = f64::from(batches) + 1.0;
        (1.0 / all, f64::from(batches) / all)
    } else {
        ((1.0 - alpha) / (1.0 - power), (alpha - power) / (1.0 - power))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(alpha: f64, batches: &[[u64; 2]]) -> Vec<f64> {
        let mut histogram = DataHistogram::new(2, alpha);
        for batch in batches {
            batch.iter().enumerate().for_each(|(bin, &amount)| histogram.add(bin, amount));
            histogram.end_batch();
        }
        let mut weights = Vec::new();
        histogram.weights(&mut weights);
        weights
    }

    /// Worked out by hand.
    #[test]
    fn earlier_batches_weigh_less() {
        let batches = [[8, 0], [0, 8], [4, 4]];
        assert_eq!(after(0.0, &batches), [4.0, 4.0]);
        assert_eq!(after(1.0, &batches), [4.0, 4.0]);
        // Weights 1, 2 and 4 of 7.
        let half = after(0.5, &batches);
        assert!((half[0] - 24.0 / 7.0).abs() < 1e-12 && (half[1] - 32.0 / 7.0).abs() < 1e-12, "{half:?}");
        assert_eq!(after(0.5, &batches[..1]), [8.0, 0.0]);
    }

    #[test]
    fn an_empty_batch_changes_nothing() {
        assert_eq!(after(0.0, &[[3, 5], [0, 0]]), [3.0, 5.0]);
        assert_eq!(after(0.0, &[[0, 0]]), [0.0, 0.0]);
    }
}
