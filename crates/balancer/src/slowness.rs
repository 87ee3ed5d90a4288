//! Back-ends that begin to answer far later than the others of their pool. A state machine without clock, input or output.
//!
//! Nothing is done for a request: the histograms of the time to the first byte, which are counted anyway, are read from time to
//! time, and what was added to them within the window is compared. A quantile of a histogram lies somewhere in a bucket. The least that it
//! can be at one back-end is compared with the most that it can be at all the others together, so that a back-end is never taken for slow by the
//! width of a bucket.
//!
//! Back-ends may be slow because of what they are asked for. Where the policy places requests by what they ask for, a back-end must also be that
//! much slower than it was itself, in its best window of the last ten minutes.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use plimsoll_config::EjectionConfig;
use plimsoll_policy::BackendId;

use crate::metrics::BUCKETS_US;
use crate::window_notes::WindowNotes;

/// Counts of times to the first byte by bucket, the last one beyond all ends.
pub(crate) type FirstByteCounts = [u64; BUCKETS_US.len() + 1];

/// Readings are at least this far apart, and this part of the window, so that they are few.
const STEP: Duration = Duration::from_secs(1);
const STEPS: u32 = 64;
/// How long a back-end's own best counts.
const USUAL: Duration = Duration::from_secs(600);

/// What is known of one back-end.
#[derive(Debug, Default)]
struct Readings {
    /// The counts so far.
    counts: WindowNotes<FirstByteCounts>,
    /// The most that the quantile can have been in earlier windows, in microseconds.
    earlier: VecDeque<(Instant, u64)>,
}

impl Readings {
    fn read(&mut self, counts: FirstByteCounts, now: Instant, window: Duration) {
        self.counts.note(counts, now, (window, STEP.max(window / STEPS)));
    }

    /// What was added within the window.
    fn lately(&self, counts: &FirstByteCounts) -> FirstByteCounts {
        let before = self.counts.first().unwrap_or(*counts);
        std::array::from_fn(|i| counts[i].saturating_sub(before[i]))
    }

    /// Keeps the most that the quantile can be now, one number for each window.
    fn keep(&mut self, most_us: u64, now: Instant, window: Duration) {
        while self.earlier.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) > USUAL) {
            self.earlier.pop_front();
        }
        if self.earlier.back().is_none_or(|(at, _)| now.saturating_duration_since(*at) >= window) {
            self.earlier.push_back((now, most_us));
        }
    }

    fn best_us(&self) -> Option<u64> {
        self.earlier.iter().map(|(_, most_us)| *most_us).min()
    }
}

/// One that is slow, and what would not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlowBackend {
    /// Who.
    pub(crate) backend: BackendId,
    /// The least that the quantile is there, in microseconds.
    pub(crate) is_us: u64,
    /// From which time on an answer is slow, in microseconds.
    pub(crate) limit_us: u64,
}

/// The times of the back-ends of a pool.
#[derive(Debug, Default)]
pub(crate) struct SlowBackends(BTreeMap<BackendId, Readings>);

impl SlowBackends {
    /// Reads the counts so far of those that take requests, and says which of them is slowest, if it is too slow. `by_content`: requests are
    /// placed by what they ask for.
    pub(crate) fn look(
        &mut self,
        all: &[(BackendId, FirstByteCounts)],
        by_content: bool,
        now: Instant,
        config: &EjectionConfig,
    ) -> Option<SlowBackend> {
        // One that took no requests for a while begins anew.
        self.0.retain(|b, _| all.iter().any(|(known, _)| known == b));
        let mut lately = Vec::new();
        for (b, counts) in all {
            let readings = self.0.entry(*b).or_default();
            readings.read(*counts, now, config.window);
            let added = readings.lately(counts);
            if added.iter().sum::<u64>() >= u64::from(config.slow_requests) {
                lately.push((*b, added));
            }
        }
        let quantile = config.slow_quantile_permille;
        let mut total = FirstByteCounts::default();
        lately.iter().for_each(|(_, added)| total.iter_mut().zip(added).for_each(|(sum, n)| *sum += n));
        let mut slowest: Option<SlowBackend> = None;
        for (b, added) in &lately {
            let together: FirstByteCounts = std::array::from_fn(|i| total[i] - added[i]);
            let (least_us, most_us) = bounds_us(added, quantile);
            let Some(readings) = self.0.get_mut(b) else { continue };
            let best_us = readings.best_us();
            readings.keep(most_us, now, config.window);
            if together.iter().all(|n| *n == 0) {
                continue;
            }
            let others_us = bounds_us(&together, quantile).1;
            let usual_us = if by_content { best_us.unwrap_or(u64::MAX).max(others_us) } else { others_us };
            let difference_us = u64::try_from(config.slow_difference.as_micros()).unwrap_or(u64::MAX);
            let limit_us = usual_us
                .saturating_mul(u64::from(config.slow_ratio))
                .max(usual_us.saturating_add(difference_us));
            if least_us >= limit_us && slowest.is_none_or(|slow| slow.is_us < least_us) {
                slowest = Some(SlowBackend { backend: *b, is_us: least_us, limit_us });
            }
        }
        slowest
    }
}

