//! Random times of a given mean and spread: between arrivals, and for service.

use rand_core::Rng;

/// The shape of a distribution of times above 0; `cv` is the coefficient of variation, standard deviation over mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimeShape {
    /// Always the mean.
    Deterministic,
    /// Exponential, whose coefficient of variation is 1.
    Exponential,
    /// Gamma.
    Gamma {
        /// Coefficient of variation.
        cv: f64,
    },
    /// Lognormal.
    Lognormal {
        /// Coefficient of variation.
        cv: f64,
    },
    /// Pareto (type I).
    Pareto {
        /// Coefficient of variation.
        cv: f64,
    },
    /// Weibull.
    Weibull {
        /// Coefficient of variation.
        cv: f64,
    },
}

impl TimeShape {
    /// The least coefficient of variation that can be drawn; below it nothing tells times from equal ones.
    pub const LEAST_CV: f64 = 0.001;
    /// The largest.
    pub const MOST_CV: f64 = 100.0;
}

/// A distribution of times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeDistribution {
    /// Mean in nanoseconds, above 0.
    pub mean_ns: f64,
    /// TimeShape.
    pub shape: TimeShape,
}

/// Draws times from a distribution, the same ones on every machine for equal seeds.
#[derive(Debug, Clone)]
pub struct TimeDraws<R> {
    law: Law,
    normals: Normals<R>,
}

/// A shape with its constants.
#[derive(Debug, Clone, Copy)]
enum Law {
    Constant(f64),
    Exponential {
        mean_ns: f64,
    },
    /// Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 2000.
    Gamma {
        d: f64,
        c: f64,
        scale_ns: f64,
        boost: Option<f64>,
    },
    Lognormal {
        mu: f64,
        sigma: f64,
    },
    /// Both by inversion: `scale · t^exponent` of an exponential time `t`, or of its own exponential.
    Weibull {
        scale_ns: f64,
        exponent: f64,
    },
    Pareto {
        scale_ns: f64,
        exponent: f64,
    },
}

impl<R: Rng> TimeDraws<R> {
    /// Draws from `distribution` with this generator.
    #[must_use]
    pub fn new(distribution: TimeDistribution, rng: R) -> Self {
        Self { law: Law::of(distribution), normals: Normals::new(rng) }
    }

    /// Draws a time, rounded to the nanosecond.
    #[inline]
    pub fn draw_ns(&mut self) -> u64 {
        // Adding a half and truncating rounds; a call to `round` is not inlined.
        (self.exact_ns() + 0.5) as u64
    }

    #[inline]
    fn exact_ns(&mut self) -> f64 {
        match self.law {
            Law::Constant(ns) => ns,
            Law::Exponential { mean_ns } => mean_ns * exponential(&mut self.normals.rng),
            Law::Gamma { d, c, scale_ns, boost } => {
                let boosted = boost.map_or(1.0, |power| libm::pow(1.0 - unit(&mut self.normals.rng), power));
                scale_ns * boosted * self.gamma(d, c)
            }
            Law::Lognormal { mu, sigma } => libm::exp(mu + sigma * self.normals.draw()),
            Law::Weibull { scale_ns, exponent } => {
                scale_ns * libm::pow(exponential(&mut self.normals.rng), exponent)
            }
            Law::Pareto { scale_ns, exponent } => {
                scale_ns * libm::exp(exponent * exponential(&mut self.normals.rng))
            }
        }
    }

    fn gamma(&mut self, d: f64, c: f64) -> f64 {
        loop {
            let x = self.normals.draw();
            let v = 1.0 + c * x;
            if v > 0.0 {
                let v = v * v * v;
                let u = 1.0 - unit(&mut self.normals.rng);
                if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                    return d * v;
                }
            }
        }
    }
}

