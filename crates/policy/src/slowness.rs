//! How much longer than elsewhere requests take at each back-end.

use crate::cluster::BackendId;

/// How much the latest response tells of its back-end.
const LATEST: f64 = 1.0 / 512.0;
/// What each response takes back of a difference: what is not confirmed fades.
const FADES: f64 = 1.0 / 8192.0;
/// What a tick takes back of the difference of a back-end without responses: who is avoided is tried again.
const FADES_UNSEEN: f64 = 1.0 / 64.0;
/// Logarithm below which a difference is hardly believed: by chance, equal back-ends differ too.
const CHANCE: f64 = 0.15;
/// The largest logarithm: 20 times.
const MOST: f64 = 3.0;

/// One back-end.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// Mean logarithm of the ratios of response times to expectations.
    log: f64,
    /// Whether a response came since the last tick.
    seen: bool,
}

/// Slowness by back-end; 1 is the geometric mean of all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slowness {
    backends: Vec<Measured>,
    /// Of [`Measured::log`].
    mean: f64,
}

impl Slowness {
    /// How many times as long as on average requests take at `b`; near 1 unless it clearly differs.
    pub(crate) fn of(&self, b: BackendId) -> f64 {
        let log = self.backends.get(b.index()).map_or(0.0, |measured| measured.log - self.mean);
        libm::exp(log * (log * log / (log * log + CHANCE * CHANCE)))
    }

    /// At `b` a response took `ratio` times as long as a back-end of mean slowness would have taken.
    pub(crate) fn learn(&mut self, b: BackendId, ratio: f64) {
        if self.backends.len() <= b.index() {
            self.backends.resize(b.index() + 1, Measured { log: self.mean, seen: false });
        }
        self.backends[b.index()].seen = true;
        let mean = self.mean;
        let observed = libm::log(ratio).clamp(mean - MOST, mean + MOST);
        self.change(b, |log| log + LATEST * (observed - log) - FADES * (log - mean));
    }

    /// Some time has passed.
    pub(crate) fn tick(&mut self) {
        let mean = self.mean;
        for index in 0..self.backends.len() {
            if !std::mem::take(&mut self.backends[index].seen) {
                self.change(BackendId::new(index), |log| log - FADES_UNSEEN * (log - mean));
            }
        }
    }

    /// Another back-end has the index of `b`, or it comes back from a failure.
    pub(crate) fn restart(&mut self, b: BackendId) {
        let mean = self.mean;
        self.change(b, |_| mean);
    }

    fn change(&mut self, b: BackendId, change: impl FnOnce(f64) -> f64) {
        let count = self.backends.len() as f64;
        if let Some(measured) = self.backends.get_mut(b.index()) {
            let log = change(measured.log);
            self.mean += (log - measured.log) / count;
            measured.log = log;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BackendId = BackendId(0);
    const B: BackendId = BackendId(1);

    fn measured(ratio: f64) -> Slowness {
        let mut slowness = Slowness::default();
        for _ in 0..4000 {
            slowness.learn(A, 1.0);
            slowness.learn(B, ratio);
        }
        slowness
    }

    #[test]
    fn clear_differences_count_and_small_ones_hardly() {
        let ratio = |slowness: &Slowness| slowness.of(B) / slowness.of(A);
        assert!((3.3..=4.0).contains(&ratio(&measured(4.0))), "{}", ratio(&measured(4.0)));
        assert!((1.0..1.02).contains(&ratio(&measured(1.1))), "{}", ratio(&measured(1.1)));
        let absurd = ratio(&measured(1e9));
        assert!(absurd.is_finite() && absurd <= libm::exp(2.0 * MOST), "{absurd}");
        assert_eq!(Slowness::default().of(B), 1.0);
    }

    #[test]
    fn who_is_avoided_is_tried_again() {
        let mut slowness = measured(8.0);
        assert!(slowness.of(B) > 2.0);
        for _ in 0..600 {
            slowness.learn(A, 1.0);
            slowness.tick();
        }
        assert!(slowness.of(B) < 1.1, "{slowness:?}");
    }

    #[test]
    fn another_back_end_begins_in_the_middle() {
        let mut slowness = measured(8.0);
        slowness.restart(B);
        assert!((slowness.of(B) - 1.0).abs() < 0.8, "{slowness:?}");
        let sum: f64 = slowness.backends.iter().map(|b| b.log).sum();
        assert!((sum / 2.0 - slowness.mean).abs() < 1e-9);
    }
}