/// The least and the most that a quantile can be, in microseconds.
fn bounds_us(counts: &FirstByteCounts, quantile_permille: u16) -> (u64, u64) {
    let all: u64 = counts.iter().sum();
    let rank = (all * u64::from(quantile_permille)).div_ceil(1000).max(1);
    let mut sum = 0;
    for (i, n) in counts.iter().enumerate() {
        sum += n;
        if sum >= rank {
            let least = i.checked_sub(1).map_or(0, |before| BUCKETS_US[before]);
            return (least, BUCKETS_US.get(i).copied().unwrap_or(u64::MAX));
        }
    }
    (0, u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(keys: &str) -> EjectionConfig {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n[ejection]\nslow_ratio = 3\n{keys}"
        );
        plimsoll_config::Config::parse(&text, "test.toml").unwrap().ejection
    }

    /// Back-ends with so many more answers in each second, in these buckets.
    struct Play {
        slowness: SlowBackends,
        counts: Vec<(BackendId, FirstByteCounts)>,
        now: Instant,
    }

    impl Play {
        fn new(backends: u16) -> Self {
            let counts = (0..backends).map(|b| (BackendId(b), FirstByteCounts::default())).collect();
            Self { slowness: SlowBackends::default(), counts, now: Instant::now() }
        }

        fn second(
            &mut self,
            buckets: &[usize],
            each: u64,
            by_content: bool,
            config: &EjectionConfig,
        ) -> Option<SlowBackend> {
            let slow = self.slowness.look(&self.counts, by_content, self.now, config);
            for ((_, counts), bucket) in self.counts.iter_mut().zip(buckets) {
                counts[*bucket] += each;
            }
            self.now += Duration::from_secs(1);
            slow.or_else(|| self.slowness.look(&self.counts, by_content, self.now, config))
        }
    }

    #[test]
    fn one_that_is_far_slower_than_the_others_is_found() {
        let config = config("");
        let mut play = Play::new(3);
        // Up to 5 ms at two, 250 to 500 ms at the third one.
        let slow = play.second(&[3, 3, 9], 150, false, &config);
        assert_eq!(slow, Some(SlowBackend { backend: BackendId(2), is_us: 250_000, limit_us: 105_000 }));
        let mut play = Play::new(3);
        assert_eq!(play.second(&[3, 3, 8], 150, false, &config), None, "100 ms are no 100 ms more than 5 ms");
        let mut play = Play::new(3);
        assert_eq!(play.second(&[3, 3, 9], 20, false, &config), None, "too few requests");
        let mut play = Play::new(1);
        assert_eq!(play.second(&[12], 150, false, &config), None, "there is no other one");
        let mut play = Play::new(2);
        assert_eq!(play.second(&[12, 12], 150, false, &config), None, "all are slow");
    }

    #[test]
    fn placed_by_content_it_must_have_become_slower_itself() {
        let config = config("slow_difference = \"10ms\"");
        let mut play = Play::new(2);
        for _ in 0..30 {
            assert_eq!(play.second(&[3, 8], 150, true, &config), None, "it has always been so");
        }
        let mut found = None;
        for _ in 0..30 {
            found = found.or(play.second(&[3, 11], 150, true, &config));
        }
        assert_eq!(found.map(|slow| slow.backend), Some(BackendId(1)));
    }

    #[test]
    fn what_was_before_it_was_left_out_does_not_count() {
        let config = config("");
        let mut play = Play::new(2);
        assert!(play.second(&[3, 9], 150, false, &config).is_some());
        let both = play.counts.clone();
        play.counts.truncate(1);
        play.second(&[3], 150, false, &config);
        play.counts.push(both[1]);
        assert_eq!(play.second(&[3, 3], 150, false, &config), None);
    }

    #[test]
    fn readings_are_few_however_long_the_window_is() {
        let (mut readings, start, day) = (Readings::default(), Instant::now(), Duration::from_secs(86_400));
        (0..200_000).for_each(|s| readings.read(Default::default(), start + Duration::from_secs(s), day));
        assert!(readings.counts.len() <= 66, "{}", readings.counts.len());
    }

    #[test]
    fn quantiles_lie_in_their_buckets() {
        let mut counts = FirstByteCounts::default();
        assert_eq!(bounds_us(&counts, 500), (0, u64::MAX));
        (counts[0], counts[5], counts[14]) = (50, 49, 1);
        assert_eq!(bounds_us(&counts, 500), (0, 500));
        assert_eq!(bounds_us(&counts, 510), (10_000, 25_000));
        assert_eq!(bounds_us(&counts, 1000), (10_000_000, u64::MAX));
    }
}
