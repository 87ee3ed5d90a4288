//! The one source of randomness: seeded, so that equal seeds give equal runs on every machine.

use std::convert::Infallible;

use rand_core::{Rng as _, SeedableRng as _, TryRng};
use rand_pcg::Pcg64Mcg;

/// A seeded generator (PCG XSL 128/64 MCG; O'Neill 2014). Each component derives its own stream from the run's seed.
#[derive(Debug, Clone)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// The generator of stream `stream` under `seed`: different streams of one seed are independent for our purposes.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(mix(seed ^ mix(stream.wrapping_add(0x9E37_79B9_7F4A_7C15)))))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`, exactly uniform (Lemire 2019: multiply, reject the short interval).
    ///
    /// # Panics
    /// When `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "below(0) has no answer");
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            let low = wide as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponentially distributed with mean 1, by inversion. The logarithm is `libm`'s own code: the system's may differ
    /// in the last digit from one machine to the next.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}

/// How many numbers [`Exponentials`] draws at a time.
const AHEAD: usize = 32;

/// The numbers that [`Rng::exponential`] of a generator returns, drawn some at a time: a logarithm takes long, but those of several
/// numbers overlap.
#[derive(Debug, Clone)]
pub struct Exponentials {
    rng: Rng,
    drawn: [f64; AHEAD],
    /// The place of the next one.
    next: usize,
}

impl Exponentials {
    /// Draws from `rng`.
    #[must_use]
    pub fn new(rng: Rng) -> Self {
        Self { rng, drawn: [0.0; AHEAD], next: AHEAD }
    }

    /// The next number, exponentially distributed with mean 1.
    #[inline]
    pub fn draw(&mut self) -> f64 {
        if self.next >= AHEAD {
            self.draw_ahead();
        }
        let drawn = self.drawn[self.next];
        self.next += 1;
        drawn
    }

    #[inline(never)]
    fn draw_ahead(&mut self) {
        let rng = &mut self.rng;
        self.drawn.fill_with(|| rng.exponential());
        self.next = 0;
    }
}

/// For distributions of other crates.
impl TryRng for Rng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(to);
        Ok(())
    }
}

/// A bijective mixer of 64 bits (the finalizer of `SplitMix64`): spreads structured keys before they are compared.
#[must_use]
#[inline]
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, stream| Rng::new(seed, stream).next_u64();
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
    }

    #[test]
    fn below_is_uniform() {
        // Chi-squared with 6 degrees of freedom: 22.5 is the 99.9 % point.
        let mut rng = Rng::new(7, 0);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[rng.below(7) as usize] += 1;
        }
        let chi2: f64 = seen.iter().map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 22.5, "chi-squared {chi2}");
    }

    #[test]
    fn exponentials_are_those_of_the_generator() {
        let mut rng = Rng::new(5, 1);
        let mut ahead = Exponentials::new(rng.clone());
        for _ in 0..3 * AHEAD + 1 {
            assert_eq!(ahead.draw().to_bits(), rng.exponential().to_bits());
        }
    }

    #[test]
    fn exponential_has_mean_one() {
        let mut rng = Rng::new(3, 0);
        let mean = (0..200_000).map(|_| rng.exponential()).sum::<f64>() / 200_000.0;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}"); // 4.5 standard errors
    }
}
