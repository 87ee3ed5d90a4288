//! Declaration and measurement of this study's claims.

use plimsoll_report::{Claim, Measured, Verdict};

use super::explain::COLD_START;
use super::results::AdaptLoadResults;
pub(super) use crate::judge::{MeasuredClaim, PaperReference, Rule};

/// Which part of a run a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// Mean slowdowns or response times of a whole day. Measured with the cold start, like the paper's, and
    /// without it.
    Day,
    /// Anything else.
    Points,
}

/// A claim of the paper, and how it is measured.
pub(super) struct AdaptLoadClaimSpec {
    pub(super) id: &'static str,
    pub(super) place: PaperReference,
    pub(super) over: Over,
    pub(super) statement: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) paper_text: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    pub(super) value: fn(&AdaptLoadResults) -> Option<f64>,
    /// Shown when the claim does not hold.
    pub(super) explanation: &'static str,
}

/// Measures the claims that belong to the figure, or all, in their order; those whose runs were not made are left out.
pub(super) fn evaluate(
    specs: &[&[AdaptLoadClaimSpec]],
    figure: Option<u32>,
    results: &AdaptLoadResults,
) -> Vec<Claim> {
    let wanted = specs.iter().copied().flatten();
    let wanted = wanted.filter(|spec| figure.is_none() || spec.place.figure() == figure);
    let warm = results.warm();
    wanted.flat_map(|spec| both(spec, results, warm.as_ref())).collect()
}

/// The claim; if it is about a whole day, also a second one without the cold start, with its own id.
fn both(
    spec: &AdaptLoadClaimSpec,
    results: &AdaptLoadResults,
    warm: Option<&AdaptLoadResults>,
) -> Vec<Claim> {
    let warm = warm.filter(|_| spec.over == Over::Day).and_then(|warm| measure(spec, warm));
    let mut cold = measure(spec, results);
    if let (Some(cold), Some(warm)) = (&mut cold, &warm)
        && (cold.verdict, warm.verdict) == (Verdict::Fails, Verdict::Holds)
    {
        cold.explanation = COLD_START.to_owned();
    }
    let warm = warm.map(|claim| {
        let statement = format!("{}, after the cold start", claim.statement);
        Claim { id: format!("{}w", spec.id), statement, ..claim }
    });
    cold.into_iter().chain(warm).collect()
}

fn measure(spec: &AdaptLoadClaimSpec, results: &AdaptLoadResults) -> Option<Claim> {
    let value = (spec.value)(results).filter(|value| value.is_finite())?;
    let workload = results.day.workload.name.clone();
    let finding = MeasuredClaim {
        id: spec.id,
        place: spec.place,
        statement: spec.statement,
        paper: spec.paper,
        paper_text: spec.paper_text,
        unit: spec.unit,
        rule: spec.rule,
        measured: vec![Measured { workload, seed: results.day.setting.seed, value }],
        explanation: spec.explanation,
    };
    finding.claim()
}
