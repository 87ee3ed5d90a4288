//! Tick marks and labels of the axes of the static drawing.

use crate::{format, plot::AxisUnit};

/// One axis of the drawing, on which the shown range is mapped to 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// Places between 0 and 1, with their labels.
    pub(crate) ticks: Vec<(f64, String)>,
    /// The shown range, in decimal logarithms on a logarithmic axis.
    range: (f64, f64),
    log: bool,
}

impl Axis {
    /// An axis that shows exactly `min..=max`.
    pub(crate) fn exactly(min: f64, max: f64, log: bool, unit: AxisUnit) -> Self {
        if min < max {
            Self::labelled(min, max, values(min, max, log), log, unit)
        } else {
            Self::around(min, max, log, unit)
        }
    }

    /// An axis that shows at least `min..=max`, with round ends.
    pub(crate) fn around(min: f64, max: f64, log: bool, unit: AxisUnit) -> Self {
        let values = values(min, max, log);
        let first = values.first().copied().unwrap_or(min);
        let last = values.last().copied().unwrap_or(max);
        Self::labelled(first, last, values, log, unit)
    }

    /// An axis with these names at these values, and more room at both ends: this share of the range.
    pub(crate) fn named(names: &[(f64, String)], margin: f64, log: bool) -> Self {
        let first = names.first().map_or(0.0, |name| scaled(name.0, log));
        let last = names.last().map_or(0.0, |name| scaled(name.0, log));
        let room = if last > first { (last - first) * margin } else { 0.5 };
        let mut axis = Self { ticks: Vec::new(), range: (first - room, last + room), log };
        axis.ticks = names.iter().map(|(value, name)| (axis.place(*value), name.clone())).collect();
        axis
    }

    fn labelled(first: f64, last: f64, values: Vec<f64>, log: bool, unit: AxisUnit) -> Self {
        let mut axis = Self { ticks: Vec::new(), range: (scaled(first, log), scaled(last, log)), log };
        let shown = values.into_iter().filter(|value| (first..=last).contains(value));
        axis.ticks = shown.map(|value| (axis.place(value), label(value, unit))).collect();
        axis
    }

    /// The place of a value; values far outside the range are placed just outside it.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (first, last) = self.range;
        ((scaled(value, self.log) - first) / (last - first)).clamp(-0.1, 1.1)
    }

    /// The distance of two values that differ by one, on a linear axis.
    pub(crate) fn one(&self) -> f64 {
        1.0 / (self.range.1 - self.range.0)
    }
}

fn scaled(value: f64, log: bool) -> f64 {
    if log { value.log10() } else { value }
}

fn values(min: f64, max: f64, log: bool) -> Vec<f64> {
    if log { decades(min, max) } else { steps(min, max) }
}

pub(crate) fn label(value: f64, unit: AxisUnit) -> String {
    match unit {
        AxisUnit::Plain => format::number(value),
        AxisUnit::Percent => format!("{} %", format::number(value)),
        AxisUnit::Seconds => format::duration(value),
    }
}

/// Multiples of 1, 2 or 5 times a power of ten around `min..=max`, four to eight of them.
fn steps(min: f64, max: f64) -> Vec<f64> {
    // A span too small relative to the values would need more digits than a double has.
    let size = min.abs().max(max.abs());
    let span = if max > min { (max - min).max(size * 1e-9) } else { size };
    let span = if span > 1e-200 { span } else { 1.0 };
    let rough = span / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|&step| step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (min / step).floor() as i64;
    // At least one step, and no step lost to rounding when the maximum is a multiple.
    let last = ((max / step - 1e-9).ceil() as i64).max(first + 1);
    (first..=last).map(|index| tidy(index as f64 * step)).collect()
}

/// Rounds away the last bits, so that labels show no rounding error.
fn tidy(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

/// 1, 2 and 5 times powers of ten around `min..=max`, or the powers alone when there are more than three of them.
pub(crate) fn decades(min: f64, max: f64) -> Vec<f64> {
    let first = min.log10().floor() as i32;
    let last = max.log10().ceil() as i32;
    let factors: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all: Vec<f64> = (first..=last)
        .flat_map(|power| factors.iter().map(move |factor| tidy(factor * 10f64.powi(power))))
        .collect();
    let from = all.iter().rposition(|&value| value <= min).unwrap_or(0);
    let to =
        all.iter().position(|&value| value >= max).unwrap_or(all.len() - 1).max(from + 1).min(all.len() - 1);
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
        let axis = Axis::around(0.000_5, 0.9, true, AxisUnit::Seconds);
        assert_eq!(axis.ticks.first(), Some(&(0.0, "100 µs".to_owned())));
        let axis = Axis::around(0.0, 50.0, false, AxisUnit::Percent);
        assert_eq!(axis.ticks[2], (0.4, "20 %".to_owned()));
        let axis = Axis::exactly(0.5, 44.0, false, AxisUnit::Plain);
        assert_eq!((axis.place(0.5), axis.place(44.0)), (0.0, 1.0));
        assert_eq!(
            axis.ticks.iter().map(|tick| tick.1.as_str()).collect::<Vec<_>>(),
            ["10", "20", "30", "40"]
        );
    }
}