impl Law {
    /// Times with less variation than [`TimeShape::LEAST_CV`] are equal; those with more than [`TimeShape::MOST_CV`] have that.
    fn of(TimeDistribution { mean_ns, shape }: TimeDistribution) -> Self {
        match shape {
            TimeShape::Deterministic => Self::Constant(mean_ns),
            TimeShape::Exponential => Self::Exponential { mean_ns },
            TimeShape::Gamma { cv }
            | TimeShape::Lognormal { cv }
            | TimeShape::Pareto { cv }
            | TimeShape::Weibull { cv }
                if cv.is_nan() || cv < TimeShape::LEAST_CV =>
            {
                Self::Constant(mean_ns)
            }
            TimeShape::Gamma { cv } => {
                let cv = cv.min(TimeShape::MOST_CV);
                let k = 1.0 / (cv * cv);
                let (k, boost) = if k < 1.0 { (k + 1.0, Some(1.0 / k)) } else { (k, None) };
                let d = k - 1.0 / 3.0;
                Self::Gamma { d, c: 1.0 / (9.0 * d).sqrt(), scale_ns: mean_ns * cv * cv, boost }
            }
            TimeShape::Lognormal { cv } => {
                let cv = cv.min(TimeShape::MOST_CV);
                let variance = libm::log(1.0 + cv * cv);
                Self::Lognormal { mu: libm::log(mean_ns) - variance / 2.0, sigma: variance.sqrt() }
            }
            TimeShape::Pareto { cv } => {
                let cv = cv.min(TimeShape::MOST_CV);
                let a = 1.0 + (1.0 + 1.0 / (cv * cv)).sqrt();
                Self::Pareto { scale_ns: mean_ns * (a - 1.0) / a, exponent: 1.0 / a }
            }
            TimeShape::Weibull { cv } => {
                let exponent = weibull_exponent(cv.min(TimeShape::MOST_CV));
                Self::Weibull { scale_ns: mean_ns / libm::tgamma(1.0 + exponent), exponent }
            }
        }
    }
}

/// The reciprocal of the shape of a Weibull distribution with this coefficient of variation, which grows with it.
fn weibull_exponent(cv: f64) -> f64 {
    let log_square = |x: f64| libm::lgamma(1.0 + 2.0 * x) - 2.0 * libm::lgamma(1.0 + x);
    let wanted = libm::log(1.0 + cv * cv);
    let (mut low, mut high) = (0.0, 64.0);
    // Halved until the numbers are neighbours.
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if log_square(middle) < wanted { low = middle } else { high = middle }
    }
    high
}

/// Uniform over [0, 1), in steps of 2⁻⁵³.
#[inline]
fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Exponential with mean 1, by inversion.
#[inline]
fn exponential(rng: &mut impl Rng) -> f64 {
    -libm::log(1.0 - unit(rng))
}

/// Standard normal numbers, by Marsaglia's polar method.
#[derive(Debug, Clone)]
pub struct Normals<R> {
    /// What they are drawn from; other draws may come between theirs.
    pub rng: R,
    /// The second one of the last pair drawn.
    spare: Option<f64>,
}

impl<R: Rng> Normals<R> {
    /// Draws from `rng`.
    #[must_use]
    pub fn new(rng: R) -> Self {
        Self { rng, spare: None }
    }

    /// The next one.
    pub fn draw(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * unit(&mut self.rng) - 1.0, 2.0 * unit(&mut self.rng) - 1.0);
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
    use crate::random::{Purpose, stream};

    const DRAWS: usize = 400_000;

