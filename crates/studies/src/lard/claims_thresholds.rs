//! The claims of section 2.4 about LARD's thresholds, on the Rice trace and eight back-ends.

use super::explain::EXPLAIN_THRESHOLDS;
use super::plan::{HIGH_T_LOW, T_HIGH, Variant, rice};
use super::results::{LARD, View};
use super::rule::PaperReference::Section;
use super::rule::{EQUAL, LardClaimSpec, NEAR, Rule};

const LEAST: u32 = T_HIGH[0];
const MOST: u32 = T_HIGH[T_HIGH.len() - 1];

/// Throughput with T_low = 25 and one T_high over that with another.
fn gain(v: &View<'_>, from: u32, to: u32) -> Option<f64> {
    let rps = |t_high| v.rps_of(LARD, 8, Variant::Thresholds(25, t_high));
    Some(rps(to)? / rps(from)?)
}

/// Correlation of T_high − T_low with the difference of delays between back-ends.
fn linearity(v: &View<'_>) -> Option<f64> {
    let delays: Option<Vec<f64>> =
        T_HIGH.iter().map(|&t_high| v.delay_difference_s(Variant::Thresholds(25, t_high))).collect();
    let (xs, ys) = (T_HIGH.map(f64::from), delays?);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (x, y) = (mean(&xs), mean(&ys));
    let sum = |f: fn(f64, f64) -> f64| xs.iter().zip(&ys).map(|(a, b)| f(a - x, b - y)).sum::<f64>();
    let variances = sum(|a, _| a * a) * sum(|_, b| b * b);
    (variances > 0.0).then(|| sum(|a, b| a * b) / variances.sqrt())
}

/// Value with a conservatively high T_low over that with 25, both with T_high − T_low = 40.
fn high_t_low(value: impl Fn(Variant) -> Option<f64>) -> Option<f64> {
    Some(value(Variant::Thresholds(HIGH_T_LOW.0, HIGH_T_LOW.1))? / value(Variant::Thresholds(25, 65))?)
}

pub(super) const SPECS: &[LardClaimSpec] = &[
    LardClaimSpec {
        id: "p1",
        place: Section("2.4", None),
        statement: "delays differ approximately linearly in T_high − T_low (correlation of the largest difference of mean delays)",
        paper: None,
        paper_text: "linear",
        unit: "",
        // Nine tenths of the variance.
        rule: Rule::AtLeast(0.95),
        family: rice,
        sizes: &[],
        value: linearity,
        explanation: EXPLAIN_THRESHOLDS,
    },
    LardClaimSpec {
        id: "p2",
        place: Section("2.4", None),
        statement: "throughput increases mildly with T_high − T_low (160 against 10)",
        paper: None,
        paper_text: "mildly",
        unit: "×",
        // As the mild gain of a second disk (14a); equality is no increase.
        rule: Rule::Between(1.0 + EQUAL, 1.25),
        family: rice,
        sizes: &[],
        value: |v| gain(v, LEAST, MOST),
        explanation: EXPLAIN_THRESHOLDS,
    },
    LardClaimSpec {
        id: "p3",
        place: Section("2.4", None),
        statement: "and eventually flattens (160 against 80)",
        paper: Some(1.0),
        paper_text: "flattens",
        unit: "×",
        // As further disks, which gain nothing (14b).
        rule: Rule::Within(0.05),
        family: rice,
        sizes: &[],
        value: |v| gain(v, T_HIGH[T_HIGH.len() - 2], MOST),
        explanation: EXPLAIN_THRESHOLDS,
    },
    LardClaimSpec {
        id: "p4",
        place: Section("2.4", None),
        statement: "a conservatively high T_low (50, with T_high = 90) has no adverse impact on throughput",
        paper: Some(1.0),
        paper_text: "none",
        unit: "×",
        rule: Rule::AtLeast(1.0 - EQUAL),
        family: rice,
        sizes: &[],
        value: |v| high_t_low(|variant| v.rps_of(LARD, 8, variant)),
        explanation: EXPLAIN_THRESHOLDS,
    },
    LardClaimSpec {
        id: "p5",
        place: Section("2.4", None),
        statement: "and only a mild increase in the average delay",
        paper: None,
        paper_text: "mild",
        unit: "×",
        rule: Rule::Between(1.0, 1.0 + NEAR),
        family: rice,
        sizes: &[],
        value: |v| high_t_low(|variant| v.run(LARD, 8, variant)?.response_time_s.map(|s| s.mean)),
        explanation: EXPLAIN_THRESHOLDS,
    },
];
