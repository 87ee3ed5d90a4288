//! Warnings that strangers can cause as often as they like.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two of them.
const INTERVAL: Duration = Duration::from_secs(10);

/// Lets one warning through in [`INTERVAL`], and counts those that it leaves out.
#[derive(Debug, Default)]
pub(super) struct Noise(Mutex<NoiseState>);

#[derive(Debug, Default)]
struct NoiseState {
    said_at: Option<Instant>,
    left_out: u64,
}

impl Noise {
    /// If there may be a warning now: how many were left out since the last one.
    pub(super) fn admits(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.said_at.is_some_and(|at| now.saturating_duration_since(at) < INTERVAL) {
            state.left_out += 1;
            return None;
        }
        state.said_at = Some(now);
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_ten_seconds_and_the_others_are_counted() {
        let (noise, start) = (Noise::default(), Instant::now());
        assert_eq!(noise.admits(start), Some(0));
        assert!((1..10).all(|s| noise.admits(start + Duration::from_secs(s)).is_none()));
        assert_eq!(noise.admits(start + INTERVAL), Some(9));
        assert_eq!(noise.admits(start + 3 * INTERVAL), Some(0));
    }
}
