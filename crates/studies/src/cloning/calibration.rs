//! What is published of the paper's log, to which the workloads are made. It says nothing about the paper's findings.

use super::results::SiteResults;
use super::rule::{CloningClaimSpec, once};
use crate::judge::PaperReference::Section;
use crate::judge::Rule;

type Spec = CloningClaimSpec<SiteResults>;

const fn fact(
    id: &'static str,
    (paper, paper_text, unit): (f64, &'static str, &'static str),
    statement: &'static str,
    tolerance: f64,
    value: fn(&SiteResults) -> Vec<super::rule::Conditioned>,
) -> Spec {
    CloningClaimSpec {
        id,
        place: Section("4.2", Some(9)),
        statement,
        paper: Some(paper),
        paper_text,
        unit,
        rule: Rule::Within(tolerance),
        values: value,
        explanation: |_| String::new(),
    }
}

pub(super) const SPECS: &[Spec] = &[
    fact("c1", (87_425.0, "87,425", ""), "unique files", 0.0, |r| once(Some(r.facts.targets as f64))),
    // 6.6 GB, rounded.
    fact("c2", (6.6, "6.6 GB", "GB"), "size of all files", 0.008, |r| {
        once(Some(r.facts.total_bytes as f64 / 1e9))
    }),
    // The month has it exactly; runs are its beginning.
    fact("c3", (40.0, "40 KB", "KB"), "mean size of a requested document", 0.05, |r| {
        once(Some(r.facts.request_mean_bytes / 1000.0).filter(|kb| *kb > 0.0))
    }),
];
