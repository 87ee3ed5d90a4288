//! Ejection of a back-end that fails requests of clients: when it is left out, and when it is back. A state
//! machine without clock, input or output.
//!
//! ```text
//!            failures in a row, or share of failures in the window
//!   included ────────────────────────────────────────────────────► ejected
//!      ▲                                                           │     ▲
//!      │ trials answered in a row                        time over │     │ a trial failed:
//!      └──────────────────────── on trial ◄────────────────────────┘     │ twice the time
//!                                    └───────────────────────────────────┘
//! ```
//!
//! Nothing is done for a request that a back-end answers: the number of answers so far, which is counted anyway,
//! says at the next failure whether there was an answer in between.

use std::time::Instant;

use plimsoll_config::EjectionConfig;

/// Fewest requests of which a share of failures is formed.
const LEAST_REQUESTS: u64 = 20;
/// The longest ejection, in first ones.
const LONGEST: u32 = 30;

/// Where a back-end stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Included,
    Ejected {
        until: Instant,
    },
    OnTrial {
        /// Trials answered since it is on trial.
        answered: u32,
        /// Whether one is under way.
        under_way: bool,
    },
}

/// What a failure or a trial has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EjectionChange {
    /// It takes no requests for a while.
    Ejected,
    /// It takes requests again.
    Readmitted,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialEnd {
    /// The back-end answered.
    Answered,
    /// It did not.
    Failed,
    /// Nobody knows: the client went away, or the request went another way.
    Unknown,
}

/// Failures of one back-end, and what follows from them.
#[derive(Debug, Clone)]
pub(crate) struct Ejection {
    standing: Standing,
    /// Failures since the last answer.
    in_a_row: u32,
    /// Answers so far when the last failure was counted.
    answers_then: u64,
    /// When the window began, failures in it, and answers before it.
    window: Option<(Instant, u64, u64)>,
    /// Length of the last ejection, in first ones; 0 before any.
    length: u32,
    /// When it was readmitted.
    readmitted: Option<Instant>,
}

impl Ejection {
    pub(crate) const fn new() -> Self {
        Self {
            standing: Standing::Included,
            in_a_row: 0,
            answers_then: 0,
            window: None,
            length: 0,
            readmitted: None,
        }
    }

    /// Whether it takes no requests but trials.
    pub(crate) fn is_ejected(&self) -> bool {
        self.standing != Standing::Included
    }

    /// Counts a failed request, after `answers` answered ones in all. True when the back-end has to be ejected: the
    /// caller does so by [`Ejection::eject`] where that may be.
    pub(crate) fn failed(&mut self, answers: u64, now: Instant, config: &EjectionConfig) -> bool {
        self.in_a_row = if answers == self.answers_then { self.in_a_row.saturating_add(1) } else { 1 };
        self.answers_then = answers;
        let fresh = (now, 0, answers);
        let (began, failures, before) =
            self.window.filter(|w| now.saturating_duration_since(w.0) <= config.window).unwrap_or(fresh);
        let failures = failures + 1;
        self.window = Some((began, failures, before));
        if self.is_ejected() || config.failures == 0 {
            return false;
        }
        let requests = failures + answers.saturating_sub(before);
        let share = failures * 1000 >= requests * u64::from(config.share_permille);
        self.in_a_row >= config.failures || (requests >= LEAST_REQUESTS && share)
    }

    /// Ejects it.
    pub(crate) fn eject(&mut self, now: Instant, config: &EjectionConfig) {
        // One that was well for as long as the longest ejection begins anew.
        let well = self
            .readmitted
            .take()
            .is_some_and(|at| now.saturating_duration_since(at) > config.time * LONGEST);
        let length = if well { 0 } else { self.length };
        self.length = (length * 2).clamp(1, LONGEST);
        self.standing = Standing::Ejected { until: now + config.time * self.length };
        self.window = None;
        self.in_a_row = 0;
    }

    /// Forgets everything, after the back-end was down.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Whether a request may be sent to it on trial now; that trial is then under way.
    pub(crate) fn begin_trial(&mut self, now: Instant) -> bool {
        match &mut self.standing {
            Standing::Ejected { until } if *until <= now => {
                self.standing = Standing::OnTrial { answered: 0, under_way: true };
                true
            }
            Standing::OnTrial { under_way, .. } if !*under_way => {
                *under_way = true;
                true
            }
            _ => false,
        }
    }

