//! Whether a request may wait long for room, or only briefly, because more comes than back-ends answer.
//!
//! ```text
//! present = requests that wait, whose back-ends are being asked, or that are under way
//! grows   = there are more present than are completed in 600 ms; and of the last second or two: present + refused has risen by more
//!           than an eighth of what was completed and what is completed in 100 ms
//! brief   = the queue has not been empty for 100 ms, and since then it grows, or a request has waited in vain;
//!           until the queue is empty, or as a trial after 0.3 s, 0.6 s, ... 60 s
//! ```
//!
//! Clients that send their next request when the last one was answered are never more than they are, however many: each waits
//! for their number divided by the throughput, and a refusal would be worth nothing to anybody. Where requests come whether or
//! not others were answered, and more than back-ends answer, the queue grows for as long as it may, and only makes each request
//! late. What is too much is refused soon then. That a queue which stands is worth nothing is the idea of CoDel (Nichols and
//! Jacobson, "Controlling queue delay", ACM Queue 10(5), 2012), in the form for requests of Maurer, "Fail at scale", ACM Queue
//! 13(8), 2015. These tell a queue that stands from one that grows by nothing but time.

use std::time::Duration;

use plimsoll_policy::{Nanos, Time};

/// What a request waits at most where more comes than back-ends answer, and where no back-end takes requests.
pub(super) const BRIEFLY: Nanos = Nanos::from_millis(100);
/// The same.
pub(super) const BRIEF: Duration = Duration::from_nanos(BRIEFLY.as_nanos());
/// A queue that has not been empty for longer is standing; a burst may come as fast as it likes.
const BURST: Nanos = Nanos::from_millis(100);
/// What is compared with is at least this old.
const LEAST_WINDOW: Nanos = Nanos::from_millis(200);
/// What is compared with is replaced by something newer when that is so old.
const WINDOW: Nanos = Nanos::from_secs(1);
/// Growth by so many requests says nothing.
const FEW: u64 = 12;
/// So long a wait is no reason to refuse anybody: what has to be completed before a request may come as fast as it likes.
const SHORT_WAIT_MS: u64 = 600;
/// From the end of patience to the first trial, and the longest such pause.
const PAUSES: (Nanos, Nanos) = (Nanos::from_millis(300), Nanos::from_secs(60));

/// Requests that the front-end has or had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Population {
    /// Requests that wait, whose back-ends are being asked, or that are under way.
    pub(super) present: u64,
    /// Requests refused so far.
    pub(super) refused: u64,
    /// Requests that back-ends have completed so far.
    pub(super) completed: u64,
}

impl Population {
    /// Whether it has grown by more than chance since it was `before`, `elapsed` ago.
    fn has_grown(self, before: Self, elapsed: Nanos) -> bool {
        let all = |p: Self| p.present + p.refused;
        let growth = all(self).saturating_sub(all(before));
        let completed = self.completed.saturating_sub(before.completed);
        let elapsed_ms = elapsed.as_nanos() / 1_000_000;
        // More than are completed in so many milliseconds.
        let exceeds =
            |n: u64, ms: u64| u128::from(n) * u128::from(elapsed_ms) > u128::from(completed) * u128::from(ms);
        growth > FEW && exceeds(growth - FEW, elapsed_ms / 8 + 100) && exceeds(self.present, SHORT_WAIT_MS)
    }
}

/// How long requests may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// When the queue was last seen empty, or a trial began.
    since: Time,
    /// What is compared with, and what comes in its place.
    before: [Option<(Time, Population)>; 2],
    /// A request has waited in vain since then.
    in_vain: bool,
    /// When patience ended.
    brief_from: Option<Time>,
    /// Whether that was because there are more and more requests.
    grows: bool,
    /// How long it is at an end.
    pause: Nanos,
}

impl Patience {
    pub(super) const fn new() -> Self {
        Self {
            since: Time::ZERO,
            before: [None; 2],
            in_vain: false,
            brief_from: None,
            grows: false,
            pause: PAUSES.0,
        }
    }

    /// The queue is empty.
    pub(super) fn is_empty(&mut self, now: Time) {
        *self = Self { since: now, ..Self::new() };
    }

    /// A request has waited for as long as it may.
    pub(super) fn waited_in_vain(&mut self) {
        self.in_vain = true;
    }

    /// Whether requests may wait only briefly, as far as is known.
    pub(super) fn is_brief(&self) -> bool {
        self.brief_from.is_some()
    }

    /// Whether that holds for those, too, that wait already: there are more and more. Where one has only waited in vain, most of the others are
    /// yet in time.
    pub(super) fn is_brief_for_all(&self) -> bool {
        self.is_brief() && self.grows
    }

    /// Looks at the front-end's requests; to be called when one has to wait, and from time to time.
    pub(super) fn look(&mut self, population: Population, now: Time) {
        if let Some(from) = self.brief_from {
            if now.since(from) >= self.pause {
                let pause = Nanos::new(2 * self.pause.as_nanos()).min(PAUSES.1);
                *self = Self { since: now, pause, ..Self::new() };
            }
            return;
        }
        if now.since(self.since) < BURST {
            return;
        }
        self.grows = self.compared(population, now);
        if self.grows || self.in_vain {
            self.brief_from = Some(now);
        }
    }

