//! Response times by the load at which they were seen.

use crate::cluster::BackendId;
use crate::time::{Nanos, Time};

/// Loads of 0, 1, 2 to 3, 4 to 7, and so on; the last one has all above.
const BANDS: usize = 16;
/// The part of a new response time in its band's average.
const GAIN: f64 = 1.0 / 8.0;
/// What is older says nothing of now.
const MOST_AGE: Nanos = Nanos::from_secs(10);

/// The average of a band, and when it was last renewed.
#[derive(Debug, Clone, Copy)]
struct Band {
    mean_ns: f64,
    at: Time,
}

impl Band {
    fn renewed(known: Option<Self>, latency_ns: f64, now: Time) -> Self {
        let mean_ns = known.map_or(latency_ns, |band| band.mean_ns + GAIN * (latency_ns - band.mean_ns));
        Self { mean_ns, at: now }
    }

    fn is_fresh(&self, now: Time) -> bool {
        now.since(self.at) <= MOST_AGE
    }
}

/// Response times of back-ends, as a front-end has seen them, or the back-ends themselves.
#[derive(Debug, Default)]
pub struct LatencyByLoad {
    by_backend: Vec<[Option<Band>; BANDS]>,
    all: Option<Band>,
}

fn band(load: u32) -> usize {
    ((u32::BITS - load.leading_zeros()) as usize).min(BANDS - 1)
}

impl LatencyByLoad {
    /// `b` answered after `latency`, when it had `load` requests.
    pub fn saw(&mut self, b: BackendId, load: u32, latency: Nanos, now: Time) {
        if self.by_backend.len() <= b.index() {
            self.by_backend.resize(b.index() + 1, [None; BANDS]);
        }
        let latency_ns = latency.as_nanos() as f64;
        let fresh = |known: Option<Band>| known.filter(|band| band.is_fresh(now));
        let known = &mut self.by_backend[b.index()][band(load)];
        *known = Some(Band::renewed(fresh(*known), latency_ns, now));
        self.all = Some(Band::renewed(fresh(self.all), latency_ns, now));
    }

    /// The average of `b` at the nearest load that it was seen at lately; `None` where it was not seen lately.
    #[must_use]
    pub fn near(&self, b: BackendId, load: u32, now: Time) -> Option<Nanos> {
        self.nearest(b, load, now).map(|band| Nanos::new(band.mean_ns as u64))
    }

    fn nearest(&self, b: BackendId, load: u32, now: Time) -> Option<Band> {
        let wanted = band(load);
        let bands = self.by_backend.get(b.index()).into_iter().flatten().enumerate();
        let fresh =
            bands.filter_map(|(at, band)| band.filter(|band| band.is_fresh(now)).map(|band| (at, band)));
        fresh.min_by_key(|&(at, _)| at.abs_diff(wanted)).map(|(_, band)| band)
    }

    /// What `b` is to be taken to need with `load` requests: what it tells, but not less than was seen; what was seen, if it tells nothing.
    pub(crate) fn believable(&self, told: Option<Nanos>, b: BackendId, load: u32, now: Time) -> Nanos {
        told.map_or_else(|| self.expected(b, load, now), |told| told.max(self.least(b, load, now)))
    }

    /// What `b` takes at least with `load` requests, as far as that was seen lately at about this load: its average there; else that at
    /// half the load; else half of that at twice the load, as response times grow at most in proportion. Nothing where it was not seen.
    fn least(&self, b: BackendId, load: u32, now: Time) -> Nanos {
        let bands = self.by_backend.get(b.index()).map_or(&[][..], |bands| &bands[..]);
        let seen =
            |at: Option<usize>| bands.get(at?)?.filter(|band| band.is_fresh(now)).map(|band| band.mean_ns);
        let at = band(load);
        let above = || seen(Some(at + 1)).map(|mean_ns| mean_ns / 2.0);
        let mean_ns = seen(Some(at)).or_else(|| seen(at.checked_sub(1))).or_else(above);
        Nanos::new(mean_ns.unwrap_or(0.0) as u64)
    }

    /// What is to be expected of `b` with `load` requests: its average at the nearest load that it was seen at lately, else that of
    /// all back-ends, else nothing.
    pub(crate) fn expected(&self, b: BackendId, load: u32, now: Time) -> Nanos {
        let band = self.nearest(b, load, now).or(self.all);
        Nanos::new(band.map_or(0.0, |band| band.mean_ns) as u64)
    }

    /// `b` has gone or failed, or another back-end has its index.
    pub fn forget(&mut self, b: BackendId) {
        if let Some(bands) = self.by_backend.get_mut(b.index()) {
            *bands = [None; BANDS];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_load_that_was_seen_lately_counts() {
        let mut seen = LatencyByLoad::default();
        let (b, other) = (BackendId(1), BackendId(7));
        let us = Nanos::from_micros;
        assert_eq!(seen.expected(b, 3, Time::ZERO), Nanos::ZERO);
        seen.saw(b, 1, us(80), Time::ZERO);
        assert_eq!(seen.expected(other, 3, Time::ZERO), us(80), "the average of all");
        seen.saw(b, 40, us(800), Time::ZERO);
        assert_eq!(seen.expected(other, 3, Time::ZERO), us(170), "an eighth of 800 and the rest of 80");
        assert_eq!(
            [1, 2, 9, 60, 1 << 30].map(|load| seen.expected(b, load, Time::ZERO)),
            [80, 80, 800, 800, 800].map(us)
        );
        let later = Time::ZERO + Nanos::from_secs(11);
        seen.saw(b, 1, us(20), later);
        assert_eq!(seen.expected(b, 1, later), us(20), "80 is too old to be averaged with");
        assert_eq!(seen.expected(b, 60, later), us(20), "and so is 800");
        seen.forget(b);
        assert_eq!(seen.expected(b, 1, later), us(20), "the average of all");
    }

    #[test]
    fn the_least_is_what_was_seen_at_about_that_load() {
        let mut seen = LatencyByLoad::default();
        let (b, other, us) = (BackendId(1), BackendId(0), Nanos::from_micros);
        seen.saw(b, 4, us(80), Time::ZERO);
        let least = |seen: &LatencyByLoad, now| [1, 2, 4, 7, 8, 16].map(|load| seen.least(b, load, now));
        assert_eq!(least(&seen, Time::ZERO), [0, 40, 80, 80, 80, 0].map(us));
        assert_eq!(seen.least(other, 4, Time::ZERO), Nanos::ZERO, "of itself alone");
        assert_eq!(seen.least(BackendId(9), 4, Time::ZERO), Nanos::ZERO);
        assert_eq!(least(&seen, Time::ZERO + Nanos::from_secs(11)), [Nanos::ZERO; 6], "too old");
    }
}
