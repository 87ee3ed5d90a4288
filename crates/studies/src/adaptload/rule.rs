//! Declaration and measurement of this study's claims.

use plimsoll_report::{Claim, Measured};

use super::explain::AdaptLoadExplanation;
use super::results::AdaptLoadResults;
pub(super) use crate::judge::{
    AHEAD, BEHIND, CLEARLY_LESS, CLEARLY_MORE, EQUAL, GREATLY, MATCHES, MeasuredClaim, NEAR, PaperReference,
    Rule, SLIGHTLY_MORE,
};

/// Which part of a run a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// Mean slowdowns or response times of a whole day. Measured with the cold start, like the paper's, and
    /// without it; the verdict is over both.
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
    pub(super) explanation: AdaptLoadExplanation,
}

/// Measures the claims that belong to the figure, or all, in their order; those whose runs were not made are left out.
pub(super) fn evaluate(
    specs: &[&[AdaptLoadClaimSpec]],
    figure: Option<u32>,
    days: &[AdaptLoadResults],
) -> Vec<Claim> {
    let wanted = specs.iter().copied().flatten();
    let wanted = wanted.filter(|spec| figure.is_none() || spec.place.figure() == figure);
    let warm: Vec<AdaptLoadResults> = days.iter().filter_map(AdaptLoadResults::warm).collect();
    wanted.filter_map(|spec| measure(spec, days, &warm)).collect()
}

const WITH_COLD_START: &str = "with the cold start";
const AFTER_COLD_START: &str = "after the cold start";

/// The claim, measured on every day; one about a whole day with the cold start and without it.
fn measure(spec: &AdaptLoadClaimSpec, days: &[AdaptLoadResults], warm: &[AdaptLoadResults]) -> Option<Claim> {
    let under = |days: &[AdaptLoadResults], condition: &str| -> Vec<Measured> {
        let one = |results: &AdaptLoadResults| {
            let value = (spec.value)(results).filter(|value| value.is_finite())?;
            let (workload, seed) = (results.day.workload.name.clone(), results.day.seed);
            Some(Measured { workload, seed, condition: condition.to_owned(), value })
        };
        days.iter().filter_map(one).collect()
    };
    let measured = match spec.over {
        Over::Points => under(days, ""),
        Over::Day => [under(days, WITH_COLD_START), under(warm, AFTER_COLD_START)].concat(),
    };
    let finding = MeasuredClaim {
        id: spec.id,
        place: spec.place,
        statement: spec.statement,
        paper: spec.paper,
        paper_text: spec.paper_text,
        unit: spec.unit,
        rule: spec.rule,
        measured,
        explanation: spec.explanation.words(days),
    };
    finding.claim()
}