    /// The trial under way has ended.
    pub(crate) fn end_trial(
        &mut self,
        end: TrialEnd,
        now: Instant,
        config: &EjectionConfig,
    ) -> Option<EjectionChange> {
        let Standing::OnTrial { answered, under_way } = &mut self.standing else { return None };
        *under_way = false;
        match end {
            TrialEnd::Unknown => None,
            TrialEnd::Failed => {
                self.eject(now, config);
                Some(EjectionChange::Ejected)
            }
            TrialEnd::Answered => {
                *answered += 1;
                if *answered < config.trials {
                    return None;
                }
                self.standing = Standing::Included;
                self.readmitted = Some(now);
                Some(EjectionChange::Readmitted)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn config() -> EjectionConfig {
        EjectionConfig {
            failures: 5,
            share_permille: 300,
            window: 10 * SECOND,
            time: SECOND,
            trials: 3,
            most_permille: 500,
        }
    }

    #[test]
    fn failures_in_a_row() {
        let (mut e, now, config) = (Ejection::new(), Instant::now(), config());
        let told: Vec<bool> =
            [7, 7, 7, 7, 7].iter().map(|&answers| e.failed(answers, now, &config)).collect();
        assert_eq!(told, [false, false, false, false, true]);
        // An answer in between begins a new row.
        let mut e = Ejection::new();
        assert!([1, 1, 1, 1, 2, 2, 2].iter().all(|&answers| !e.failed(answers, now, &config)));
        let never = EjectionConfig { failures: 0, ..config };
        let mut e = Ejection::new();
        assert!((0..100).all(|_| !e.failed(0, now, &never)));
    }

    #[test]
    fn a_share_of_the_window() {
        let (now, config) = (Instant::now(), config());
        // Every other request fails: at the tenth failure there were nineteen requests, at the eleventh there are 21.
        let mut e = Ejection::new();
        let first = (1..).find(|&n| e.failed(n - 1, now, &config));
        assert_eq!(first, Some(11));
        // One of ten fails: never.
        let mut e = Ejection::new();
        assert!((0..1000).all(|n| !e.failed(9 * n, now, &config)));
        // Every other one, but slowly: the window is over before there are twenty.
        let mut e = Ejection::new();
        assert!((0..100).all(|n| !e.failed(u64::from(n), now + n * 2 * SECOND, &config)));
    }

    #[test]
    fn trials_bring_it_back_and_failed_ones_double_the_time() {
        let (mut e, start, config) = (Ejection::new(), Instant::now(), config());
        e.eject(start, &config);
        assert!(e.is_ejected() && !e.begin_trial(start + SECOND / 2));
        let at = start + SECOND;
        assert!(e.begin_trial(at));
        assert!(!e.begin_trial(at), "one at a time");
        assert_eq!(e.end_trial(TrialEnd::Answered, at, &config), None);
        assert!(e.begin_trial(at));
        assert_eq!(e.end_trial(TrialEnd::Unknown, at, &config), None);
        assert!(e.begin_trial(at));
        assert_eq!(e.end_trial(TrialEnd::Failed, at, &config), Some(EjectionChange::Ejected));
        assert!(!e.begin_trial(at + SECOND) && e.begin_trial(at + 2 * SECOND));
        let mut back = None;
        for _ in 0..3 {
            assert_eq!(back, None);
            back = e.end_trial(TrialEnd::Answered, at + 2 * SECOND, &config);
            e.begin_trial(at + 2 * SECOND);
        }
        assert_eq!((back, e.is_ejected()), (Some(EjectionChange::Readmitted), false));
        // Soon again: longer still; after a long while: as at first.
        let mut later = e.clone();
        e.eject(at + 3 * SECOND, &config);
        assert_eq!(e.length, 4);
        later.eject(at + 60 * SECOND, &config);
        assert_eq!(later.length, 1);
        (0..10).for_each(|_| later.eject(at + 60 * SECOND, &config));
        assert_eq!(later.length, LONGEST);
    }
}
