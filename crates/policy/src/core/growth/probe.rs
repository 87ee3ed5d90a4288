//! Tries whether overloaded back-ends answer more when they get more.
//!
//! Slow responses are a sign of overload, not a proof: a kind of request may have become slower, or nothing may be known of it
//! yet. Back-ends that queue answer no more per second however many requests they have. So while they seem overloaded, the limit
//! is raised for a moment. If as large a share more is answered as half of the share more that is under way, it stays raised, and
//! is tried again at once. Else it is tried again after a pause. Now and then a raised limit is tried lower.
//!
//! ```text
//! limit   = S * (5/4)^steps
//! measure   at the limit: requests under way, responses per second
//! settle    at 5/4 times, or 4/5 times, the limit, for 2 mean response times
//! try       measure there
//! ```

use crate::time::{Nanos, Time};

/// Responses and time that a measurement takes at least. The time is [`MEASURED_MEANS`] mean response times where that is longer.
const RESPONSES: u64 = 100;
const MEASURE: Nanos = Nanos::from_millis(500);
const SETTLE: Nanos = Nanos::from_millis(200);
/// Mean response times of a measurement and before it: among fast requests there are slow ones, whose responses take longer.
const MEASURED_MEANS: u64 = 3;
const SETTLED_MEANS: u64 = 2;
/// The pause after a try that failed; it doubles each time.
const FIRST_PAUSE: Nanos = Nanos::from_secs(8);
const LONGEST_PAUSE: Nanos = Nanos::from_secs(60);
/// After so many tries that failed, a lower limit is tried once.
const FAILED: u32 = 4;
/// Back-ends that seem overloaded now and then, with shorter pauses than this, seem so all the time.
const LAPSE: Nanos = Nanos::from_secs(2);
/// The limit is S again when they have not seemed overloaded for this long.
const OVER: Nanos = Nanos::from_secs(60);
/// The limit is raised so often at most.
const STEPS: u32 = 26;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Measure,
    Settle,
    Try,
    Pause,
}

/// What was measured over some time.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    responses: u64,
    /// Of their response times.
    sum: u128,
    /// Requests under way, times nanoseconds.
    area: u128,
    time: u64,
}

impl Sample {
    fn mean(&self) -> Nanos {
        Nanos::new(u64::try_from(self.sum / u128::from(self.responses.max(1))).unwrap_or(u64::MAX))
    }

    fn is_enough(&self) -> bool {
        let time = MEASURE.as_nanos().max(self.mean().as_nanos().saturating_mul(MEASURED_MEANS));
        self.responses >= RESPONSES && self.time >= time
    }

    /// Thousandths of requests under way.
    fn load(&self) -> u128 {
        1000 * self.area / u128::from(self.time.max(1))
    }

    /// Whether there were about `limit` requests under way: not fewer, nor still more from before it was the limit.
    fn is_full(&self, limit: u64) -> bool {
        (900 * u128::from(limit)..=1100 * u128::from(limit)).contains(&self.load())
    }

    /// Whether `more` requests under way bring at least half as large a share more responses: 2 · (rate' / rate − 1) ≥
    /// load' / load − 1. By Little's law rate = load / mean; counting responses would tell less, as they may come in bursts.
    fn pays(&self, more: &Self) -> bool {
        let per_mille = |a: u128, b: u128| (1000 * a).checked_div(b).unwrap_or(1000);
        let load = per_mille(more.load(), self.load());
        let faster = per_mille(self.mean().as_nanos().into(), more.mean().as_nanos().into());
        2 * load * faster >= (load + 1000) * 1000
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Probe {
    steps: u32,
    lower: bool,
    stage: Stage,
    sample: Sample,
    /// At the limit.
    before: Sample,
    /// When the stage began, and until when the sample goes.
    since: Time,
    until: Time,
    /// The pause after a try that failed.
    pause: Nanos,
    failed: u32,
    /// When back-ends last seemed overloaded.
    seen: Option<Time>,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            steps: 0,
            lower: false,
            stage: Stage::Measure,
            sample: Sample::default(),
            before: Sample::default(),
            since: Time::ZERO,
            until: Time::ZERO,
            pause: Nanos::ZERO,
            failed: 0,
            seen: None,
        }
    }
}

