//! From the costs of three kinds of requests to the costs of the model's steps.

/// What one round has measured, in µs a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RoundCosts {
    /// The small resource, on a connection of its own.
    pub(super) on_new_us: f64,
    /// The small resource, on a kept connection.
    pub(super) on_kept_us: f64,
    /// The large resource, on a kept connection.
    pub(super) large_us: Option<f64>,
}

/// Sizes of the two resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MeasuredSizes {
    /// The small one.
    pub(super) small_bytes: u64,
    /// The large one, if there is one.
    pub(super) large_bytes: Option<u64>,
}

/// A figure from several rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CostSpread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl CostSpread {
    /// Of at least one value.
    pub(super) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, min, max })
    }

    /// How far the extremes are from one another, over the median.
    pub(super) fn relative(&self) -> f64 {
        if self.median > 0.0 { (self.max - self.min) / self.median } else { f64::INFINITY }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::json!({ "median": self.median, "min": self.min, "max": self.max })
    }
}

/// Costs of the steps of a request in µs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepCosts {
    /// What a connection costs beside its request.
    pub(super) connection_us: CostSpread,
    /// What a request costs beside the bytes of its answer.
    pub(super) request_us: CostSpread,
    /// What 512 bytes cost; `None` without a large resource.
    pub(super) transmit_per_512_bytes_us: Option<CostSpread>,
}

impl StepCosts {
    /// The costs, each round by itself; `None` without rounds. A difference below zero is noise and counts as zero.
    pub(super) fn of(rounds: &[RoundCosts], sizes: MeasuredSizes) -> Option<Self> {
        let per_byte_us = |round: &RoundCosts| -> Option<f64> {
            let more_bytes = sizes.large_bytes?.checked_sub(sizes.small_bytes).filter(|more| *more > 0)?;
            Some(((round.large_us? - round.on_kept_us) / more_bytes as f64).max(0.0))
        };
        let request = |round: &RoundCosts| {
            let body_us = per_byte_us(round).unwrap_or(0.0) * sizes.small_bytes as f64;
            (round.on_kept_us - body_us).max(0.0)
        };
        let connection = |round: &RoundCosts| (round.on_new_us - round.on_kept_us).max(0.0);
        Some(Self {
            connection_us: CostSpread::of(rounds.iter().map(connection).collect())?,
            request_us: CostSpread::of(rounds.iter().map(request).collect())?,
            transmit_per_512_bytes_us: CostSpread::of(
                rounds.iter().filter_map(per_byte_us).map(|us| us * 512.0).collect(),
            ),
        })
    }

    /// Values of the model's parameters. Where each request has a connection of its own, half of what that costs is its end.
    pub(super) fn settings(&self, kept: bool) -> Vec<(&'static str, f64)> {
        let half_us = if kept { 0.0 } else { self.connection_us.median / 2.0 };
        let mut out = vec![
            ("lard.connect_us", rounded(self.request_us.median + half_us)),
            ("lard.teardown_us", rounded(half_us)),
        ];
        let transmit = self.transmit_per_512_bytes_us.map(|cost| cost.median);
        out.extend(transmit.map(|us| ("lard.transmit_per_512_bytes_us", rounded(us))));
        out.push(("lard.cpu_speed", 1.0));
        out
    }
}

/// To three significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: MeasuredSizes = MeasuredSizes { small_bytes: 1_024, large_bytes: Some(1_024 + 512_000) };

    #[test]
    fn costs_are_told_apart() {
        // A request of 20 µs, a connection of 30 µs, 0.5 µs for 512 bytes.
        let round = RoundCosts { on_new_us: 51.0, on_kept_us: 21.0, large_us: Some(521.0) };
        let costs = StepCosts::of(&[round; 3], SIZES).unwrap();
        let near = |spread: CostSpread, value: f64| (spread.median - value).abs() < 1e-9;
        assert!(near(costs.connection_us, 30.0) && near(costs.request_us, 20.0), "{costs:?}");
        assert!(near(costs.transmit_per_512_bytes_us.unwrap(), 0.5), "{costs:?}");
        assert_eq!(
            costs.settings(false),
            [
                ("lard.connect_us", 35.0),
                ("lard.teardown_us", 15.0),
                ("lard.transmit_per_512_bytes_us", 0.5),
                ("lard.cpu_speed", 1.0)
            ]
        );
        assert_eq!(costs.settings(true)[..2], [("lard.connect_us", 20.0), ("lard.teardown_us", 0.0)]);
    }

    #[test]
    fn without_a_large_resource_bytes_have_no_cost() {
        let sizes = MeasuredSizes { large_bytes: None, ..SIZES };
        let round = RoundCosts { on_new_us: 10.0, on_kept_us: 12.0, large_us: None };
        let costs = StepCosts::of(&[round], sizes).unwrap();
        assert_eq!(costs.transmit_per_512_bytes_us, None);
        assert_eq!((costs.connection_us.median, costs.request_us.median), (0.0, 12.0));
        assert!(StepCosts::of(&[], sizes).is_none());
    }

    #[test]
    fn a_spread_has_the_middle_and_the_ends() {
        let spread = CostSpread::of(vec![3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 10.0));
        assert_eq!(spread.relative(), 3.6);
        assert_eq!(rounded(12.3456), 12.3);
    }
}
