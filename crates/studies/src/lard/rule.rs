//! Declaration and measurement of this study's claims.

use plimsoll_report::{Claim, Measured};

use super::explain::LardExplanation;
use super::plan::Family;
use super::results::{LardResults, View};
pub(super) use crate::judge::{EQUAL, MeasuredClaim, NEAR, PaperReference, Rule, SLIGHTLY_MORE};

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
    /// Numbers of back-ends at which the one claim is measured, if several.
    pub(super) sizes: &'static [usize],
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
    let sizes: &[usize] = if spec.sizes.is_empty() { &[0] } else { spec.sizes };
    for &backends in sizes {
        let condition = if backends == 0 { String::new() } else { format!("on {backends} back-ends") };
        for instance in results.instances(spec.family) {
            let view = results.on(instance).sized_at(backends);
            if let Some(value) = (spec.value)(&view) {
                let (workload, condition) = (instance.name(), condition.clone());
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
