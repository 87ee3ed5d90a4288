//! When the CPU sends the parts of a response: TCP's slow start, simplified.
//!
//! Source: Hyun et al., section 3.3: a back-end writes a congestion window of segments into the send buffer each round trip, and
//! the window doubles.

use crate::time::Nanos;

/// Bytes of a segment.
const SEGMENT_BYTES: u64 = 1460;
/// Segments of the first congestion window.
const FIRST_WINDOW: u64 = 2;
/// The most segments of a window: 64 KiB.
const MOST_WINDOW: u64 = 44;

/// The parts of a response in the order of sending: each with the time after the first one, and its bytes.
#[derive(Debug, Clone)]
pub struct SlowStart {
    left_bytes: u64,
    window: u64,
    after: Nanos,
    round_trip: Nanos,
}

impl SlowStart {
    /// The parts of a response of this size over a connection with this round trip.
    #[must_use]
    pub fn new(size_bytes: u64, round_trip: Nanos) -> Self {
        Self { left_bytes: size_bytes, window: FIRST_WINDOW, after: Nanos::ZERO, round_trip }
    }
}

impl Iterator for SlowStart {
    type Item = (Nanos, u64);

    fn next(&mut self) -> Option<(Nanos, u64)> {
        if self.left_bytes == 0 {
            return None;
        }
        let bytes = self.left_bytes.min(self.window * SEGMENT_BYTES);
        let part = (self.after, bytes);
        self.left_bytes -= bytes;
        self.window = (2 * self.window).min(MOST_WINDOW);
        self.after += self.round_trip;
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_each_round_trip() {
        let ms = Nanos::from_millis;
        let parts: Vec<_> = SlowStart::new(20_000, ms(100)).collect();
        assert_eq!(parts, [(ms(0), 2920), (ms(100), 5840), (ms(200), 11_240)]);
        assert_eq!(SlowStart::new(0, ms(1)).count(), 0);
        let large: Vec<_> = SlowStart::new(1 << 20, ms(1)).collect();
        assert_eq!(large.iter().map(|part| part.1).sum::<u64>(), 1 << 20);
        assert!(large.iter().all(|part| part.1 <= MOST_WINDOW * SEGMENT_BYTES));
    }
}
