//! Ejection of a back-end that fails requests of clients: when it is left out, and when it is back. A state
//! machine without clock, input or output.
//!
//! ```text
//!            failures in a row, or share of failures in the window
//!   included ────────────────────────────────────────────────────► ejected ◄──┐
//!      ▲                                                              │       │ a trial failed:
//!      │ trials answered in a row, or no trial within the bounds      │       │ twice the time
//!      └──────────────────────────────────────────────────────────────┴───────┘
//! ```
//!
//! Trials alone do not bring every back-end back: there may be no request that can be tried. So an ejection also ends
//! when no trial has begun for a while, and in any case [`LATEST`] after its time.
//!
//! Nothing is done for a request that a back-end answers: the number of answers so far, which is counted anyway,
//! says at the next failure whether there was an answer in between.

use std::time::{Duration, Instant};

use plimsoll_config::EjectionConfig;

/// Fewest requests of which a share of failures is formed.
const LEAST_REQUESTS: u64 = 20;
/// The longest ejection, in first ones.
const LONGEST: u32 = 30;
/// The latest end of an ejection in which no trial failed, after its time.
const LATEST: Duration = Duration::from_secs(30);
/// How long at least a trial is waited for.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
/// A trial that has not ended for this long is forgotten, so that another one can begin.
const LONGEST_TRIAL: Duration = Duration::from_secs(10);
/// A back-end that has left a client without a byte for this long is slow.
const SLOW: Duration = Duration::from_secs(1);

/// The state of an ejected back-end.
#[derive(Debug, Clone)]
struct LeftOut {
    /// How long no trial begins.
    time: Duration,
    /// No trial begins before: while one is under way, until that one is forgotten.
    trials_from: Instant,
    /// It is back then if no trial has begun.
    untried_until: Instant,
    /// It is back then if no trial has failed.
    ends: Instant,
    /// Trials answered in a row.
    answered: u32,
    /// The trial under way: its number, and when it began.
    trial: Option<(u64, Instant)>,
    /// For one that is slow: an answer that takes as long is none.
    slow: Option<Duration>,
}

impl LeftOut {
    fn new(now: Instant, time: Duration) -> Self {
        let trials_from = now + time;
        let ends = trials_from + LATEST;
        let mut new =
            Self { time, trials_from, untried_until: ends, ends, answered: 0, trial: None, slow: None };
        new.wait_for_trial(trials_from);
        new
    }

    /// The next trial may begin at `from`, and is waited for as long again.
    fn wait_for_trial(&mut self, from: Instant) {
        self.trials_from = from;
        self.untried_until = from + self.time.clamp(LEAST_PATIENCE, LATEST);
    }
}

/// What a trial has changed.
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
    /// It failed the request.
    Failed,
    /// It did not answer in time. It may be slow by nature at this request.
    TimedOut,
    /// The client went away first.
    ClientGone,
    /// Nobody knows: the request did not get there, for reasons that are not the back-end's.
    Unknown,
}

/// Failures of one back-end, and what follows from them.
#[derive(Debug, Default)]
pub(crate) struct Ejection {
    left_out: Option<LeftOut>,
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
    /// Trials begun so far: the number of the last one.
    trials: u64,
}

impl Ejection {
    /// Whether it takes no requests but trials.
    pub(crate) fn is_ejected(&self) -> bool {
        self.left_out.is_some()
    }

    /// When its trials begin, while it is ejected.
    pub(crate) fn trials_from(&self) -> Option<Instant> {
        self.left_out.as_ref().map(|out| out.trials_from)
    }