    /// Whether there are more requests than a second or two ago, or than at the end of the burst.
    fn compared(&mut self, population: Population, now: Time) -> bool {
        let [first, second] = &mut self.before;
        let (at, before) = *first.get_or_insert((now, population));
        let elapsed = now.since(at);
        match *second {
            Some((later, _)) if now.since(later) >= WINDOW => {
                self.before = [*second, Some((now, population))];
            }
            None if elapsed >= WINDOW => *second = Some((now, population)),
            _ => {}
        }
        elapsed >= LEAST_WINDOW && population.has_grown(before, elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A front-end whose back-ends complete `rate` requests a second, looked at every 10 ms.
    struct Model {
        patience: Patience,
        population: Population,
        ms: u64,
        /// Thousandths of requests.
        part: u64,
    }

    impl Model {
        fn new() -> Self {
            let (patience, population) = (Patience::new(), Population::default());
            let mut new = Self { patience, population, ms: 1_000_000, part: 0 };
            new.patience.is_empty(new.now());
            new
        }

        fn now(&self) -> Time {
            Time::from_nanos(self.ms * 1_000_000)
        }

        /// Passes this time. So many come a second beside those that come again when others are completed, and `refused` of
        /// them are not let in.
        fn pass(&mut self, ms: u64, rate: u64, comes: u64, refused: bool) -> bool {
            for _ in 0..ms / 10 {
                self.ms += 10;
                self.part += 10 * comes;
                let new = self.part / 1000;
                self.part %= 1000;
                self.population.completed += rate / 100;
                if refused {
                    self.population.refused += new;
                } else {
                    self.population.present += new;
                }
                let now = self.now();
                self.patience.look(self.population, now);
                if self.patience.is_brief() {
                    return true;
                }
            }
            false
        }
    }

    #[test]
    fn many_clients_that_wait_for_answers_may_wait() {
        for (clients, rate) in [(10_000, 20_000), (1000, 400), (100, 100)] {
            let mut model = Model::new();
            model.population.present = clients;
            assert!(!model.pass(60_000, rate, 0, false), "{clients} clients, {rate}/s");
        }
    }

    #[test]
    fn a_client_that_joins_now_and_then_ends_no_patience() {
        let mut model = Model::new();
        assert!(!model.pass(30_000, 400, 33, false), "1,000 within 30 s");
    }

    #[test]
    fn overload_is_noticed_when_waits_are_long() {
        for (times_tenths, within_ms) in [(60, 310), (30, 310), (20, 620), (15, 1220), (13, 2100)] {
            for rate in [400, 2000, 20_000] {
                let mut model = Model::new();
                let beyond = rate * (times_tenths - 10) / 10;
                assert!(model.pass(within_ms, rate, beyond, false), "{times_tenths} tenths of {rate}/s");
                assert!(model.patience.is_brief_for_all());
            }
        }
    }

    #[test]
    fn overload_after_a_long_time_without_is_noticed_as_soon() {
        let mut model = Model::new();
        model.population.present = 1000;
        assert!(!model.pass(60_000, 2000, 0, false));
        assert!(model.pass(300, 2000, 4000, false));
    }

    #[test]
    fn what_is_refused_is_growth_as_well() {
        let mut model = Model::new();
        model.population.present = 1500;
        assert!(model.pass(310, 2000, 4000, true));
    }

    #[test]
    fn a_crowd_may_come_as_fast_as_it_likes_where_waits_stay_short() {
        let mut model = Model::new();
        assert!(!model.pass(400, 2000, 2400, false));
        assert!(!model.pass(60_000, 2000, 0, false));
    }

    #[test]
    fn one_that_waits_in_vain_ends_patience() {
        let mut model = Model::new();
        model.population.present = 1000;
        assert!(!model.pass(2000, 100, 0, false));
        model.patience.waited_in_vain();
        assert!(model.pass(10, 100, 0, false));
        assert!(!model.patience.is_brief_for_all(), "the others may go on");
    }

    #[test]
    fn patience_is_tried_again_after_longer_and_longer_pauses() {
        let mut model = Model::new();
        for pause_ms in [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 60_000, 60_000] {
            assert!(model.pass(410, 400, 800, false), "overload");
            let passes = |model: &mut Model, ms: u64| {
                model.ms += ms;
                let now = model.now();
                model.patience.look(model.population, now);
                model.patience.is_brief()
            };
            assert!(passes(&mut model, pause_ms - 10), "{pause_ms} ms");
            assert!(!passes(&mut model, 10), "{pause_ms} ms");
        }
        let now = model.now();
        model.patience.is_empty(now);
        assert_eq!(model.patience.pause, PAUSES.0, "an empty queue makes all as before");
    }
}
