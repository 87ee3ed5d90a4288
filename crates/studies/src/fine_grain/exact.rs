//! The simulator and its policies beside what theory says of servers without delays. A check that fails is a defect of ours: the paper
//! has no part in it.

use plimsoll_report::{Align, Cell, Run, Table, TableColumn, Tone};
use rayon::prelude::*;

use super::plan::{Choice, FineGrainRun, Grain};
use crate::confidence::ConfidenceLevel;
use crate::execute::execute;
use crate::matrix::Progress;
use crate::study_error::StudyError;
use crate::workload::Workload;

/// The level of the confidence intervals, in per cent.
pub const EXACT_LEVEL_PERCENT: f64 = 99.0;

/// A mean response time that is known: 16 servers, Poisson arrivals, exponential service times, no delays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// Short name, `t1` to `t6`.
    pub id: &'static str,
    /// How servers are chosen, and at which load.
    pub statement: &'static str,
    /// The mean response time, in mean service times.
    pub theory: f64,
    /// By how much that may be off, because it is known to so many digits only.
    pub rounding: f64,
    /// The greatest half-width of a confidence interval that still says something.
    pub widest: f64,
}

/// M/M/1 for a server at random; the others were computed exactly, and are known to these digits. The intervals may be about as
/// wide as the tolerance of two that are asked at 90 %, 2.83 ± 0.03, which is 1.06 %; a random server's queue takes longest to average
/// out.
pub(super) const ANCHORS: [(Anchor, Choice, u32); 6] = [
    (
        Anchor {
            id: "t1",
            statement: "a random server of 16, 90 % (M/M/1)",
            theory: 10.0,
            rounding: 0.0,
            widest: 0.3,
        },
        Choice::Random,
        90,
    ),
    (
        Anchor {
            id: "t2",
            statement: "the less loaded of two that are asked, of 16, 90 %",
            theory: 2.83,
            rounding: 0.005,
            widest: 0.03,
        },
        Choice::Polled(2),
        90,
    ),
    (
        Anchor {
            id: "t3",
            statement: "the shortest queue of 16, 90 %",
            theory: 1.575,
            rounding: 0.0005,
            widest: 0.017,
        },
        Choice::Least,
        90,
    ),
    (
        Anchor {
            id: "t4",
            statement: "a random server of 16, 50 % (M/M/1)",
            theory: 2.0,
            rounding: 0.0,
            widest: 0.02,
        },
        Choice::Random,
        50,
    ),
    (
        Anchor {
            id: "t5",
            statement: "the less loaded of two that are asked, of 16, 50 %",
            theory: 1.277,
            rounding: 0.0005,
            widest: 0.01,
        },
        Choice::Polled(2),
        50,
    ),
    (
        Anchor {
            id: "t6",
            statement: "the shortest queue of 16, 50 %",
            theory: 1.005,
            rounding: 0.0005,
            widest: 0.01,
        },
        Choice::Least,
        50,
    ),
];

/// An anchor with what independent runs of it have shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ExactCheck {
    /// What theory says.
    pub anchor: Anchor,
    /// The mean response time of each run, in mean service times.
    pub means: Vec<f64>,
}

impl ExactCheck {
    /// The mean over the runs.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.means.iter().sum::<f64>() / self.means.len() as f64
    }

    /// Half of the confidence interval of the mean; not a number with fewer than two runs.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        ConfidenceLevel::PERCENT_99.of_mean(&self.means).1.unwrap_or(f64::NAN)
    }

    /// The interval is narrow enough to say something, and theory lies within it.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.is_narrow() && self.agrees()
    }

    fn is_narrow(&self) -> bool {
        self.half_width() <= self.anchor.widest
    }

    fn agrees(&self) -> bool {
        (self.mean() - self.anchor.theory).abs() <= self.half_width() + self.anchor.rounding
    }

    /// Why it fails, in words; `None` where it holds.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let Anchor { id, statement, theory, widest, .. } = self.anchor;
        let (mean, half) = (self.mean(), self.half_width());
        let found = format!("{id}, {statement}: {mean:.4} ± {half:.4}");
        if !self.is_narrow() {
            return Some(format!("{found} is wider than ± {widest}, so that it says nothing"));
        }
        (!self.agrees()).then(|| format!("{found} excludes {theory}, which theory says"))
    }
}

/// The checks as a table.
#[must_use]
pub fn exact_table(checks: &[ExactCheck]) -> Table {
    let column = TableColumn::new;
    let mut table = Table::new([
        column("id", Align::Left),
        column("exact check", Align::Left).wraps_at(26).meaning("how servers are chosen, and at which load"),
        column("theory", Align::Right).meaning("mean response time in mean service times"),
        column("ours", Align::Right).meaning("mean of our runs"),
        column("99 % interval", Align::Right)
            .meaning("confidence interval of that mean, by Student's t over the runs"),
        column("runs", Align::Right).rank(2).meaning("independent runs"),
        column("half-width", Align::Right)
            .rank(1)
            .meaning("half-width of the interval, and the greatest allowed one"),
        column("verdict", Align::Left)
            .meaning("holds: the interval is narrow enough, and theory lies within it"),
    ]);
    table.reflows = true;
    for check in checks {
        let (mean, half) = (check.mean(), check.half_width());
        let verdict = if check.holds() { ("holds", Tone::Good) } else { ("fails", Tone::Bad) };
        table.row([
            Cell::from(check.anchor.id),
            Cell::from(check.anchor.statement),
            Cell::from(check.anchor.theory.to_string()),
            Cell::from(format!("{mean:.4}")),
            Cell::from(format!("{:.4} … {:.4}", mean - half, mean + half)),
            Cell::from(check.means.len().to_string()),
            Cell::from(format!("{half:.4} (≤ {})", check.anchor.widest)),
            Cell::toned(verdict.0, verdict.1),
        ]);
    }
    table
}

