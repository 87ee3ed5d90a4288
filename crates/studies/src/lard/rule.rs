//! Declaration and measurement of this study's claims.

use plimsoll_report::{Claim, Measured};

use super::explain::LardExplanation;
use super::plan::{Family, Variant};
use super::results::{Condition, LardResults, View};
pub(super) use crate::judge::{
    AHEAD, BEHIND, CLEARLY_MORE, EQUAL, GREATLY, MATCHES, MILD, MeasuredClaim, NEAR, PaperReference, Rule,
    SLIGHTLY_MORE,
};

/// The conditions under which the one claim is measured.
#[derive(Debug, Clone, Copy)]
pub(super) enum ClaimConditions {
    /// No particular one.
    One,
    /// Numbers of back-ends.
    BackEnds(&'static [usize]),
    /// LARD's T_low and T_high.
    Thresholds(&'static [(u32, u32)]),
}

impl ClaimConditions {
    /// Each condition in words, with what its view is set to.
    fn all(self) -> Vec<(String, Condition)> {
        match self {
            Self::One => vec![(String::new(), Condition::default())],
            Self::BackEnds(numbers) => {
                let one = |&backends: &usize| {
                    (
                        format!("on {backends} back-ends"),
                        Condition { backends: Some(backends), ..Condition::default() },
                    )
                };
                numbers.iter().map(one).collect()
            }
            Self::Thresholds(pairs) => {
                let one = |&(t_low, t_high): &(u32, u32)| {
                    let thresholds = Some(Variant::Thresholds(t_low, t_high));
                    (
                        format!("with T_low {t_low} and T_high {t_high}"),
                        Condition { thresholds, ..Condition::default() },
                    )
                };
                pairs.iter().map(one).collect()
            }
        }
    }
}

/// A claim of the paper, and how it is measured on one workload.
pub(super) struct LardClaimSpec {
    pub(super) id: &'static str,
    pub(super) place: PaperReference,
    pub(super) statement: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) paper_text: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    pub(super) family: fn(Family) -> bool,
    pub(super) conditions: ClaimConditions,
    pub(super) value: fn(&View<'_>) -> Option<f64>,
    /// Shown when the claim does not hold on every workload.
    pub(super) explanation: LardExplanation,
}

/// The claims that belong to the figure, or all, in their order.
pub(super) fn wanted<'a>(
    specs: &'a [&[LardClaimSpec]],
    figure: Option<u32>,
) -> impl Iterator<Item = &'a LardClaimSpec> {
    let wanted = move |spec: &&LardClaimSpec| figure.is_none() || spec.place.figure() == figure;
    specs.iter().copied().flatten().filter(wanted)
}

/// Measures the claims that belong to the figure, or all, in their order.
pub(super) fn evaluate(specs: &[&[LardClaimSpec]], figure: Option<u32>, results: &LardResults) -> Vec<Claim> {
    wanted(specs, figure).filter_map(|spec| measure(spec, results)).collect()
}

/// Measures the claim on every workload of its family; `None` when none of its runs was made.
fn measure(spec: &LardClaimSpec, results: &LardResults) -> Option<Claim> {
    let mut measured = Vec::new();
    for (words, condition) in spec.conditions.all() {
        for instance in results.instances(spec.family) {
            let view = results.on(instance).under(condition);
            if let Some(value) = (spec.value)(&view) {
                let (workload, condition) = (instance.name(), words.clone());
                measured.push(Measured { workload, seed: instance.seed, condition, value });
            }
        }
    }
    let finding = MeasuredClaim {
        id: spec.id,
        place: spec.place,
        statement: spec.statement,
        paper: spec.paper,
        paper_text: spec.paper_text,
        unit: spec.unit,
        rule: spec.rule,
        measured,
        explanation: spec.explanation.words(results),
    };
    finding.claim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_its_words() {
        let words = |conditions: ClaimConditions| -> Vec<String> {
            conditions.all().into_iter().map(|(words, _)| words).collect()
        };
        assert_eq!(words(ClaimConditions::One), [""]);
        assert_eq!(words(ClaimConditions::BackEnds(&[4, 8])), ["on 4 back-ends", "on 8 back-ends"]);
        let pairs = ClaimConditions::Thresholds(&[(50, 90)]);
        assert_eq!(words(pairs), ["with T_low 50 and T_high 90"]);
        assert_eq!(pairs.all()[0].1.thresholds, Some(Variant::Thresholds(50, 90)));
        assert_eq!(ClaimConditions::BackEnds(&[4]).all()[0].1.backends, Some(4));
    }
}
