//! What the prototype is calibrated to, and what counts as its full load: no findings.

use plimsoll_report::Claim;

use super::claims_prototype::{BUSY, PrototypeClaimSpec, discarding, polled};
use super::plan::{Grain, PROTOTYPE_FIGURE};
use super::prototype::{FullLoad, ServicePrototype, ServiceRuns};
use crate::judge::PaperReference::Section;
use crate::judge::{MATCHES, NEAR, Rule};

/// Every statistic that was measured.
pub(super) fn calibration(prototype: &ServicePrototype) -> Vec<Claim> {
    SPECS.iter().filter_map(|spec| spec.measure(prototype)).collect()
}

/// One point of the profile of slow answers.
const fn profile(
    id: &'static str,
    statement: &'static str,
    paper: f64,
    paper_text: &'static str,
    value: fn(&ServiceRuns) -> Option<f64>,
) -> PrototypeClaimSpec {
    PrototypeClaimSpec {
        id,
        place: Section("3.2", Some(PROTOTYPE_FIGURE)),
        statement,
        paper: Some(paper),
        paper_text,
        unit: "%",
        // Of some thousand polls: two of its standard errors, and half as much for other programs of this machine.
        rule: Rule::Within(NEAR),
        value,
        explanation: discarding,
    }
}

/// The share that one server completes at full load.
const fn full(
    id: &'static str,
    statement: &'static str,
    value: fn(&ServiceRuns) -> Option<f64>,
) -> PrototypeClaimSpec {
    PrototypeClaimSpec {
        id,
        place: Section("4", Some(PROTOTYPE_FIGURE)),
        statement,
        paper: Some(98.0),
        paper_text: "around 98 %",
        unit: "%",
        rule: Rule::Within(MATCHES),
        value,
        explanation: full_load_words,
    }
}

fn completed(p: &ServiceRuns, grain: Grain) -> Option<f64> {
    p.full_loads.iter().find(|full| full.grain == grain).map(|full| 100.0 * full.completed)
}

fn full_load_words(prototype: &ServicePrototype) -> String {
    let p = prototype.means();
    let of = |full: &FullLoad| {
        format!(
            "{} {:.1} % busy, {:.1} % completed ({:.1} % by theory for the same arrivals)",
            full.grain.title(),
            100.0 * full.utilization,
            100.0 * full.completed,
            100.0 * full.completed_by_theory
        )
    };
    let all: Vec<String> = p.full_loads.iter().map(of).collect();
    format!("Full load: {}. A queue so near to its limit changes slowly.", all.join("; "))
}

pub(super) const SPECS: &[PrototypeClaimSpec] = &[
    profile(
        "c3",
        "measured: polls of three not completed within 10 ms, Fine-Grain, 90 % (%)",
        8.1,
        "8.1 %",
        |p| p.point(Grain::Fine, BUSY, polled(3)).map(|point| 100.0 * point.over_10_ms),
    ),
    profile("c4", "measured: not within 20 ms (%)", 5.6, "5.6 %", |p| {
        p.point(Grain::Fine, BUSY, polled(3)).map(|point| 100.0 * point.over_20_ms)
    }),
    full("c5", "one server at what counts as 100 % completes 98 % within 2 s (Fine-Grain; %)", |p| {
        completed(p, Grain::Fine)
    }),
    full("c6", "the same with Poisson/Exp (%)", |p| completed(p, Grain::PoissonExp)),
    full("c7", "the same with the Medium-Grain trace (%)", |p| completed(p, Grain::Medium)),
];
