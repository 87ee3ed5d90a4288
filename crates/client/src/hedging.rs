//! When a second attempt begins beside the first.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Whether a second back-end is asked while the first is slow; the answer that comes first counts, and the other attempt is given
/// up. Only for [repeatable](crate::ServiceAccess::repeatable) accesses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Hedging {
    /// No.
    #[default]
    Off,
    /// After this time.
    After(Duration),
    /// After the time within which this share of the recent calls was answered, such as 0.95. Not before there are a hundred.
    Quantile(f64),
}

/// Response times of recent calls, in two halves: one that grows, and the one before it.
#[derive(Debug)]
pub(crate) struct ResponseTimes {
    growing: Histogram<u32>,
    before: Histogram<u32>,
    /// As last computed, after how many response times.
    delay: Option<Duration>,
}

/// Response times in a half.
const HALF: u64 = 1000;
/// Response times without which nothing is said, and after which the quantile is computed anew.
const EACH: u64 = 100;
const LONGEST_US: u64 = 3_600_000_000;

impl ResponseTimes {
    pub(crate) fn new() -> Self {
        let new = || Histogram::new_with_bounds(1, LONGEST_US, 2).expect("these bounds are in order");
        Self { growing: new(), before: new(), delay: None }
    }

    pub(crate) fn answered(&mut self, after: Duration, quantile: f64) {
        let us = u64::try_from(after.as_micros()).unwrap_or(u64::MAX).clamp(1, LONGEST_US);
        self.growing.saturating_record(us);
        if !self.growing.len().is_multiple_of(EACH) {
            return;
        }
        // The half that is over while the other one has little to say.
        let told = if self.before.len() > self.growing.len() { &self.before } else { &self.growing };
        self.delay = Some(Duration::from_micros(told.value_at_quantile(quantile)));
        if self.growing.len() >= HALF {
            std::mem::swap(&mut self.growing, &mut self.before);
            self.growing.reset();
        }
    }

    pub(crate) fn delay(&self) -> Option<Duration> {
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_of_recent_response_times() {
        let mut times = ResponseTimes::new();
        (1..=99).for_each(|ms| times.answered(Duration::from_millis(ms), 0.9));
        assert_eq!(times.delay(), None);
        times.answered(Duration::from_millis(100), 0.9);
        let near =
            |delay: Option<Duration>, ms: f64| (delay.unwrap().as_secs_f64() * 1e3 / ms - 1.0).abs() < 0.02;
        assert!(near(times.delay(), 90.0), "{:?}", times.delay());
        // All that was before is forgotten.
        (0..3000).for_each(|_| times.answered(Duration::from_millis(7), 0.9));
        assert!(near(times.delay(), 7.0), "{:?}", times.delay());
    }
}