impl Probe {
    /// Whether back-ends seem, or lately seemed, overloaded.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.seen.is_some()
    }

    /// The limit now, where S is `base`.
    pub(super) fn limit(&self, base: u64) -> u64 {
        let tries = matches!(self.stage, Stage::Settle | Stage::Try);
        let steps = match (tries, self.lower) {
            (false, _) => self.steps,
            (true, false) => self.steps + 1,
            (true, true) => self.steps.saturating_sub(1),
        };
        (0..steps).fold(base, |limit, _| limit.saturating_add(limit / 4))
    }

    /// Until `now`, `load` requests were under way.
    pub(super) fn pass(&mut self, load: u64, now: Time) {
        let time = now.since(self.until).as_nanos();
        self.sample.area += u128::from(load) * u128::from(time);
        self.sample.time += time;
        self.until = now;
    }

    /// A response has come after this time; S is `base`.
    pub(super) fn responded(&mut self, time: Nanos, overloaded: bool, base: u64, now: Time) {
        if overloaded {
            if self.seen.is_none() {
                self.enter(Stage::Measure, now);
            }
            self.seen = Some(now);
        }
        let Some(seen) = self.seen else { return };
        if now.since(seen) > OVER {
            *self = Self::default();
            return;
        }
        if now.since(seen) > LAPSE {
            if self.stage != Stage::Pause {
                self.enter(Stage::Measure, now);
            }
            return;
        }
        self.sample.responses += 1;
        self.sample.sum += u128::from(time.as_nanos());
        let passed = now.since(self.since);
        match self.stage {
            Stage::Pause if passed >= self.pause => self.enter(Stage::Measure, now),
            Stage::Measure if self.sample.is_enough() => self.measured(base, now),
            Stage::Settle if passed >= self.settles() => self.enter(Stage::Try, now),
            Stage::Try if self.sample.is_enough() => self.tried(now),
            _ => {}
        }
    }

    /// What was let in before is answered after as long.
    fn settles(&self) -> Nanos {
        SETTLE.max(Nanos::new(self.before.mean().as_nanos().saturating_mul(SETTLED_MEANS)))
    }

    /// The limit is tried only where it is what keeps requests out.
    fn measured(&mut self, base: u64, now: Time) {
        let full = self.sample.is_full(self.limit(base)) && self.steps < STEPS;
        self.before = self.sample;
        self.enter(if full { Stage::Settle } else { Stage::Measure }, now);
    }

    fn tried(&mut self, now: Time) {
        let better =
            if self.lower { !self.sample.pays(&self.before) } else { self.before.pays(&self.sample) };
        if !better {
            self.failed += 1;
            self.lower = self.steps > 0 && self.failed.is_multiple_of(FAILED);
            return self.rest(now);
        }
        self.before = self.sample;
        self.pause = Nanos::ZERO;
        self.steps = if self.lower { self.steps - 1 } else { self.steps + 1 };
        if self.lower && self.steps == 0 || self.steps == STEPS {
            self.lower = false;
            return self.rest(now);
        }
        self.enter(Stage::Settle, now);
    }

    fn rest(&mut self, now: Time) {
        self.pause = FIRST_PAUSE.max(Nanos::new(2 * self.pause.as_nanos())).min(LONGEST_PAUSE);
        self.enter(Stage::Pause, now);
    }

    fn enter(&mut self, stage: Stage, now: Time) {
        (self.stage, self.since, self.until, self.sample) = (stage, now, now, Sample::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 100;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Runs a back-end at its limit until `to_ms`: it answers as many per second as this function of the requests under way
    /// says, 20 at a time.
    fn run(probe: &mut Probe, (from_ms, to_ms): (u64, u64), per_s: fn(u64) -> u64) -> Vec<u64> {
        let (mut owed, mut limits) = (0, vec![probe.limit(S)]);
        for time in from_ms..to_ms {
            let limit = probe.limit(S);
            probe.pass(limit, ms(time));
            owed += per_s(limit);
            while owed >= 20_000 {
                owed -= 20_000;
                let response_time = Nanos::from_millis(1000 * limit / per_s(limit));
                (0..20).for_each(|_| probe.responded(response_time, true, S, ms(time)));
            }
            if limits.last() != Some(&probe.limit(S)) {
                limits.push(probe.limit(S));
            }
        }
        limits
    }

    #[test]
    fn back_ends_that_queue_get_no_more() {
        let mut probe = Probe::default();
        let limits = run(&mut probe, (0, 40_000), |_| 500);
        // Tried after one, ten and twenty-seven seconds or so.
        assert_eq!(limits, [S, 125, S, 125, S, 125, S]);
    }

    #[test]
    fn back_ends_that_only_take_their_time_get_more_and_more() {
        let mut probe = Probe::default();
        // Each request takes half a second, but no more than 400 at once are answered.
        let limits = run(&mut probe, (0, 20_000), |load| 2 * load.min(400));
        assert!(limits.starts_with(&[S, 125, 156, 195, 243, 303, 378]), "{limits:?}");
        assert!(*limits.iter().max().unwrap() <= 472, "{limits:?}");
        // What is too much is noticed, and what became too much as well.
        let (limit, least) =
            (probe.limit(S), *run(&mut probe, (20_000, 1_200_000), |_| 200).iter().min().unwrap());
        assert!(limit >= 303 && least <= 125, "{limit}, then {least}");
    }

    #[test]
    fn when_all_has_been_well_for_a_minute_the_limit_is_s() {
        let mut probe = Probe::default();
        run(&mut probe, (0, 10_000), |load| 2 * load);
        let limit = probe.limit(S);
        assert!(limit > 200 && probe.is_on());
        for time in 10_000..69_000 {
            probe.responded(Nanos::from_millis(500), false, S, ms(time));
        }
        assert!(probe.is_on() && probe.limit(S) >= limit / 2);
        probe.responded(Nanos::from_millis(500), false, S, ms(70_001));
        assert_eq!((probe.limit(S), probe.is_on()), (S, false));
    }

    #[test]
    fn a_limit_that_keeps_nobody_out_is_not_tried() {
        let mut probe = Probe::default();
        for time in 0..20_000 {
            probe.pass(S / 2, ms(time));
            probe.responded(Nanos::from_millis(50), true, S, ms(time));
            assert_eq!(probe.limit(S), S);
        }
    }
}
