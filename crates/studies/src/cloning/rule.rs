//! Declaration and measurement of this study's claims.

use plimsoll_report::Claim;

use super::results::{MicroResults, SiteResults};
pub(super) use crate::judge::{Conditioned, once};
use crate::judge::{MeasuredClaim, PaperReference, Rule, measure_each};

/// Results that claims are measured on.
pub(super) trait StudyResults {
    /// The workload and the seed.
    fn origin(&self) -> (String, u64);
}

impl StudyResults for SiteResults {
    fn origin(&self) -> (String, u64) {
        (self.site.title().to_owned(), self.seed)
    }
}

/// Nothing of the micro-benchmark is drawn.
impl StudyResults for MicroResults {
    fn origin(&self) -> (String, u64) {
        ("one document".to_owned(), 1)
    }
}

/// A claim of the paper, or a control.
pub(super) struct CloningClaimSpec<R> {
    pub(super) id: &'static str,
    pub(super) place: PaperReference,
    pub(super) statement: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) paper_text: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    /// Values of one workload and seed, each with the condition under which it was measured: the verdict is over all.
    pub(super) values: fn(&R) -> Vec<Conditioned>,
    /// Shown when the claim does not hold by every measurement; from the runs that it explains.
    pub(super) explanation: fn(&[R]) -> String,
}

/// Measures claims; those whose runs were not made are left out.
pub(super) fn evaluate<R: StudyResults>(specs: &[CloningClaimSpec<R>], results: &[R]) -> Vec<Claim> {
    specs.iter().filter_map(|spec| measure(spec, results)).collect()
}

fn measure<R: StudyResults>(spec: &CloningClaimSpec<R>, results: &[R]) -> Option<Claim> {
    let finding = MeasuredClaim {
        id: spec.id,
        place: spec.place,
        statement: spec.statement,
        paper: spec.paper,
        paper_text: spec.paper_text,
        unit: spec.unit,
        rule: spec.rule,
        measured: measure_each(results, StudyResults::origin, spec.values),
        explanation: (spec.explanation)(results),
    };
    finding.claim()
}
