//! Declaration and measurement of this study's claims.

use plimsoll_report::{Claim, Measured};

use super::plan::READINGS;
use super::results::FineGrainResults;
use crate::judge::{MeasuredClaim, PaperReference, Rule};

/// Clients, and whether they count what they send between two announcements.
pub(super) type BroadcastReading = (u16, bool);

/// How a claim is measured.
#[derive(Clone, Copy)]
pub(super) enum Value {
    Once(fn(&FineGrainResults) -> Option<f64>),
    /// With each number of clients and each way of counting, which the paper leaves open: the verdict is over all.
    EachReading(fn(&FineGrainResults, BroadcastReading) -> Option<f64>),
}

/// A claim of the paper.
pub(super) struct FineGrainClaimSpec {
    pub(super) id: &'static str,
    pub(super) place: PaperReference,
    pub(super) statement: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) paper_text: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    pub(super) value: Value,
    /// Shown when the claim does not hold; from the runs that it explains.
    pub(super) explanation: fn(&[FineGrainResults]) -> String,
}

/// For claims of which no reason is known but what their figures say.
pub(super) fn unexplained(_: &[FineGrainResults]) -> String {
    String::new()
}

fn reading_words((clients, counts_own): BroadcastReading) -> String {
    let plural = if clients == 1 { "client" } else { "clients" };
    let counts = if counts_own { "counting own sends" } else { "not counting own sends" };
    format!("{clients} {plural}, {counts}")
}

/// Measures the claims of a figure, or all; those whose runs were not made are left out.
pub(super) fn evaluate(
    specs: &[FineGrainClaimSpec],
    figure: Option<u32>,
    seeds: &[FineGrainResults],
) -> Vec<Claim> {
    let wanted = specs.iter().filter(|spec| figure.is_none() || spec.place.figure() == figure);
    wanted.filter_map(|spec| measure(spec, seeds)).collect()
}

fn measure(spec: &FineGrainClaimSpec, seeds: &[FineGrainResults]) -> Option<Claim> {
    let one = |results: &FineGrainResults, condition: String, value: Option<f64>| {
        let value = value.filter(|value| value.is_finite())?;
        Some(Measured { workload: WORKLOAD.to_owned(), seed: results.seed, condition, value })
    };
    let measured = match spec.value {
        Value::Once(value) => {
            seeds.iter().filter_map(|results| one(results, String::new(), value(results))).collect()
        }
        Value::EachReading(value) => READINGS
            .into_iter()
            .flat_map(|condition| seeds.iter().map(move |results| (results, condition)))
            .filter_map(|(results, c)| one(results, reading_words(c), value(results, c)))
            .collect(),
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
        explanation: (spec.explanation)(seeds),
    };
    finding.claim()
}

/// All claims are about the workloads of table 1, synthesized.
const WORKLOAD: &str = "table 1";