/// How many checks hold, in words.
#[must_use]
pub fn exact_conclusion(checks: &[ExactCheck]) -> String {
    let hold = checks.iter().filter(|check| check.holds()).count();
    format!(
        "Exact checks: {hold} of {} hold, with confidence intervals of {EXACT_LEVEL_PERCENT} %.",
        checks.len()
    )
}

/// How much is simulated for the checks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExactExtent {
    /// Independent runs, each with a workload of its own.
    pub(super) runs: u64,
    /// Requests of a run at 90 %.
    pub(super) requests: u64,
}

impl ExactExtent {
    /// At half the load queues are forgotten much sooner.
    fn requests(self, load_percent: u32) -> u64 {
        if load_percent > 50 { self.requests } else { self.requests / 5 }
    }

    /// All requests of all checks.
    pub(super) fn all_requests(self) -> u64 {
        self.runs * ANCHORS.iter().map(|&(.., load_percent)| self.requests(load_percent)).sum::<u64>()
    }
}

/// Simulates the checks. The workloads follow from `seed`.
pub(super) fn checks(
    extent: ExactExtent,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Vec<ExactCheck>, Vec<Run>), StudyError> {
    let one = |number: u64| run_all(extent, seed.wrapping_mul(1000).wrapping_add(number), progress);
    let done: Vec<Vec<Run>> =
        (1..=extent.runs).into_par_iter().map(one).collect::<Result<_, StudyError>>()?;
    let of_anchor = |(place, (anchor, ..)): (usize, (Anchor, Choice, u32))| {
        let service_s = Grain::PoissonExp.service_s();
        let mean = |runs: &Vec<Run>| Some(runs.get(place)?.response_time_s?.mean / service_s);
        ExactCheck { anchor, means: done.iter().filter_map(mean).collect() }
    };
    let checks = ANCHORS.into_iter().enumerate().map(of_anchor).collect();
    Ok((checks, done.into_iter().flatten().collect()))
}

/// Every check once, in the order of the anchors.
fn run_all(extent: ExactExtent, seed: u64, progress: &dyn Progress) -> Result<Vec<Run>, StudyError> {
    let mut runs = Vec::new();
    for load_percent in [90, 50] {
        let requests = extent.requests(load_percent);
        let workload = Workload::synthesize("poisson_exp", &[("requests", &requests.to_string())], seed)?;
        for (_, choice, _) in ANCHORS.into_iter().filter(|(.., load)| *load == load_percent) {
            let run = FineGrainRun::anchor(choice, load_percent);
            let mut done = execute(&run.scenario(requests, seed)?, &workload, &mut ())?;
            done.load_series = Default::default();
            progress.advance(requests);
            runs.push(done);
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(means: &[f64]) -> ExactCheck {
        ExactCheck { anchor: ANCHORS[1].0, means: means.to_vec() }
    }

    /// So many means around this one.
    fn around(mean: f64, off: f64) -> Vec<f64> {
        (0..18).map(|n| if n % 2 == 0 { mean - off } else { mean + off }).collect()
    }

    #[test]
    fn an_interval_by_hand() {
        // Deviation 0.02 · √(18 / 17), over √18, times 2.898.
        let check = check(&around(2.83, 0.02));
        assert!((check.half_width() - 2.898 * 0.02 / 17.0_f64.sqrt()).abs() < 1e-5);
        assert!(check.holds() && check.failure().is_none());
    }

    #[test]
    fn theory_must_lie_within_an_interval_that_is_narrow() {
        let off = check(&around(2.86, 0.02));
        assert!(!off.holds() && off.failure().unwrap().contains("excludes 2.83"));
        let wide = check(&around(2.83, 0.06));
        assert!(!wide.holds() && wide.failure().unwrap().contains("wider than ± 0.03"));
        // One run has no interval at all.
        assert!(!check(&[2.83]).holds() && check(&[2.83]).failure().is_some());
        let table = exact_table(&[off, wide, check(&around(2.83, 0.02))]);
        let verdicts: Vec<&str> = table.rows.iter().map(|row| row.cells[7].text.as_str()).collect();
        assert_eq!(verdicts, ["fails", "fails", "holds"]);
    }

    /// The front-ends and policies of the study, not a copy of them.
    #[test]
    fn the_simulator_agrees_with_theory() {
        let (checks, runs) = checks(ExactExtent { runs: 12, requests: 150_000 }, 1, &()).unwrap();
        assert_eq!((checks.len(), runs.len()), (6, 12 * 6));
        for check in checks {
            // A fifth of the requests of the quick form: twice as wide.
            assert!(check.agrees() && check.half_width() < 3.0 * check.anchor.widest, "{check:?}");
        }
    }
}
