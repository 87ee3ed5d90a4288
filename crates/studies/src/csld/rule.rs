//! Declaration and measurement of this study's claims.

use plimsoll_report::Claim;

use super::cells::CsldPart;
use super::results::CsldResults;
pub(super) use crate::judge::{Conditioned, once};
use crate::judge::{MeasuredClaim, PaperReference, Rule, measure_each};

/// A claim of the paper, or a control.
pub(super) struct CsldClaimSpec {
    pub(super) id: &'static str,
    pub(super) part: CsldPart,
    pub(super) place: PaperReference,
    pub(super) statement: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) paper_text: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    /// Values of one seed, each with the condition under which it was measured: the verdict is over all.
    pub(super) values: fn(&CsldResults) -> Vec<Conditioned>,
    /// Shown when the claim does not hold by every measurement; from the runs that it explains.
    pub(super) explanation: fn(&[CsldResults]) -> String,
}

/// For claims of which no reason is known but what their figures say.
pub(super) fn unexplained(_: &[CsldResults]) -> String {
    String::new()
}

/// Values of cases of table 4.
pub(super) fn by_case(
    numbers: impl IntoIterator<Item = u32>,
    value: impl Fn(u32) -> Option<f64>,
) -> Vec<Conditioned> {
    numbers.into_iter().map(|number| (format!("case {number}"), value(number))).collect()
}

/// Measures the claims of a part; those whose runs were not made are left out.
pub(super) fn evaluate(specs: &[CsldClaimSpec], part: CsldPart, seeds: &[CsldResults]) -> Vec<Claim> {
    specs.iter().filter(|spec| part.wants(spec.part)).filter_map(|spec| measure(spec, seeds)).collect()
}

fn measure(spec: &CsldClaimSpec, seeds: &[CsldResults]) -> Option<Claim> {
    let finding = MeasuredClaim {
        id: spec.id,
        place: spec.place,
        statement: spec.statement,
        paper: spec.paper,
        paper_text: spec.paper_text,
        unit: spec.unit,
        rule: spec.rule,
        measured: measure_each(seeds, |results| (WORKLOAD.to_owned(), results.seed), spec.values),
        explanation: (spec.explanation)(seeds),
    };
    finding.claim()
}

/// All claims are about one site.
const WORKLOAD: &str = "worldcup66";
