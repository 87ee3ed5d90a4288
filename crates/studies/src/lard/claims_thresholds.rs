//! The claims of section 2.4 about LARD's thresholds, on the Rice trace and eight back-ends.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use super::explain::{EXPLAIN_HIGH_T_LOW, EXPLAIN_THRESHOLDS};
use super::plan::{HIGH_T_LOW, T_HIGH, Variant, rice};
use super::results::{LARD, View};
use super::rule::PaperReference::Section;
use super::rule::{ClaimConditions, EQUAL, LardClaimSpec, MATCHES, MILD, Rule};

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

/// Value with the condition's conservatively high T_low over that with 25 and 65.
fn high_t_low(v: &View<'_>, value: impl Fn(Variant) -> Option<f64>) -> Option<f64> {
    Some(value(v.condition.thresholds?)? / value(Variant::Thresholds(25, 65))?)
}

pub(super) const SPECS: &[LardClaimSpec] = &[
    LardClaimSpec {
        id: "p1",
        place: Section("2.4", None),
        statement: "delays differ approximately linearly in T_high − T_low (correlation of the largest difference of mean delays)",
        paper: None,
        paper_text: "linear",
        unit: "",
        // "Approximately linearly": a straight line explains nine tenths of the variance (0.95 squared).
        rule: Rule::AtLeast(0.95),
        family: rice,
        conditions: ClaimConditions::One,
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
        // Equality is no increase.
        rule: Rule::Between(1.0 + EQUAL, MILD),
        family: rice,
        conditions: ClaimConditions::One,
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
        // "Flattens": the last doubling gains nothing.
        rule: Rule::Within(MATCHES),
        family: rice,
        conditions: ClaimConditions::One,
        value: |v| gain(v, T_HIGH[T_HIGH.len() - 2], MOST),
        explanation: EXPLAIN_THRESHOLDS,
    },
    LardClaimSpec {
        id: "p4",
        place: Section("2.4", None),
        statement: "a conservatively high T_low has no adverse impact on throughput (over that with 25 and 65)",
        paper: Some(1.0),
        paper_text: "none",
        unit: "×",
        // "No adverse impact": not lower by more than two runs differ by themselves; no upper end.
        rule: Rule::AtLeast(1.0 - EQUAL),
        family: rice,
        conditions: ClaimConditions::Thresholds(HIGH_T_LOW),
        value: |v| high_t_low(v, |variant| v.rps_of(LARD, 8, variant)),
        explanation: EXPLAIN_HIGH_T_LOW,
    },
    LardClaimSpec {
        id: "p5",
        place: Section("2.4", None),
        statement: "and only a mild increase in the average delay (likewise)",
        paper: None,
        paper_text: "mild",
        unit: "×",
        // "Only a mild increase" bounds from above, so equality counts; a decrease is no increase. In an
        // earlier form of this study the upper end was 15 % here.
        rule: Rule::Between(1.0, MILD),
        family: rice,
        conditions: ClaimConditions::Thresholds(HIGH_T_LOW),
        value: |v| high_t_low(v, |variant| v.run(LARD, 8, variant)?.response_time_s.map(|s| s.mean)),
        explanation: EXPLAIN_HIGH_T_LOW,
    },
];

#[cfg(test)]
mod tests {
    use super::super::plan::{Family, Instance};
    use super::super::results::{Condition, LardResults, Profile};
    use super::*;
    use crate::testing;

    const INSTANCE: Instance = Instance { family: Family::Rice, generator: "windowed", seed: 1 };

    /// Runs of LARD on eight back-ends, whose mean delays are 1 s but for the last: 1 s and this difference.
    fn results(differences_s: &[(Variant, f64)]) -> LardResults {
        let one = |&(variant, difference_s): &(Variant, f64)| {
            let mut run = testing::run();
            (run.policy, run.backends, run.simulated_s) = (LARD.to_owned(), 8, 10.0);
            run.throughput_rps = 1.0 + difference_s;
            run.response_time_s = Some(testing::summary(1.0 + difference_s));
            // Load over throughput: 5 / (50 / 10 s).
            run.per_backend = vec![testing::backend(5.0, 50); 7];
            run.per_backend.push(testing::backend(5.0 * (1.0 + difference_s), 50));
            (variant, run)
        };
        let mut results = LardResults::default();
        results.add(&INSTANCE, Profile::default(), differences_s.iter().map(one).collect());
        results
    }

    fn widths(difference_s: impl Fn(f64) -> f64) -> LardResults {
        let one = |t_high: u32| (Variant::Thresholds(25, t_high), difference_s(f64::from(t_high - 25)));
        results(&T_HIGH.map(one))
    }

    #[test]
    fn a_straight_line_is_linear_and_a_step_is_not() {
        let of = |results: &LardResults| linearity(&results.on(INSTANCE));
        assert!((of(&widths(|width| 0.01 * width + 0.3)).unwrap() - 1.0).abs() < 1e-9);
        assert!((of(&widths(|width| 2.0 - 0.01 * width)).unwrap() + 1.0).abs() < 1e-9);
        // By hand: widths 10, 20, 40, 80, 160 about 62 and 0, 0, 0, 0, 1 about 0.2: 98 / √(14,880 · 0.8).
        let step = of(&widths(|width| if width > 100.0 { 1.0 } else { 0.0 })).unwrap();
        assert!((step - 98.0 / (14_880.0_f64 * 0.8).sqrt()).abs() < 1e-9, "{step}");
        assert_eq!(of(&widths(|_| 0.5)), None, "nothing varies");
        assert_eq!(of(&results(&[(Variant::Thresholds(25, 35), 0.1)])), None, "runs are missing");
    }

    #[test]
    fn a_high_t_low_is_compared_with_that_of_the_paper() {
        let results = results(&[(Variant::Thresholds(25, 65), 0.0), (Variant::Thresholds(50, 90), 0.5)]);
        let thresholds = Some(Variant::Thresholds(50, 90));
        let view = results.on(INSTANCE).under(Condition { thresholds, ..Condition::default() });
        let of = |id: &str| (SPECS.iter().find(|spec| spec.id == id).unwrap().value)(&view);
        assert_eq!((of("p4"), of("p5")), (Some(1.5), Some(1.5)));
        assert_eq!((SPECS[3].value)(&results.on(INSTANCE)), None, "no thresholds, no run");
    }

    #[test]
    fn throughputs_are_compared_from_the_least_width_to_the_most() {
        let results = widths(|width| width / 160.0);
        assert_eq!(gain(&results.on(INSTANCE), 105, 185), Some(2.0 / 1.5));
    }
}
