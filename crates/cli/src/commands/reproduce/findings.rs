//! What a study found.

use plimsoll_report::{Claim, Report, Run};

/// The results of a study.
pub(super) struct StudyFindings {
    pub(super) calibration: Vec<Claim>,
    pub(super) claims: Vec<Claim>,
    pub(super) runs: Vec<Run>,
    pub(super) report: Report,
}
