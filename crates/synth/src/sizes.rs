//! The sizes of the targets: drawn, paired with popularity, and fitted to the published bytes.

use super::random::normals;
use crate::coverage::covering_targets;
use rand_pcg::Pcg64;

/// A smaller document than this is not given to any target: below it lies hardly more than the
/// white space of a page.
const SMALLEST_BYTES: f64 = 32.0;

/// Distribution of sizes over targets: a lognormal body with a Pareto tail, up to a cap. Its scale
/// follows from the mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizeLaw {
    /// Standard deviation of the logarithm in the body.
    pub(super) sigma: f64,
    /// Share of the targets that belong to the tail; 0 for a purely lognormal law.
    pub(super) tail_share: f64,
    /// Pareto exponent of the tail.
    pub(super) tail_exponent: f64,
    /// Largest size in bytes.
    pub(super) max_bytes: f64,
}

impl SizeLaw {
    /// Draws relative sizes (the median of the body is 1, no cap yet), smallest first.
    pub(super) fn draw_relative(&self, count: usize, rng: &mut Pcg64) -> Vec<f64> {
        let mut sizes: Vec<f64> =
            normals(count, rng).iter().map(|normal| libm::exp(self.sigma * normal)).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let tail = ((count as f64 * self.tail_share) as usize).min(count);
        if tail == 0 {
            return sizes;
        }
        let threshold = sizes[count - tail];
        for (place, size) in sizes[count - tail..].iter_mut().enumerate() {
            // Mid-point of the place's probability: the quantile needs no further random number.
            let above = (tail as f64 - place as f64 - 0.5) / tail as f64;
            *size = threshold * libm::pow(above, -1.0 / self.tail_exponent);
        }
        sizes
    }

    /// Draws `count` sizes in bytes that sum to `total_bytes` (as far as `max_bytes` permits),
    /// smallest first.
    pub(super) fn draw(&self, count: usize, total_bytes: f64, rng: &mut Pcg64) -> Vec<f64> {
        let relative = self.draw_relative(count, rng);
        let sum_at =
            |scale: f64| -> f64 { relative.iter().map(|size| (size * scale).min(self.max_bytes)).sum() };
        let (mut low, mut high) = (0.0, self.max_bytes / relative[0]);
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if sum_at(middle) < total_bytes {
                low = middle;
            } else {
                high = middle;
            }
        }
        relative.iter().map(|size| (size * high).min(self.max_bytes)).collect()
    }
}

/// A Gaussian copula between popularity and size.
///
/// Each rank has a normal score, low for the popular, and independent normal noise. Their mixture
/// with a given correlation is a second score, which decides the place in the order of sizes that
/// the rank gets. A positive correlation makes popular targets small. Drawn once, it can be asked
/// for several correlations, between which the order changes gradually.
#[derive(Debug)]
pub(super) struct Copula {
    scores: Vec<f64>,
    noise: Vec<f64>,
}

impl Copula {
    /// Draws scores and noise for `count` ranks.
    pub(super) fn draw(count: usize, rng: &mut Pcg64) -> Self {
        let mut scores = normals(count, rng);
        scores.sort_unstable_by(f64::total_cmp);
        Self { scores, noise: normals(count, rng) }
    }

    /// The ranks (from 0) in the order of the sizes they get, smallest first. The ranks of the
    /// first `flat_share` of the targets all have the score of the last of them: among those,
    /// popularity says nothing of size.
    pub(super) fn order(&self, correlation: f64, flat_share: f64) -> Vec<usize> {
        let count = self.scores.len();
        let flat = ((count as f64 * flat_share) as usize).min(count.saturating_sub(1));
        let independent = (1.0 - correlation * correlation).sqrt();
        let mixed: Vec<f64> = (0..count)
            .map(|rank| correlation * self.scores[rank.max(flat)] + independent * self.noise[rank])
            .collect();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_unstable_by(|&a, &b| mixed[a].total_cmp(&mixed[b]).then(a.cmp(&b)));
        order
    }

    /// Gives each rank one of the sizes, which must stand in rising order.
    pub(super) fn pair(&self, ascending: &[f64], correlation: f64, flat_share: f64) -> Vec<f64> {
        let mut by_rank = vec![0.0; ascending.len()];
        for (size, rank) in ascending.iter().zip(self.order(correlation, flat_share)) {
            by_rank[rank] = *size;
        }
        by_rank
    }
}

/// A point of the published coverage curve: `bytes` hold the targets that cover `share` of the
/// requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct CoveragePoint {
    /// Share of all requests, 1 for the whole data set.
    pub(super) share: f64,
    /// Memory in bytes.
    pub(super) bytes: f64,
}