    fn draw(shape: TimeShape) -> Vec<f64> {
        let mut times =
            TimeDraws::new(TimeDistribution { mean_ns: 2.22e7, shape }, stream(5, Purpose::Service));
        (0..DRAWS).map(|_| times.draw_ns() as f64).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn mean_and_variation_are_as_asked() {
        let shapes = [
            TimeShape::Exponential,
            TimeShape::Gamma { cv: 0.45 },
            TimeShape::Gamma { cv: 2.0 },
            TimeShape::Lognormal { cv: 0.45 },
            TimeShape::Weibull { cv: 0.3 },
            TimeShape::Weibull { cv: 1.5 },
            TimeShape::Pareto { cv: 0.2 },
        ];
        for shape in shapes {
            let cv = match shape {
                TimeShape::Deterministic => 0.0,
                TimeShape::Exponential => 1.0,
                TimeShape::Gamma { cv }
                | TimeShape::Lognormal { cv }
                | TimeShape::Pareto { cv }
                | TimeShape::Weibull { cv } => cv,
            };
            let times = draw(shape);
            let m = mean(&times);
            assert!((m / 2.22e7 - 1.0).abs() < 5.0 * cv / (DRAWS as f64).sqrt(), "{shape:?}: mean {m}");
            let squares: Vec<f64> = times.iter().map(|t| (t / 2.22e7 - 1.0).powi(2)).collect();
            let variance = mean(&squares);
            let spread =
                (mean(&squares.iter().map(|s| s * s).collect::<Vec<_>>()) - variance * variance).sqrt();
            let error = 5.0 * spread / (DRAWS as f64).sqrt();
            assert!((variance - cv * cv).abs() < error, "{shape:?}: variance {variance} ± {error}");
        }
        assert_eq!(draw(TimeShape::Deterministic)[..2], [2.22e7, 2.22e7]);
    }

    #[test]
    fn every_variation_can_be_drawn() {
        let shapes = |cv| {
            [
                TimeShape::Gamma { cv },
                TimeShape::Lognormal { cv },
                TimeShape::Pareto { cv },
                TimeShape::Weibull { cv },
            ]
        };
        for shape in [0.0, 1e-200, 1e-9, f64::NAN, -1.0].into_iter().flat_map(shapes) {
            let mut times =
                TimeDraws::new(TimeDistribution { mean_ns: 2.22e7, shape }, stream(5, Purpose::Service));
            assert_eq!([times.draw_ns(), times.draw_ns()], [22_200_000; 2], "{shape:?}");
        }
        for shape in shapes(TimeShape::LEAST_CV) {
            let mut times =
                TimeDraws::new(TimeDistribution { mean_ns: 2.22e7, shape }, stream(5, Purpose::Service));
            let drawn: Vec<u64> = (0..10_000).map(|_| times.draw_ns()).collect();
            assert!(drawn.iter().all(|ns| ns.abs_diff(22_200_000) < 300_000), "{shape:?}");
            let first = drawn[0];
            assert!(drawn.iter().any(|ns| *ns != first), "{shape:?}");
        }
        for shape in [1e3, 1e200, f64::INFINITY].into_iter().flat_map(shapes) {
            let mut times =
                TimeDraws::new(TimeDistribution { mean_ns: 2.22e7, shape }, stream(5, Purpose::Service));
            assert!((0..10_000).map(|_| times.draw_ns()).any(|ns| ns > 22_200_000), "{shape:?}");
        }
    }

    /// Quantiles that have a closed form.
    #[test]
    fn distributions_have_their_shape() {
        let median = |shape| {
            let mut times = draw(shape);
            times.sort_by(f64::total_cmp);
            times[DRAWS / 2] / 2.22e7
        };
        let near = |is: f64, expected: f64| (is / expected - 1.0).abs() < 0.01;
        assert!(near(median(TimeShape::Exponential), 2f64.ln()));
        assert!(near(median(TimeShape::Lognormal { cv: 1.0 }), 0.5f64.sqrt()));
        // With a coefficient of variation of 1 a Weibull distribution, like a gamma distribution, is the exponential one.
        assert!(near(median(TimeShape::Weibull { cv: 1.0 }), 2f64.ln()));
        assert!(near(median(TimeShape::Gamma { cv: 1.0 }), 2f64.ln()));
        let a = 1.0 + 2f64.sqrt();
        assert!(near(median(TimeShape::Pareto { cv: 1.0 }), (a - 1.0) / a * 2f64.powf(1.0 / a)));
    }
}
