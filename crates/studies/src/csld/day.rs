//! The part of the peak day that figures 7 to 11 are made of.
//!
//! The paper says: 1.5 hours after 15 minutes of warm-up, gaps "based on the timestamps in the logs", a rate that "ranges from 1,860/s to
//! 3,683/s", with "relatively long periods with low request rate". It does not say which hours. In the public log the peak of the day is the minute 23:42
//! with 3,587 requests per second, and the rise to it begins at 21:11 with 1,806. Both are 1.0267 times lower at least than the paper's. So we take the minutes
//! from 21:11 to 23:50, multiply their rates by that, and shorten each so that all of them last 105 minutes.

use plimsoll_synth::DAY66_REQUESTS_PER_MINUTE;

/// The first and the last minute of the day that are used.
const MINUTES: std::ops::RangeInclusive<usize> = 1_271..=1_430;

/// The paper's highest rate.
const PEAK_RPS: f64 = 3_683.0;

/// The share of the time that is warm-up: 15 of 105 minutes.
const WARMUP_SHARE: f64 = 15.0 / 105.0;

/// Simulated time of the paper's runs.
pub(super) const PAPER_WINDOW_S: f64 = 105.0 * 60.0;

/// A minute with less than this share of both its neighbours is a gap of the log.
const GAP_SHARE: f64 = 0.7;

/// The part of the day, compressed to a given time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PeakWindow {
    /// Simulated time, warm-up included.
    pub(super) length_s: f64,
}

impl PeakWindow {
    /// Mean request rate of each minute, gaps filled.
    fn rates_rps(self) -> Vec<f64> {
        let day: Vec<f64> = DAY66_REQUESTS_PER_MINUTE.iter().map(|&n| f64::from(n) / 60.0).collect();
        let filled = |minute: usize| {
            let (before, after) = (day[minute - 1], day[minute + 1]);
            if day[minute] < GAP_SHARE * before.min(after) { 0.5 * (before + after) } else { day[minute] }
        };
        let rates: Vec<f64> = MINUTES.map(filled).collect();
        let peak = rates.iter().copied().fold(0.0, f64::max);
        rates.iter().map(|rate| rate * PEAK_RPS / peak).collect()
    }

    /// Simulated length of one of the day's minutes.
    pub(super) fn minute_s(self) -> f64 {
        self.length_s / MINUTES.count() as f64
    }

    /// Requests of each of the day's minutes.
    pub(super) fn requests_per_minute(self) -> Vec<u64> {
        let minute_s = self.minute_s();
        self.rates_rps().iter().map(|rate| (rate * minute_s).round() as u64).collect()
    }

    /// Requests in all.
    pub(super) fn requests(self) -> u64 {
        self.requests_per_minute().iter().sum()
    }

    /// Requests of the warm-up.
    pub(super) fn warmup_requests(self) -> u64 {
        let minutes = MINUTES.count() as f64 * WARMUP_SHARE;
        let of_minute = self.requests_per_minute();
        let whole = minutes as usize;
        let part = (minutes.fract() * of_minute[whole] as f64).round() as u64;
        of_minute[..whole].iter().sum::<u64>() + part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_range_as_the_paper_says() {
        let window = PeakWindow { length_s: PAPER_WINDOW_S };
        let rates = window.rates_rps();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        assert!((most - 3_683.0).abs() < 1e-6 && (least / 1_860.0 - 1.0).abs() < 0.005, "{least} … {most}");
        assert!((window.minute_s() - 39.375).abs() < 1e-9);
        // 105 minutes between the two rates.
        let mean_rps = window.requests() as f64 / PAPER_WINDOW_S;
        assert!((2_200.0..3_000.0).contains(&mean_rps), "{mean_rps}");
        let warmup_rps = window.warmup_requests() as f64 / 900.0;
        assert!((1_860.0..2_200.0).contains(&warmup_rps), "{warmup_rps}");
    }

    #[test]
    fn a_shorter_window_has_the_same_rates() {
        let (long, short) = (PeakWindow { length_s: PAPER_WINDOW_S }, PeakWindow { length_s: 63.0 });
        let ratio = long.requests() as f64 / short.requests() as f64;
        assert!((ratio / 100.0 - 1.0).abs() < 0.001, "{ratio}");
    }
}