    /// Counts a failed request that was sent at the time `sent`, after `answers` answered ones in all. True when the
    /// back-end has to be ejected: the caller does so by [`Ejection::eject`] where that may be.
    pub(crate) fn failed(
        &mut self,
        sent: Instant,
        answers: u64,
        now: Instant,
        config: &EjectionConfig,
    ) -> bool {
        // What was sent before it was readmitted says nothing about it as it is now.
        if self.is_ejected() || self.readmitted.is_some_and(|at| sent < at) {
            return false;
        }
        self.in_a_row = if answers == self.answers_then { self.in_a_row.saturating_add(1) } else { 1 };
        self.answers_then = answers;
        let fresh = (now, 0, answers);
        let (began, failures, before) =
            self.window.filter(|w| now.saturating_duration_since(w.0) <= config.window).unwrap_or(fresh);
        let failures = failures + 1;
        self.window = Some((began, failures, before));
        if config.failures == 0 {
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
        self.left_out = Some(LeftOut::new(now, config.time * self.length));
    }

    /// Ejects one that is slow: it is back by trials that are answered within `limit`.
    pub(crate) fn eject_slow(&mut self, limit: Duration, now: Instant, config: &EjectionConfig) {
        self.eject(now, config);
        self.left_out.iter_mut().for_each(|out| out.slow = Some(limit));
    }

    /// What takes as long is no answer, while it is ejected because it is slow.
    pub(crate) fn slow_limit(&self) -> Option<Duration> {
        self.left_out.as_ref().and_then(|out| out.slow)
    }

    /// Whether it is ejected because it is slow.
    pub(crate) fn is_slow(&self) -> bool {
        self.left_out.as_ref().is_some_and(|out| out.slow.is_some())
    }

    /// Takes it back, with fresh counts. Should it fail again soon, it is ejected for longer.
    pub(crate) fn readmit(&mut self, now: Instant) {
        if self.left_out.take().is_some() {
            self.readmitted = Some(now);
            (self.in_a_row, self.window) = (0, None);
        }
    }

    /// Forgets everything, after the back-end was down or an operator had it back.
    pub(crate) fn clear(&mut self) {
        // Numbers go on: a trial that began before is none of those that begin now.
        *self = Self { trials: self.trials, ..Self::default() };
    }

    /// Whether it is to be readmitted though no trial says so.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.left_out.as_ref().is_some_and(|out| now >= out.ends.min(out.untried_until))
    }

    /// Whether a request may be sent to it on trial now.
    pub(crate) fn is_trial_due(&self, now: Instant) -> bool {
        self.left_out.as_ref().is_some_and(|out| out.trials_from <= now)
    }

    /// Begins a trial where one is due; its number.
    pub(crate) fn begin_trial(&mut self, now: Instant) -> Option<u64> {
        if !self.is_trial_due(now) {
            return None;
        }
        let out = self.left_out.as_mut()?;
        self.trials += 1;
        out.trial = Some((self.trials, now));
        out.wait_for_trial(now + LONGEST_TRIAL);
        Some(self.trials)
    }

    /// The trial of this number has ended. One that was forgotten, or begun before the back-end was back, changes
    /// nothing.
    pub(crate) fn end_trial(
        &mut self,
        number: u64,
        end: TrialEnd,
        now: Instant,
        config: &EjectionConfig,
    ) -> Option<EjectionChange> {
        let out = self.left_out.as_mut()?;
        let (_, began) = out.trial.take_if(|(under_way, _)| *under_way == number)?;
        let slow = match end {
            TrialEnd::Failed => {
                self.eject(now, config);
                return Some(EjectionChange::Ejected);
            }
            TrialEnd::Answered
                if out.slow.is_some_and(|limit| now.saturating_duration_since(began) >= limit) =>
            {
                true
            }
            TrialEnd::Answered => {
                out.answered += 1;
                false
            }
            TrialEnd::TimedOut => true,
            TrialEnd::ClientGone => now.saturating_duration_since(began) >= SLOW,
            TrialEnd::Unknown => false,
        };
        if out.answered >= config.trials {
            self.readmit(now);
            return Some(EjectionChange::Readmitted);
        }
        if slow {
            // The next client, too, would wait in vain.
            out.answered = 0;
        }
        let time = out.time;
        out.wait_for_trial(if slow { now + time } else { now });
        None
    }
}

#[cfg(test)]
mod tests;
