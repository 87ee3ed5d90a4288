//! The delays of frames.

use crate::conditions::LinkDelay;
use crate::emulator::chance::Chance;

/// Draws delays from a distribution.
#[derive(Debug)]
pub(crate) struct DelaySource {
    chance: Chance,
    law: DelayLaw,
}

/// The distribution, in nanoseconds.
#[derive(Debug, Clone, Copy)]
enum DelayLaw {
    Fixed(u64),
    Uniform {
        least_ns: f64,
        width_ns: f64,
    },
    Pareto {
        least_ns: f64,
        shape: f64,
        /// The share of an unbounded distribution below the longest delay.
        below_longest: f64,
    },
}

impl DelaySource {
    pub(crate) fn new(delay: Option<LinkDelay>, chance: Chance) -> Self {
        Self { chance, law: law(delay) }
    }

    /// Follows another distribution from now on.
    pub(crate) fn set(&mut self, delay: Option<LinkDelay>) {
        self.law = law(delay);
    }

    /// The delay of the next frame.
    pub(crate) fn draw_ns(&mut self) -> u64 {
        match self.law {
            DelayLaw::Fixed(delay_ns) => delay_ns,
            DelayLaw::Uniform { least_ns, width_ns } => {
                (least_ns + width_ns * self.chance.unit()).round() as u64
            }
            DelayLaw::Pareto { least_ns, shape, below_longest } => {
                let above = 1.0 - below_longest * self.chance.unit();
                (least_ns / above.powf(1.0 / shape)).round() as u64
            }
        }
    }
}

fn law(delay: Option<LinkDelay>) -> DelayLaw {
    let ns = |time: std::time::Duration| time.as_nanos() as f64;
    match delay {
        None => DelayLaw::Fixed(0),
        // At most a minute.
        Some(LinkDelay::Fixed(delay)) => DelayLaw::Fixed(ns(delay) as u64),
        Some(LinkDelay::Uniform { mean, jitter }) => {
            DelayLaw::Uniform { least_ns: ns(mean) - ns(jitter), width_ns: 2.0 * ns(jitter) }
        }
        Some(LinkDelay::Pareto { mean, shape, longest }) => {
            let least_ns = least_of(ns(mean), shape, ns(longest));
            DelayLaw::Pareto { least_ns, shape, below_longest: below(least_ns, shape, ns(longest)) }
        }
    }
}

/// The least value for which the truncated Pareto distribution has this mean, by bisection: the mean grows with it.
fn least_of(mean: f64, shape: f64, longest: f64) -> f64 {
    let (mut low, mut high) = (0.0, mean);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if truncated_mean(middle, shape, longest) < mean {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The share of a Pareto distribution with this least value that is below `longest`.
fn below(least: f64, shape: f64, longest: f64) -> f64 {
    1.0 - (least / longest).powf(shape)
}

fn truncated_mean(least: f64, shape: f64, longest: f64) -> f64 {
    let ratio = (least / longest).powf(shape - 1.0);
    shape / (shape - 1.0) * least * (1.0 - ratio) / below(least, shape, longest)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const DRAWS: usize = 1_000_000;

    fn draws(delay: LinkDelay) -> Vec<u64> {
        let mut source = DelaySource::new(Some(delay), Chance::new(7, 0));
        let mut all: Vec<u64> = std::iter::repeat_with(|| source.draw_ns()).take(DRAWS).collect();
        all.sort_unstable();
        all
    }

    fn mean_ms(all: &[u64]) -> f64 {
        all.iter().map(|ns| *ns as f64).sum::<f64>() / all.len() as f64 / 1e6
    }

    #[test]
    fn fixed_and_uniform() {
        assert!(draws(LinkDelay::Fixed(3 * MS)).iter().all(|ns| *ns == 3_000_000));
        let all = draws(LinkDelay::Uniform { mean: 10 * MS, jitter: 4 * MS });
        assert!(all[0] >= 6_000_000 && all[0] < 6_001_000 && *all.last().unwrap() <= 14_000_000);
        assert!((mean_ms(&all) - 10.0).abs() < 0.01, "{}", mean_ms(&all));
        // A quarter of them is below the first quartile.
        assert!((all[DRAWS / 4] as f64 / 8e6 - 1.0).abs() < 0.005, "{}", all[DRAWS / 4]);
        assert!(
            draws(LinkDelay::Uniform { mean: MS, jitter: Duration::ZERO }).iter().all(|ns| *ns == 1_000_000)
        );
    }

    #[test]
    fn pareto_has_its_mean_and_its_quantiles() {
        for (shape, longest) in [(1.2, 1000 * MS), (1.5, 200 * MS), (2.5, 300 * MS), (1.5, 11 * MS)] {
            let all = draws(LinkDelay::Pareto { mean: 10 * MS, shape, longest });
            let mean = mean_ms(&all);
            assert!((mean / 10.0 - 1.0).abs() < 0.02, "shape {shape}, longest {longest:?}: mean {mean} ms");
            let longest_ns = longest.as_nanos() as f64;
            assert!(*all.last().unwrap() as f64 <= longest_ns);
            let least = least_of(1e7, shape, longest_ns);
            assert!(all[0] as f64 >= least - 1.0);
            // The quantiles as the distribution function, solved for the delay, has them.
            for share in [0.1, 0.5, 0.9, 0.99, 0.999] {
                let expected = least / (1.0 - share * below(least, shape, longest_ns)).powf(1.0 / shape);
                let found = all[(share * DRAWS as f64) as usize] as f64;
                assert!(
                    (found / expected - 1.0).abs() < 0.06,
                    "shape {shape}, {share}: {found}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn a_far_bound_leaves_the_usual_least_value() {
        // Of an unbounded distribution: mean · (shape − 1) / shape.
        let least = least_of(1e7, 3.0, 6e10);
        assert!((least / (1e7 * 2.0 / 3.0) - 1.0).abs() < 1e-3, "{least}");
    }
}