/// Fits sizes to points of the coverage curve, which must rise and end with share 1.
///
/// Between two neighbouring points lies a band of targets; all sizes of a band are multiplied by
/// one factor, so that the band has the bytes that the points leave to it. `order` holds the
/// targets by falling number of requests. Sizes become whole bytes with the remainder carried to
/// the next target, so each band is exact to a byte. A band without targets passes its bytes to
/// the next. Returns the factors: near 1 where the drawn sizes already met the published bytes.
pub(super) fn fit_coverage(
    sizes: &mut [f64],
    counts: &[u64],
    order: &[usize],
    points: &[CoveragePoint],
) -> Vec<f64> {
    let mut factors = Vec::with_capacity(points.len());
    let (mut from, mut bytes_before) = (0, 0.0);
    for point in points {
        let to = if point.share >= 1.0 { order.len() } else { covering_targets(counts, order, point.share) };
        let band = &order[from..to.max(from)];
        if band.is_empty() {
            continue;
        }
        let drawn: f64 = band.iter().map(|&target| sizes[target]).sum();
        let factor = (point.bytes - bytes_before) / drawn;
        for &target in band {
            sizes[target] *= factor;
        }
        round_with_carry(sizes, band);
        factors.push(factor);
        (from, bytes_before) = (to, point.bytes);
    }
    factors
}

/// Makes the sizes of the `chosen` targets whole, at least the smallest allowed, and keeps their
/// sum to within half a byte.
pub(super) fn round_with_carry(sizes: &mut [f64], chosen: &[usize]) {
    let mut carry = 0.0;
    for &target in chosen {
        let wanted = sizes[target] + carry;
        sizes[target] = wanted.round().max(SMALLEST_BYTES);
        carry = wanted - sizes[target];
    }
}

/// Halvings of an interval of correlations: far finer than the pairing can follow.
const BISECTIONS: u32 = 30;

/// The correlation at which `too_low` turns from true to false, or the nearest end of the range.
pub(super) fn bisect(too_low: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (-0.99, 0.99);
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        if too_low(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::super::random::{Purpose, stream};
    use super::*;
    use crate::coverage::{by_falling_count, coverage_bytes};

    const LAW: SizeLaw = SizeLaw { sigma: 1.5, tail_share: 0.07, tail_exponent: 1.3, max_bytes: 2e6 };

    #[test]
    fn drawn_sizes_have_the_total_and_the_cap() {
        let sizes = LAW.draw(20_000, 20_000.0 * 38_000.0, &mut stream(1, Purpose::Sizes));
        let total: f64 = sizes.iter().sum();
        assert!((total / (20_000.0 * 38_000.0) - 1.0).abs() < 1e-9, "{total}");
        assert!(sizes.is_sorted());
        assert!(sizes[19_999] <= 2e6);
        // The Pareto tail: far from the cap, doubling the size divides the number by 2^1.3.
        let above = |bytes: f64| sizes.iter().filter(|&&size| size > bytes).count() as f64;
        let threshold = sizes[20_000 - 1_400];
        let ratio = above(2.0 * threshold) / above(4.0 * threshold);
        assert!((ratio / 2_f64.powf(1.3) - 1.0).abs() < 0.03, "{ratio}");
    }

    #[test]
    fn correlation_makes_popular_targets_small() {
        let ascending: Vec<f64> = (0..10_000).map(f64::from).collect();
        let top_mean = |correlation, flat| {
            let copula = Copula::draw(10_000, &mut stream(3, Purpose::Pairing));
            let paired = copula.pair(&ascending, correlation, flat);
            let mut sorted = paired.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            assert_eq!(sorted, ascending, "every size is given once");
            paired[..100].iter().sum::<f64>() / 100.0
        };
        let (independent, weak, strong) = (top_mean(0.0, 0.0), top_mean(0.4, 0.0), top_mean(0.9, 0.0));
        assert!((independent - 5_000.0).abs() < 900.0, "{independent}");
        assert!(weak < independent - 1_000.0 && strong < weak - 1_000.0);
        assert!(top_mean(0.9, 0.5) > strong + 1_000.0, "flat ranks lose the correlation");
    }

    #[test]
    fn bands_become_exact() {
        let counts: Vec<u64> = (1..=1_000).map(|rank| 100_000 / rank).collect();
        let order = by_falling_count(&counts);
        let mut rng = stream(5, Purpose::Sizes);
        let drawn = LAW.draw(1_000, 3.0e7, &mut rng);
        let mut sizes = Copula::draw(1_000, &mut rng).pair(&drawn, 0.3, 0.0);
        let point = |share, bytes| CoveragePoint { share, bytes };
        let points = [point(0.9, 1.1e7), point(0.97, 1.9e7), point(1.0, 3.0e7)];
        let factors = fit_coverage(&mut sizes, &counts, &order, &points);
        assert_eq!(factors.len(), 3);
        let whole: Vec<u64> = sizes.iter().map(|&size| size as u64).collect();
        assert_eq!(coverage_bytes(&counts, &whole, &[0.9, 0.97, 1.0]), [11_000_000, 19_000_000, 30_000_000]);
    }

    #[test]
    fn empty_band_passes_its_bytes_on() {
        let (counts, order) = ([98, 1, 1], [0, 1, 2]);
        let mut sizes = [100.0, 100.0, 100.0];
        let point = |share, bytes| CoveragePoint { share, bytes };
        let points = [point(0.5, 400.0), point(0.98, 600.0), point(1.0, 1_000.0)];
        assert_eq!(fit_coverage(&mut sizes, &counts, &order, &points), [4.0, 3.0]);
        assert_eq!(sizes, [400.0, 300.0, 300.0]);
    }
}
