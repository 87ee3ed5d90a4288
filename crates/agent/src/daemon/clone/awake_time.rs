//! Time in which a thread ran, or could have run.
//!
//! For how long another node has been silent, a thread can only say as far as it was there to hear it. Where it has stood still
//! itself, on a machine that is paused or busy with other things, it has asked nothing meanwhile, and the other node may have stood
//! still as well.

use std::time::Duration;

use tokio::time::Instant;

/// See the module's documentation. The thread looks at it once in each period; what it is later than that counts only up to an eighth
/// of a period.
#[derive(Debug)]
pub(super) struct AwakeTime {
    period: Duration,
    looked_at: Instant,
    /// Time awake until then.
    before: Duration,
}

impl AwakeTime {
    /// Nothing has passed; the next look is due in a period.
    pub(super) fn new(period: Duration, now: Instant) -> Self {
        Self { period, looked_at: now, before: Duration::ZERO }
    }

    /// How much has passed: since the last look, at most a period and an eighth.
    pub(super) fn at(&self, now: Instant) -> Duration {
        self.before + now.saturating_duration_since(self.looked_at).min(self.period + self.period / 8)
    }

    /// The look that is due once in each period. How much has passed.
    pub(super) fn look(&mut self, now: Instant) -> Duration {
        self.before = self.at(now);
        self.looked_at = now;
        self.before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_thread_stood_still_does_not_count() {
        let ms = Duration::from_millis;
        let began = Instant::now();
        let mut time = AwakeTime::new(ms(80), began);
        assert_eq!(time.at(began + ms(60)), ms(60));
        assert_eq!(time.look(began + ms(83)), ms(83));
        // It was looked at in time, and then two seconds late.
        assert_eq!(time.at(began + ms(2163)), ms(173));
        assert_eq!(time.look(began + ms(2163)), ms(173));
        assert_eq!(time.at(began + ms(2193)), ms(203));
        assert_eq!(time.look(began + ms(2243)), ms(253));
    }
}
