//! What a study found.

use plimsoll_report::{Claim, Report, Run};
use plimsoll_studies::fine_grain::ExactCheck;

use crate::error::CliError;

/// The results of a study.
pub(super) struct StudyFindings {
    /// Our simulator beside theory, for studies that check it.
    pub(super) exact: Vec<ExactCheck>,
    pub(super) calibration: Vec<Claim>,
    pub(super) claims: Vec<Claim>,
    /// Readings that are changed one at a time, and what goes beyond the paper: judged like claims, and not counted among them.
    pub(super) controls: Vec<Claim>,
    /// Why the verdicts of these runs say little, if so.
    pub(super) caution: Option<String>,
    pub(super) runs: Vec<Run>,
    pub(super) report: Report,
}

impl StudyFindings {
    /// Claims and nothing beside them.
    pub(super) fn new(claims: Vec<Claim>, runs: Vec<Run>, report: Report) -> Self {
        let (exact, calibration, controls) = (Vec::new(), Vec::new(), Vec::new());
        Self { exact, calibration, claims, controls, caution: None, runs, report }
    }

    /// A paper's claim may fail: that is a finding. An exact check may not: then we simulate wrongly.
    pub(super) fn defects(&self) -> Result<(), CliError> {
        let failures: Vec<String> = self.exact.iter().filter_map(ExactCheck::failure).collect();
        if failures.is_empty() {
            return Ok(());
        }
        Err(CliError::Failed(format!(
            "{} of {} exact checks failed: {}. Where theory is excluded, the simulator or a policy is wrong. (By chance a check fails with \
             one seed in a hundred: another --seed shows whether it was that.)",
            failures.len(),
            self.exact.len(),
            failures.join("; ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_report::Verdict;
    use plimsoll_studies::fine_grain::Anchor;

    use super::*;

    const TWO: Anchor =
        Anchor { id: "t2", statement: "two of 16", theory: 2.83, rounding: 0.005, widest: 0.03 };

    fn findings(means: [f64; 10]) -> StudyFindings {
        let failed = Claim {
            id: "f1".to_owned(),
            figure: "figure 2".to_owned(),
            statement: String::new(),
            paper: None,
            paper_text: String::new(),
            unit: String::new(),
            measured: Vec::new(),
            verdict: Verdict::Fails,
            rule: String::new(),
            explanation: String::new(),
        };
        StudyFindings {
            exact: vec![ExactCheck { anchor: TWO, means: means.to_vec() }],
            calibration: vec![failed.clone()],
            ..StudyFindings::new(vec![failed], Vec::new(), Report::new("", ""))
        }
    }

    #[test]
    fn only_an_exact_check_that_fails_is_a_defect() {
        let around =
            |mean: f64| [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0].map(|by| mean + 0.01 * by);
        assert!(findings(around(2.83)).defects().is_ok());
        let error = findings(around(2.9)).defects().unwrap_err();
        assert_eq!(error.exit_code(), std::process::ExitCode::from(1));
        let text = error.to_string();
        assert!(
            text.contains("1 of 1 exact checks failed: t2, two of 16: 2.9000 ±") && text.contains("2.83"),
            "{text}"
        );
        // One that is too wide to say anything is one, too.
        assert!(findings(around(2.83).map(|mean| 2.83 + 10.0 * (mean - 2.83))).defects().is_err());
    }
}
