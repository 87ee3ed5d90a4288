//! Random numbers that are the same on every platform: PCG streams and the few distributions the
//! generators need, on the arithmetic of `libm` instead of the platform's mathematical library.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// What a stream of random numbers is used for. Each purpose has its own stream, so that a change
/// in one step of the construction leaves the draws of the others alone.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// Which number a target of a given popularity bears.
    Numbering = 1,
    /// The sizes of the targets.
    Sizes = 2,
    /// Which size goes with which popularity.
    Pairing = 3,
    /// The windows of the trace in which targets are requested.
    Windows = 4,
    /// The places of the requests within the trace.
    Places = 5,
    /// The times of the requests.
    Times = 6,
    /// The service times of the requests.
    Service = 7,
    /// The clients of the requests.
    Clients = 8,
    /// What the requests are answered.
    Answers = 9,
}

/// The stream of random numbers for one purpose under one seed.
pub(super) fn stream(seed: u64, purpose: Purpose) -> Pcg64 {
    // An odd multiplier with well mixed bits keeps the states of nearby seeds and purposes apart.
    let offset = (purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Pcg64::seed_from_u64(seed.wrapping_add(offset))
}

/// Uniform over (0, 1], in steps of 2⁻⁵³; never 0, so that its logarithm is finite.
pub(super) fn uniform(rng: &mut Pcg64) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Exponential with mean 1.
pub(super) fn exponential(rng: &mut Pcg64) -> f64 {
    -libm::log(uniform(rng))
}

/// Share of the way to the end of an interval at which the first of `remaining` independent
/// uniform points lies: 1 − U^(1/remaining), the smallest order statistic.
pub(super) fn first_of(remaining: u64, rng: &mut Pcg64) -> f64 {
    -libm::expm1(-exponential(rng) / remaining as f64)
}

/// `count` independent standard normal numbers (polar method of Marsaglia).
pub(super) fn normals(count: usize, rng: &mut Pcg64) -> Vec<f64> {
    let mut drawn = Vec::with_capacity(count + 1);
    while drawn.len() < count {
        let (x, y) = (2.0 * uniform(rng) - 1.0, 2.0 * uniform(rng) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            let factor = (-2.0 * libm::log(square) / square).sqrt();
            drawn.push(x * factor);
            drawn.push(y * factor);
        }
    }
    drawn.truncate(count);
    drawn
}

/// A random permutation of the numbers below `count` (Fisher and Yates).
pub(super) fn permutation(count: u32, rng: &mut Pcg64) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    for last in (1..numbers.len()).rev() {
        // The high half of the product is uniform up to a bias below 2⁻³².
        let other = (u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64;
        numbers.swap(last, other as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut rng = stream(1, Purpose::Sizes);
        let count = 200_000;
        let normal = normals(count, &mut rng);
        let mean = normal.iter().sum::<f64>() / count as f64;
        let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        let mean = (0..count).map(|_| exponential(&mut rng)).sum::<f64>() / count as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        // The smallest of four uniform points lies at 1/5 on average.
        let mean = (0..count).map(|_| first_of(4, &mut rng)).sum::<f64>() / count as f64;
        assert!((mean - 0.2).abs() < 0.002, "{mean}");
    }

    #[test]
    fn permutation_holds_every_number_once() {
        let mut numbers = permutation(1_000, &mut stream(7, Purpose::Numbering));
        assert_ne!(numbers, (0..1_000).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn streams_differ_by_seed_and_purpose() {
        let first = |seed, purpose| stream(seed, purpose).next_u64();
        assert_eq!(first(1, Purpose::Times), first(1, Purpose::Times));
        assert_ne!(first(1, Purpose::Times), first(2, Purpose::Times));
        assert_ne!(first(1, Purpose::Times), first(1, Purpose::Places));
    }
}
