//! What the paper says of the CPU of its prototype's front-end, and why claims about the prototype do not hold.

use plimsoll_report::Measured;

use super::rule::{MeasuredClaim, PaperReference, Rule};

/// The number of the figure that measures the prototype.
pub const FIGURE: u32 = 17;
/// Back-ends of its largest cluster.
pub(super) const MOST: usize = 6;

/// The claims about a front-end's CPU that was busy for this share of the time with LARD/R on six back-ends. They are
/// bars: a front-end of today that needs more of its CPU would be wrong somewhere.
pub(super) fn of(
    measured: impl Fn(Option<f64>) -> Vec<Measured>,
    busy: Option<f64>,
) -> impl Iterator<Item = MeasuredClaim> {
    let finding = |id, place, statement, paper, paper_text, value| MeasuredClaim {
        id,
        place,
        statement,
        paper: Some(paper),
        paper_text,
        unit: "%",
        // A bar: the paper's own figure, and less is no failure. 17h follows from 17g and its bound from 60 %
        // times 10/6, so the two have one verdict.
        rule: Rule::AtMost(paper),
        measured: measured(value),
        explanation: EXPLAIN_FRONT_END.to_owned(),
    };
    [
        finding(
            "17g",
            PaperReference::Section("6.3", Some(FIGURE)),
            "with LARD/R on six back-ends the front-end's CPU is in use for 60 % of the time",
            60.0,
            "60 %",
            busy.map(|busy| 100.0 * busy),
        ),
        finding(
            "17h",
            PaperReference::Section("6.2", Some(FIGURE)),
            "so one CPU is enough for ten back-ends (derived: ten sixths of that use)",
            100.0,
            "10 back-ends",
            busy.map(|busy| 100.0 * busy * 10.0 / MOST as f64),
        ),
    ]
    .into_iter()
}

const EXPLAIN_FRONT_END: &str = "\
    The use of the front-end's CPU grows with the requests that it hands off, which here come from back-ends of emulated \
    speed.";

pub(super) const EXPLAIN_RATIO: &str = "\
    The prototype was given a segment of the Rice trace that is not published, and one of its back-ends alone served 167 \
    requests/s: about twice what one serves here at the paper's disk speed. So it missed less, and left less to gain. It \
    also had file caches of 70 to 97 MB, Apache, and connection handoff between six machines; here disks and CPUs are \
    emulated with the times of section 3.1, and caches are those of the simulations, 32 MB, scaled down like the \
    contents. What the ratio should be in this setting is for the simulator to say, and 17b compares with it.";

pub(super) const EXPLAIN_SIMULATOR: &str = "\
    Real requests take time that the simulator does not count: they pass client, front-end and origin on the CPUs of one \
    machine, which the table shows as busy, and timers end up to a millisecond late. Where this machine was busy for most of the time, \
    its CPUs and not the emulated hardware set the pace.";
