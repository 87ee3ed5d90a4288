//! The load index: how many accesses are active.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::datagram::MOST_LOAD;

/// Loads 0, 1, 2–3, 4–7, and so on.
const CLASSES: usize = 17;

/// Number of active accesses of a back-end, and the recent response time at each load. Clones share it; reading and counting
/// take no lock.
#[derive(Debug, Clone, Default)]
pub struct LoadGauge(Arc<GaugeState>);

#[derive(Debug, Default)]
struct GaugeState {
    active: AtomicU32,
    /// What others have told.
    external: AtomicU32,
    /// By class of the load at the start: the exponentially weighted mean of response times, in microseconds; 0 for none.
    latencies_us: [AtomicU32; CLASSES],
}

impl LoadGauge {
    /// A gauge at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An access begins. It is active until what is returned is dropped.
    #[must_use]
    pub fn begin(&self) -> ActiveAccess {
        let before = self.0.active.fetch_add(1, Ordering::Relaxed);
        ActiveAccess { gauge: self.clone(), load: before.saturating_add(1) }
    }

    /// Sets what others count: it is added to the accesses that have begun here.
    pub fn set_external(&self, load: u32) {
        self.0.external.store(load, Ordering::Relaxed);
    }

    /// The number of active accesses, [`MOST_LOAD`] at most.
    #[must_use]
    pub fn load(&self) -> u32 {
        let active = self.0.active.load(Ordering::Relaxed);
        active.saturating_add(self.0.external.load(Ordering::Relaxed)).min(MOST_LOAD)
    }

    /// What is told to whoever asks: the load, and the response time in microseconds that an access may expect which begins now. That
    /// access is not in the load, but counts where its response time is looked up, as it does in [`Self::latency_us`].
    #[must_use]
    pub fn tell(&self) -> (u32, u32) {
        let load = self.load();
        (load, self.latency_us(load.saturating_add(1)))
    }

    /// The response time of accesses that began as one of about `load`, themselves included, in microseconds; that at the nearest load
    /// that has one, else 0.
    #[must_use]
    pub fn latency_us(&self, load: u32) -> u32 {
        let class = class_of(load);
        let at = |class: usize| self.0.latencies_us.get(class).map_or(0, |slot| slot.load(Ordering::Relaxed));
        let near = (0..CLASSES).map(|distance| match at(class + distance) {
            0 => class.checked_sub(distance).map_or(0, at),
            found => found,
        });
        near.into_iter().find(|&latency_us| latency_us > 0).unwrap_or(0)
    }

    fn answered(&self, load: u32, response_us: u32) {
        /// Weight of a new response time: one in eight.
        const SHIFT: u32 = 3;
        let slot = &self.0.latencies_us[class_of(load)];
        let before = slot.load(Ordering::Relaxed);
        let after = match before {
            0 => response_us,
            _ => before - (before >> SHIFT) + (response_us >> SHIFT),
        };
        // Another thread may write at the same time; then one response time is not counted.
        slot.store(after.max(1), Ordering::Relaxed);
    }
}

fn class_of(load: u32) -> usize {
    (u32::BITS - load.leading_zeros()).min(CLASSES as u32 - 1) as usize
}

/// An access that is active until this is dropped.
#[derive(Debug)]
pub struct ActiveAccess {
    gauge: LoadGauge,
    /// At its start, itself included.
    load: u32,
}

impl ActiveAccess {
    /// The access was answered after this time.
    pub fn answered(self, response_us: u32) {
        self.gauge.answered(self.load, response_us);
    }
}

impl Drop for ActiveAccess {
    fn drop(&mut self) {
        self.gauge.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_active_here_and_elsewhere() {
        let gauge = LoadGauge::new();
        let clone = gauge.clone();
        let (one, two) = (gauge.begin(), clone.begin());
        assert_eq!(gauge.load(), 2);
        gauge.set_external(5);
        assert_eq!(gauge.load(), 7);
        drop(one);
        two.answered(100);
        assert_eq!(gauge.load(), 5);
        gauge.set_external(u32::MAX);
        assert_eq!(gauge.load(), MOST_LOAD);
    }

    #[test]
    fn response_times_by_load() {
        let gauge = LoadGauge::new();
        assert_eq!(gauge.latency_us(3), 0, "nothing is known");
        gauge.begin().answered(80);
        assert_eq!((gauge.latency_us(0), gauge.latency_us(1), gauge.latency_us(1000)), (80, 80, 80));
        let held: Vec<_> = (0..20).map(|_| gauge.begin()).collect();
        gauge.begin().answered(1600);
        assert_eq!((gauge.latency_us(1), gauge.latency_us(21)), (80, 1600));
        assert_eq!(gauge.tell(), (20, 1600));
        assert_eq!(LoadGauge::new().tell(), (0, 0));
        // Between the two, the higher load counts where both are as near.
        assert_eq!(gauge.latency_us(5), 1600);
        drop(held);
        for _ in 0..100 {
            gauge.begin().answered(160);
        }
        assert!((140..=160).contains(&gauge.latency_us(1)), "{}", gauge.latency_us(1));
        gauge.begin().answered(0);
        assert!(gauge.latency_us(1) > 0);
    }
}
