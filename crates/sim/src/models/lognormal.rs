//! Lognormal times from a seeded stream, the same on every machine.

use plimsoll_policy::{Nanos, Rng};

/// Draws lognormal times.
#[derive(Debug)]
pub(super) struct Lognormal {
    /// Mean and standard deviation of the logarithm of the time in ns.
    mu: f64,
    sigma: f64,
    rng: Rng,
    /// The second normal number of the last pair drawn.
    spare: Option<f64>,
}

impl Lognormal {
    /// With this mean and coefficient of variation.
    pub(super) fn new(mean_ns: f64, variation: f64, rng: Rng) -> Self {
        let variance = libm::log(1.0 + variation * variation);
        Self { mu: libm::log(mean_ns) - variance / 2.0, sigma: variance.sqrt(), rng, spare: None }
    }

    /// Draws a time, rounded to the nanosecond.
    pub(super) fn draw(&mut self) -> Nanos {
        let normal = self.normal();
        Nanos::new((libm::exp(self.mu + self.sigma * normal) + 0.5) as u64)
    }

    /// A normal number, by Marsaglia's polar method.
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.rng.unit() - 1.0, 2.0 * self.rng.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * libm::log(square) / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variation_are_as_asked() {
        let mut times = Lognormal::new(3.25e6, 3.4, Rng::new(5, 5));
        // Logarithms are normal: their mean and deviation show mean and C.V. with little noise.
        let logs: Vec<f64> = (0..400_000).map(|_| libm::log(times.draw().as_nanos() as f64)).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / logs.len() as f64;
        // Five standard errors: 1.59 and 3.6 over the root of 400,000.
        let cv = (variance.exp() - 1.0).sqrt();
        assert!(((mean + variance / 2.0).exp() / 3.25e6 - 1.0).abs() < 0.025, "{mean} {variance}");
        assert!(
            (variance - (1.0f64 + 3.4 * 3.4).ln()).abs() < 5.0 * variance * (2.0f64 / 4e5).sqrt(),
            "C.V. {cv}"
        );
    }
}
