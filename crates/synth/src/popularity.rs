//! How often each target is requested: popularity by rank, and whole numbers of requests.

/// Popularity of a target by its rank, in a form that holds the usual families.
///
/// With rank r from 1, the weight is
/// `(r + shift)^-exponent · exp(-(r / stretch_rank)^stretch)`, and beyond `break_rank` b it falls
/// with `tail_exponent` instead: `(b + shift)^-exponent · ((r + shift)/(b + shift))^-tail_exponent`.
/// A `break_rank` of 0 means no break, a `stretch_rank` of 0 no exponential factor. So Zipf's law
/// has shift 0; Zipf–Mandelbrot has a shift; the double Pareto law has a break; and an exponent of
/// 0 with the factor is the stretched exponential (Weibull) law.
#[derive(Debug, Clone, Copy)]
pub(super) struct Popularity {
    /// Power of the fall by rank.
    pub(super) exponent: f64,
    /// Added to the rank: flattens the top.
    pub(super) shift: f64,
    /// Rank beyond which the second power holds; 0 for none.
    pub(super) break_rank: f64,
    /// Power beyond the break.
    pub(super) tail_exponent: f64,
    /// Rank at which the exponential factor has fallen to 1/e; 0 for none.
    pub(super) stretch_rank: f64,
    /// Power of the rank in the exponential factor.
    pub(super) stretch: f64,
}

impl Popularity {
    /// Weights of ranks 1 to `targets`; they never rise.
    pub(super) fn weights(&self, targets: u32) -> Vec<f64> {
        (1..=targets).map(|rank| self.weight(f64::from(rank))).collect()
    }

    fn weight(&self, rank: f64) -> f64 {
        let bent = self.break_rank > 0.0 && rank > self.break_rank;
        let mut logarithm = if bent {
            let at_break = libm::log(self.break_rank + self.shift);
            let beyond = libm::log(rank + self.shift) - at_break;
            -self.exponent * at_break - self.tail_exponent * beyond
        } else {
            -self.exponent * libm::log(rank + self.shift)
        };
        if self.stretch_rank > 0.0 {
            logarithm -= libm::pow(rank / self.stretch_rank, self.stretch);
        }
        libm::exp(logarithm)
    }
}

/// Divides `requests` among targets in proportion to their weights, in whole numbers and at least
/// one each. `weights` must not rise, be positive at the front, and be no more than `requests`.
///
/// Targets whose proportional share is below one get one request; the others share the rest by
/// largest remainder, among equal remainders the more popular first.
pub(super) fn apportion_at_least_one(weights: &[f64], requests: u64) -> Vec<u64> {
    let mut sum: f64 = weights.iter().sum();
    let mut shared = weights.len();
    let mut rest = requests;
    // Weights fall, so the targets that need the guarantee stand at the end.
    while shared > 1 && weights[shared - 1] * (rest as f64 / sum) < 1.0 {
        sum -= weights[shared - 1];
        shared -= 1;
        rest -= 1;
    }
    let mut counts = apportion(&weights[..shared], rest);
    for count in &mut counts {
        *count = (*count).max(1);
    }
    // Rounding of the running sum may leave a difference of a few requests: the top takes it.
    let given: u64 = counts.iter().sum();
    counts[0] = (counts[0] + rest).saturating_sub(given).max(1);
    counts.resize(weights.len(), 1);
    counts
}

/// Divides `total` in proportion to `weights` by largest remainder, ties to the lower index.
pub(super) fn apportion(weights: &[f64], total: u64) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|weight| weight * (total as f64 / sum)).collect();
    let mut counts: Vec<u64> = exact.iter().map(|share| share.floor() as u64).collect();
    let given: u64 = counts.iter().sum();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let left = total.saturating_sub(given);
    for &index in order.iter().cycle().take(left as usize) {
        counts[index] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZIPF: Popularity = Popularity {
        exponent: 1.0,
        shift: 0.0,
        break_rank: 0.0,
        tail_exponent: 0.0,
        stretch_rank: 0.0,
        stretch: 0.0,
    };

    #[test]
    fn families_follow_their_formulas() {
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
        close(ZIPF.weights(10)[9], 0.1);
        let shifted = Popularity { shift: 3.0, exponent: 2.0, ..ZIPF };
        close(shifted.weights(2)[1], 1.0 / 25.0);
        let bent = Popularity { break_rank: 10.0, tail_exponent: 2.0, ..ZIPF };
        close(bent.weights(10)[9], 0.1);
        close(bent.weights(20)[19], 0.1 / 4.0);
        let stretched = Popularity { exponent: 0.0, stretch_rank: 4.0, stretch: 0.5, ..ZIPF };
        close(stretched.weights(16)[15], (-2.0_f64).exp());
    }

    #[test]
    fn largest_remainders_win() {
        // Exact shares 4.9, 3.5, 1.6: the floors leave two, for 0.9 and 0.6.
        assert_eq!(apportion(&[4.9, 3.5, 1.6], 10), [5, 3, 2]);
        assert_eq!(apportion(&[1.0, 1.0, 1.0], 4), [2, 1, 1]);
        assert_eq!(apportion(&[2.0, 0.0], 3), [3, 0]);
    }

    #[test]
    fn everyone_gets_one_and_the_total_is_exact() {
        let weights = ZIPF.weights(5_000);
        for requests in [5_000, 5_001, 7_777, 20_000, 1_000_003] {
            let counts = apportion_at_least_one(&weights, requests);
            assert_eq!(counts.iter().sum::<u64>(), requests);
            assert!(counts.iter().all(|&count| count >= 1));
            assert!(counts.is_sorted_by(|a, b| a >= b), "popularity must fall with rank");
        }
    }
}
