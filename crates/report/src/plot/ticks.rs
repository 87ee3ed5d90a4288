//! Where an axis of the static drawing has its tick marks, and what they say.

use crate::{format, plot::Unit};

/// One axis: the range drawn and the labelled places, both in drawing coordinates (the decimal logarithm of the value
/// on a logarithmic axis).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) range: (f64, f64),
    pub(crate) ticks: Vec<(f64, String)>,
    log: bool,
}

impl Axis {
    /// An axis that shows at least `min..=max`, with round ends.
    pub(crate) fn around(min: f64, max: f64, log: bool, unit: Unit) -> Self {
        let ticks = if log { decades(min, max) } else { steps(min, max) };
        let place = |value: f64| if log { value.log10() } else { value };
        let range = match (ticks.first(), ticks.last()) {
            (Some(&first), Some(&last)) => (place(first), place(last)),
            _ => (place(min), place(max)),
        };
        let ticks = ticks
            .into_iter()
            .map(|value| (place(value), label(value, unit)))
            .collect();
        Self { range, ticks, log }
    }

    /// An axis with these names at these values.
    pub(crate) fn named(names: &[(f64, String)], margin: f64, log: bool) -> Self {
        let place = |value: f64| if log { value.log10() } else { value };
        let ticks: Vec<_> = names
            .iter()
            .map(|(value, name)| (place(*value), name.clone()))
            .collect();
        let first = ticks.first().map_or(0.0, |tick| tick.0);
        let last = ticks.last().map_or(1.0, |tick| tick.0);
        let room = if last > first {
            (last - first) * margin
        } else {
            0.5
        };
        Self {
            range: (first - room, last + room),
            ticks,
            log,
        }
    }

    /// Where a value stands.
    pub(crate) fn place(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }
}

fn label(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Plain => format::number(value),
        Unit::Percent => format!("{} %", format::number(value)),
        Unit::Seconds => format::duration(value),
    }
}

/// Multiples of 1, 2 or 5 times a power of ten around `min..=max`, four to eight of them.
fn steps(min: f64, max: f64) -> Vec<f64> {
    let span = if max > min { max - min } else { max.abs().max(1.0) };
    let rough = span / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|&step| step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (min / step).floor() as i64;
    // At least one step, and no step lost to rounding when the maximum is a multiple.
    let last = ((max / step - 1e-9).ceil() as i64).max(first + 1);
    // Through an integer division of powers of ten, 3 × 0.1 is 0.3 and not 0.30000000000000004.
    (first..=last)
        .map(|index| (index as f64 * step / power).round() * power)
        .map(tidy)
        .collect()
}

/// Rounds away the last bits, so that labels show no rounding error.
fn tidy(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

/// 1, 2 and 5 times powers of ten around `min..=max`, or the powers alone when there are more than three of them.
fn decades(min: f64, max: f64) -> Vec<f64> {
    let first = min.log10().floor() as i32;
    let last = max.log10().ceil() as i32;
    let factors: &[f64] = if last - first > 3 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let all: Vec<f64> = (first..=last)
        .flat_map(|power| factors.iter().map(move |factor| tidy(factor * 10f64.powi(power))))
        .collect();
    let from = all.iter().rposition(|&value| value <= min).unwrap_or(0);
    let to = all
        .iter()
        .position(|&value| value >= max)
        .unwrap_or(all.len() - 1)
        .max(from + 1)
        .min(all.len() - 1);
    all[from..=to].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_steps_are_round_and_cover() {
        assert_eq!(steps(0.0, 3847.0), [0.0, 1000.0, 2000.0, 3000.0, 4000.0]);
        assert_eq!(steps(0.0, 0.3), [0.0, 0.1, 0.2, 0.3]);
        assert_eq!(steps(0.0, 0.0), [0.0, 0.2]);
        assert_eq!(steps(5.0, 5.0), [5.0, 6.0]);
        assert_eq!(steps(-3.0, 4.0), [-4.0, -2.0, 0.0, 2.0, 4.0]);
    }

    #[test]
    fn decades_cover() {
        assert_eq!(decades(0.03, 0.4), [0.02, 0.05, 0.1, 0.2, 0.5]);
        assert_eq!(decades(1.0, 1.0), [1.0, 2.0]);
        assert_eq!(decades(1.0, 1e5), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
    }

    #[test]
    fn labels_have_units() {
        let axis = Axis::around(0.000_5, 0.9, true, Unit::Seconds);
        assert_eq!(axis.label_at(-3.0), "1 ms");
        assert_eq!(axis.label_at(-2.5), "");
        assert_eq!(
            Axis::around(0.0, 50.0, false, Unit::Percent).label_at(20.0),
            "20 %"
        );
    }
}
