//! How many retries and hedges there may be.

use std::time::{Duration, Instant};

/// Bounds retries and hedges together, so that they cannot multiply the load of back-ends that fail because of their load: a share
/// of the calls, and some in each second besides, so that rare calls can be retried, too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryBudget {
    /// Retries and hedges per call: 0 to 1.
    pub share: f64,
    /// How many there may be in each second besides.
    pub least_per_s: f64,
}

impl RetryBudget {
    /// None at all.
    pub const NONE: Self = Self { share: 0.0, least_per_s: 0.0 };
}

impl Default for RetryBudget {
    /// One in five calls, and 10 in a second.
    fn default() -> Self {
        Self { share: 0.2, least_per_s: 10.0 }
    }
}

/// What a client has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls.
    pub calls: u64,
    /// Attempts: first ones, retries and hedges.
    pub attempts: u64,
    /// Attempts after another one had failed.
    pub retries: u64,
    /// Attempts beside another one.
    pub hedges: u64,
    /// Hedges that answered first.
    pub hedges_won: u64,
    /// Retries and hedges that the budget did not allow.
    pub denied: u64,
    /// Calls without an answer.
    pub failed: u64,
}

/// The bucket of tokens. One retry or hedge takes one.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    budget: RetryBudget,
    /// In billionths, so that they add up exactly.
    tokens_e9: u64,
    filled: Instant,
    pub(crate) counts: CallCounts,
}

const TOKEN_E9: u64 = 1_000_000_000;
/// Calls whose share can be saved.
const SAVED_CALLS: f64 = 100.0;
/// Time for which `least_per_s` can be saved.
const SAVED: Duration = Duration::from_secs(10);

impl TokenBucket {
    /// Has at first what comes in one second.
    pub(crate) fn new(budget: RetryBudget, now: Instant) -> Self {
        let tokens_e9 = in_e9(budget.least_per_s);
        Self { budget, tokens_e9, filled: now, counts: CallCounts::default() }
    }

    pub(crate) fn call(&mut self) {
        self.counts.calls += 1;
        self.add(in_e9(self.budget.share));
    }

    fn add(&mut self, tokens_e9: u64) {
        let most = self.budget.share * SAVED_CALLS + self.budget.least_per_s * SAVED.as_secs_f64();
        // At least one, so that a small budget is one, too.
        let most_e9 = in_e9(most.max(1.0)).max(self.tokens_e9);
        self.tokens_e9 = self.tokens_e9.saturating_add(tokens_e9).min(most_e9);
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.filled);
        self.filled = self.filled.max(now);
        self.add(in_e9(passed.as_secs_f64() * self.budget.least_per_s));
        let allowed = self.tokens_e9 >= TOKEN_E9;
        if allowed {
            self.tokens_e9 -= TOKEN_E9;
        } else {
            self.counts.denied += 1;
        }
        allowed
    }
}

fn in_e9(tokens: f64) -> u64 {
    // A float that is too large becomes the largest integer.
    (tokens * TOKEN_E9 as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_calls_and_no_more() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(RetryBudget { share: 0.1, least_per_s: 0.0 }, now);
        let mut taken = 0;
        for _ in 0..1000 {
            bucket.call();
            taken += u32::from(bucket.take(now));
        }
        assert_eq!((taken, bucket.counts.denied), (100, 900));
        // What is saved is bounded.
        (0..100_000).for_each(|_| bucket.call());
        assert_eq!((0..1000).filter(|_| bucket.take(now)).count(), 10);
    }

    #[test]
    fn some_in_each_second_where_calls_are_rare() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(RetryBudget { share: 0.0, least_per_s: 2.0 }, now);
        assert_eq!((0..5).filter(|_| bucket.take(now)).count(), 2);
        let later = now + Duration::from_millis(1500);
        assert_eq!((0..5).filter(|_| bucket.take(later)).count(), 3);
        let much_later = now + Duration::from_secs(1000);
        assert_eq!((0..50).filter(|_| bucket.take(much_later)).count(), 20);
        assert!(!bucket.take(now), "a clock that goes back gives nothing");
        let mut none = TokenBucket::new(RetryBudget::NONE, now);
        none.call();
        assert!(!none.take(much_later));
    }
}
