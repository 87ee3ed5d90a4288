//! How many retries a pool may make: a share of its requests, some in each second besides, and as many as there are requests under way,
//! so that none need fail when a back-end is lost that holds many long ones. A state machine without clock, input or output.
//!
//! Nothing is done for a request that is not retried: the number of assignments so far, which is counted anyway, is noted from time to
//! time, and says at a retry how many requests there were lately.

use std::time::{Duration, Instant};

use plimsoll_config::RetryBudgetConfig;

use crate::window_notes::WindowNotes;

/// Over which time retries and requests are compared.
pub(crate) const WINDOW: Duration = Duration::from_secs(10);
/// Notes are at least this far apart, so that there are few of them.
const STEP: Duration = Duration::from_millis(250);

/// What there was so far at some time.
#[derive(Debug, Clone, Copy)]
struct Note {
    requests: u64,
    retries: u64,
}

/// What a pool has had so far, and has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PoolLoad {
    /// How often a back-end was chosen for a request, retries included.
    pub(crate) assigned: u64,
    /// Requests at back-ends.
    pub(crate) under_way: u64,
}

/// What a pool has done with its retries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RetryCounts {
    /// Retries.
    pub(crate) made: u64,
    /// Those that the budget did not allow.
    pub(crate) denied: u64,
    /// How many more it would allow now.
    pub(crate) left: u64,
}

/// The retries of one pool.
#[derive(Debug, Default)]
pub(crate) struct PoolRetries {
    notes: WindowNotes<Note>,
    made: u64,
    denied: u64,
    /// Those besides that cost no back-end anything.
    free: u64,
}

impl PoolRetries {
    /// Notes what there was until now.
    pub(crate) fn note(&mut self, load: PoolLoad, now: Instant) {
        let note = Note { requests: self.requests(load), retries: self.made };
        self.notes.note(note, now, (WINDOW, STEP));
    }

    /// A request is sent elsewhere that has cost no back-end anything.
    pub(crate) fn take_free(&mut self) {
        self.free += 1;
    }

    /// Takes one retry, if there may be one.
    pub(crate) fn take(&mut self, load: PoolLoad, now: Instant, config: &RetryBudgetConfig) -> bool {
        let allowed = self.left(load, now, config) > 0;
        if allowed {
            self.made += 1;
        } else {
            self.denied += 1;
        }
        allowed
    }

    /// What was done until now.
    pub(crate) fn counts(&mut self, load: PoolLoad, now: Instant, config: &RetryBudgetConfig) -> RetryCounts {
        let left = self.left(load, now, config);
        RetryCounts { made: self.made, denied: self.denied, left }
    }

    /// Requests so far; retries are none.
    fn requests(&self, load: PoolLoad) -> u64 {
        load.assigned.saturating_sub(self.made + self.free)
    }

    fn left(&mut self, load: PoolLoad, now: Instant, config: &RetryBudgetConfig) -> u64 {
        if config.share_permille >= 1000 {
            return u64::MAX;
        }
        self.note(load, now);
        let requests = self.requests(load);
        let since = self.notes.first().unwrap_or(Note { requests, retries: self.made });
        let of_share = requests.saturating_sub(since.requests) * u64::from(config.share_permille) / 1000;
        let under_way = if config.share_permille == 0 { 0 } else { load.under_way };
        let most = of_share + under_way + u64::from(config.least_per_s) * WINDOW.as_secs();
        most.saturating_sub(self.made - since.retries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(share_permille: u16, least_per_s: u32) -> RetryBudgetConfig {
        RetryBudgetConfig { share_permille, least_per_s }
    }

    /// So many requests besides the retries, none of which is under way.
    fn after(requests: u64, budget: &PoolRetries) -> PoolLoad {
        PoolLoad { assigned: requests + budget.made + budget.free, under_way: 0 }
    }

    #[test]
    fn what_is_under_way_may_go_elsewhere_once() {
        let (mut budget, now) = (PoolRetries::default(), Instant::now());
        // 1,000 long ones, half of which are lost at once, and nothing else lately.
        let load = PoolLoad { assigned: 1000, under_way: 500 };
        budget.note(load, now);
        assert_eq!((0..1000).filter(|_| budget.take(load, now, &config(200, 0))).count(), 500);
        assert!(!budget.take(load, now, &config(0, 0)), "without a share there are none");
    }

    #[test]
    fn what_costs_nothing_is_neither_a_retry_nor_a_request() {
        let (mut budget, now) = (PoolRetries::default(), Instant::now());
        budget.note(PoolLoad::default(), now);
        (0..900).for_each(|_| budget.take_free());
        let load = PoolLoad { assigned: 1000, under_way: 0 };
        assert_eq!(budget.counts(load, now, &config(200, 0)), RetryCounts { made: 0, denied: 0, left: 20 });
    }

    #[test]
    fn a_share_of_the_requests_of_the_window() {
        let (mut budget, start) = (PoolRetries::default(), Instant::now());
        let (config, mut requests, mut made) = (config(200, 0), 0, Vec::new());
        budget.note(PoolLoad::default(), start);
        // In each second 100 requests, each of which wants a retry.
        for second in 1..=40 {
            let now = start + Duration::from_secs(second);
            let before = budget.made;
            for _ in 0..100 {
                requests += 1;
                budget.take(after(requests, &budget), now, &config);
            }
            made.push(budget.made - before);
        }
        let all = made.iter().sum::<u64>();
        assert!((780..=800).contains(&all), "a fifth of 4,000: {all}");
        assert_eq!(budget.denied, 4000 - all);
        // What was not used earlier than a window ago is lost.
        (0..100).for_each(|s| budget.note(after(requests + s, &budget), start + Duration::from_secs(40 + s)));
        let now = start + Duration::from_secs(140);
        assert!(
            budget.counts(after(requests + 100, &budget), now, &config).left <= 3,
            "0.2 of those in 11 s"
        );
        assert!(budget.notes.len() <= 12, "the notes are few");
    }

    #[test]
    fn some_besides_where_requests_are_rare() {
        let (mut budget, start) = (PoolRetries::default(), Instant::now());
        let config = config(0, 2);
        assert_eq!((0..50).filter(|_| budget.take(PoolLoad::default(), start, &config)).count(), 20);
        let soon = start + WINDOW - Duration::from_millis(1);
        assert!(!budget.take(PoolLoad::default(), soon, &config));
        let later = start + WINDOW * 2;
        budget.note(PoolLoad::default(), later);
        assert_eq!((0..50).filter(|_| budget.take(PoolLoad::default(), later + WINDOW, &config)).count(), 20);
        let counts = budget.counts(PoolLoad::default(), later + WINDOW, &config);
        assert_eq!(counts, RetryCounts { made: 40, denied: 61, left: 0 });
    }

    #[test]
    fn without_a_bound_all_may() {
        let (mut budget, now) = (PoolRetries::default(), Instant::now());
        assert!((0..10_000).all(|_| budget.take(PoolLoad::default(), now, &config(1000, 0))));
        assert!(!budget.take(PoolLoad::default(), now, &config(0, 0)));
    }
}
