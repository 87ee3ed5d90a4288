//! The simulation study of Pai et al., "Locality-aware request distribution in cluster-based network servers", ASPLOS
//! 1998, sections 3 and 4: figures 5 to 14, the hot-target and delay paragraphs.
//!
//! Figure 17, the authors' prototype, and their measurements of connection handoff (section 6.2) are included
//! when the caller passes in measurements of a real cluster ([`Real`]).
//!
//! The traces were never published, and their published statistics do not determine a workload. So each claim
//! is measured on several equally well calibrated generators and seeds, and reported with the spread.

mod calibration;
mod claims;
mod claims_speeds;
mod claims_strategies;
mod claims_thresholds;
mod claims_workloads;
mod explain;
mod figures;
mod front_end_claims;
mod handoff;
mod plan;
mod prototype;
mod results;
mod rule;

use plimsoll_report::{Claim, Report, Run, Section};
use rayon::prelude::*;

use crate::matrix::{Progress, run_all};
pub use crate::study_error::StudyError;

pub use calibration::calibration_conclusion;
pub use front_end_claims::FIGURE as PROTOTYPE_FIGURE;
pub use handoff::{Forwarding, HandoffMeasures, HandoffThroughput, LatencyRound};
pub use plan::{Effort, FIGURES};
use plan::{Instance, Planned, Variant, instances, scenarios};
pub use prototype::{Prototype, PrototypeMechanism, PrototypePoint};
use results::{LardResults, Profile};
use rule::evaluate;

/// In the paper's order.
const CLAIMS: [&[rule::LardClaimSpec]; 5] = [
    claims::SPECS,
    claims_strategies::SPECS,
    claims_workloads::SPECS,
    claims_speeds::SPECS,
    claims_thresholds::SPECS,
];

/// The results of the study.
pub struct LardStudy {
    /// The published statistics to which the workloads are calibrated, with the values reached.
    pub calibration: Vec<Claim>,
    /// Every claim with its measurements.
    pub claims: Vec<Claim>,
    /// Every run.
    pub runs: Vec<Run>,
    /// Figures and claims as a report.
    pub report: Report,
}

/// The part of the study to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    All,
    /// The runs and claims of this figure of the paper.
    Figure(u32),
    /// The measurements of connection handoff, which have no figure.
    Handoff,
}

impl Part {
    /// The figure to simulate; `None` for all. Connection handoff has a number that no figure of the paper
    /// has.
    fn figure(self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Figure(number) => Some(number),
            Self::Handoff => Some(0),
        }
    }
}

/// Measurements by real traffic.
#[derive(Debug, Clone, Default)]
pub struct Real {
    /// Figure 17, by one or more mechanisms.
    pub prototypes: Vec<Prototype>,
    /// Section 6.2.
    pub handoff: Option<HandoffMeasures>,
    /// Why some measurements by handoff are missing.
    pub left_out: Option<String>,
}

/// How many requests the study will simulate: the length of its progress bar.
#[must_use]
pub fn requests(effort: Effort, part: Part, seed: Option<u64>, real: &Real) -> u64 {
    let figure = part.figure();
    let simulated: u64 = instances(effort, figure, seed)
        .iter()
        .map(|i| scenarios(i, effort, figure, seed).len() as u64 * i.expected_requests())
        .sum();
    let points = real.prototypes.iter().flat_map(|p| &p.points);
    simulated + points.map(|point| point.warmup_requests + point.run.requests).sum::<u64>()
}

/// Runs the study, or a part of it, with several seeds or only this one. Figure 17 and section 6.2 are there only with measurements of a real cluster.
///
/// # Errors
/// When a workload cannot be made or a run fails.
pub fn reproduce(
    effort: Effort,
    part: Part,
    seed: Option<u64>,
    real: &Real,
    progress: &dyn Progress,
) -> Result<LardStudy, StudyError> {
    let figure = part.figure();
    let on_instance = |instance: &Instance| -> Result<(Profile, Vec<(Variant, Run)>), StudyError> {
        let workload = instance.workload()?;
        let planned = scenarios(instance, effort, figure, seed);
        let scenarios: Vec<_> = planned.iter().map(Planned::scenario).collect::<Result<_, _>>()?;
        let runs = run_all(&scenarios, &workload, progress, |_| None)?;
        let variants = planned.into_iter().map(|p| p.variant);
        Ok((Profile::of(&workload), variants.zip(runs).collect()))
    };
    let instances = instances(effort, figure, seed);
    // One task per workload, so that no CPU waits for the last run of another workload.
    let done: Vec<_> = instances.par_iter().with_max_len(1).map(on_instance).collect();
    let mut results = LardResults::default();
    for (instance, done) in instances.iter().zip(done) {
        let (profile, runs) = done?;
        results.add(instance, profile, runs);
    }
    let calibration = evaluate(&[calibration::SPECS], figure, &results);
    let mut claims = evaluate(&CLAIMS, figure, &results);
    let judged = real.prototypes.iter().map(|p| prototype::judge(p, progress));
    let judged = judged.collect::<Result<Vec<_>, _>>()?;
    claims.extend(judged.iter().flat_map(|outcome| outcome.claims.iter().cloned()));
    claims.extend(real.handoff.iter().flat_map(handoff::claims));
    let mut report = figures::report(effort, figure, &calibration, &claims, &results);
    let mut runs = results.into_runs();
    for outcome in judged {
        report = report.section(outcome.section);
        runs.extend(outcome.runs);
    }
    if let Some(measures) = &real.handoff {
        report = report.section(handoff::section(measures));
    }
    if let Some(why) = &real.left_out {
        let section = Section::new("Connection handoff: left out");
        report = report
            .section(section.paragraph(format!("Not all was measured through connection handoff: {why}.")));
    }
    Ok(LardStudy { calibration, claims, runs, report })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ids(figure: Option<u32>) -> Vec<&'static str> {
        rule::wanted(&CLAIMS, figure).map(|spec| spec.id).collect()
    }

    #[test]
    fn a_figure_has_its_claims_and_no_others() {
        assert_eq!(ids(Some(9)), ["9a", "9b", "9c", "9d", "9e"]);
        assert!(ids(Some(7)).contains(&"7k"));
        assert!(ids(Some(10)).contains(&"10f"));
        assert!(ids(Some(5)).is_empty() && ids(Some(6)).is_empty());
        assert!((7..=14).all(|figure| !ids(Some(figure)).is_empty()));
    }

    #[test]
    fn the_measures_of_handoff_simulate_nothing() {
        assert_eq!(requests(Effort::Full, Part::Handoff, None, &Real::default()), 0);
        let real = Real { left_out: Some("a test".to_owned()), ..Real::default() };
        let study = reproduce(Effort::Quick, Part::Handoff, None, &real, &()).unwrap();
        assert!(study.claims.is_empty() && study.calibration.is_empty() && study.runs.is_empty());
        assert!(study.report.to_html().contains("Not all was measured through connection handoff: a test."));
    }

    #[test]
    fn ids_are_unique() {
        let all = ids(None);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
