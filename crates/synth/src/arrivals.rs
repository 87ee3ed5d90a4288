//! Arrival times of synthetic workloads.

use super::day66::DAY66_REQUESTS_PER_MINUTE;
use super::random::{exponential, first_of};
use crate::times::{TimeDistribution, TimeDraws};
use rand_pcg::Pcg64;

/// The arrival process.
#[derive(Debug, Clone)]
pub(super) enum ArrivalProcess {
    /// Poisson: independent exponential gaps with this mean in nanoseconds.
    Poisson {
        /// Mean gap in nanoseconds.
        gap_ns: f64,
    },
    /// Independent gaps of this distribution.
    Renewal(TimeDistribution),
    /// A given number of requests in each minute, uniformly spread within it.
    PerMinute {
        /// Whole numbers of requests, their sum the length of the workload.
        requests: Vec<u64>,
        /// Length of a minute in nanoseconds.
        minute_ns: f64,
    },
}

/// Requests per minute of a World Cup day as a smooth curve of 1,440 points, to be scaled by the
/// caller; minute 0 is local midnight.
///
/// A constant and two bell curves, fitted by eye to the hourly sums of the public trace for day 60
/// (24 June 1998, Internet Traffic Archive, WorldCup98): matches began at 16:00 and 21:00, and the
/// peaks stand 1.35 and 1.45 hours later. It has the shape of the day, not the irregularity of its
/// minutes; for that, give the real profile.
pub(super) fn smooth_day() -> Vec<u64> {
    let bell = |hour: f64, centre: f64, width: f64| {
        let distance = (hour - centre) / width;
        libm::exp(-0.5 * distance * distance)
    };
    (0..1_440)
        .map(|minute| {
            let hour = (f64::from(minute) + 0.5) / 60.0;
            let height = 1.25 + 5.2 * bell(hour, 17.35, 1.0) + 2.6 * bell(hour, 22.45, 0.85);
            // Millions per hour to requests per minute.
            (height * 1e6 / 60.0).round() as u64
        })
        .collect()
}

/// Requests per minute of the day that a workload is of, where it is of one.
pub(super) fn day_of(workload: &str) -> Vec<u64> {
    match workload {
        "worldcup66" => DAY66_REQUESTS_PER_MINUTE.iter().map(|&requests| u64::from(requests)).collect(),
        _ => smooth_day(),
    }
}

/// The times of successive requests.
#[derive(Debug, Clone)]
pub(super) struct ArrivalClock<'a> {
    arrivals: &'a ArrivalProcess,
    rng: Pcg64,
    gaps: Option<TimeDraws<Pcg64>>,
    now_ns: u64,
    minute: usize,
    /// Requests still to come in this minute.
    remaining: u64,
    /// Place of the last request within this minute, from 0 to 1.
    place: f64,
}

impl<'a> ArrivalClock<'a> {
    /// A clock at time 0.
    pub(super) fn new(arrivals: &'a ArrivalProcess, rng: Pcg64) -> Self {
        let remaining = match arrivals {
            ArrivalProcess::Poisson { .. } | ArrivalProcess::Renewal(_) => 0,
            ArrivalProcess::PerMinute { requests, .. } => requests.first().copied().unwrap_or(0),
        };
        let gaps = match arrivals {
            ArrivalProcess::Renewal(gap) => Some(TimeDraws::new(*gap, rng.clone())),
            _ => None,
        };
        Self { arrivals, rng, gaps, now_ns: 0, minute: 0, remaining, place: 0.0 }
    }

    /// Time of the next request in nanoseconds; never before the last.
    pub(super) fn next_ns(&mut self) -> u64 {
        match self.arrivals {
            ArrivalProcess::Poisson { gap_ns } => {
                let gap = exponential(&mut self.rng) * gap_ns;
                self.now_ns = self.now_ns.saturating_add((gap + 0.5) as u64);
            }
            ArrivalProcess::Renewal(_) => {
                let gap_ns = self.gaps.as_mut().map_or(0, TimeDraws::draw_ns);
                self.now_ns = self.now_ns.saturating_add(gap_ns);
            }
            ArrivalProcess::PerMinute { requests, minute_ns } => {
                while self.remaining == 0 && self.minute + 1 < requests.len() {
                    self.minute += 1;
                    self.remaining = requests[self.minute];
                    self.place = 0.0;
                }
                self.place += (1.0 - self.place) * first_of(self.remaining.max(1), &mut self.rng);
                self.remaining = self.remaining.saturating_sub(1);
                let at = (self.minute as f64 + self.place.min(1.0)) * minute_ns;
                self.now_ns = self.now_ns.max(at as u64);
            }
        }
        self.now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::{Purpose, stream};
    use super::*;

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_the_exponential() {
        let arrivals = ArrivalProcess::Poisson { gap_ns: 1e6 };
        let mut clock = ArrivalClock::new(&arrivals, stream(1, Purpose::Times));
        let times: Vec<u64> = (0..100_001).map(|_| clock.next_ns()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / 1e5;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean / 1e6 - 1.0).abs() < 0.015, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn minutes_hold_exactly_their_requests() {
        let requests = vec![3, 0, 0, 1_000, 1, 0];
        let arrivals = ArrivalProcess::PerMinute { requests: requests.clone(), minute_ns: 60e9 };
        let mut clock = ArrivalClock::new(&arrivals, stream(2, Purpose::Times));
        let mut seen = vec![0; requests.len()];
        let mut inside = 0.0;
        let mut last = 0;
        for _ in 0..1_004 {
            let now = clock.next_ns();
            assert!(now >= last);
            last = now;
            seen[(now / 60_000_000_000) as usize] += 1;
            if now / 60_000_000_000 == 3 {
                inside += (now % 60_000_000_000) as f64 / 60e9;
            }
        }
        assert_eq!(seen, requests);
        assert!((inside / 1_000.0 - 0.5).abs() < 0.04, "uniform within the minute: {inside}");
    }
}
