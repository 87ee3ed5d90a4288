//! What happens to frames on a link.

use std::time::Duration;

use crate::error::LabError;
use crate::rate::{Rate, check_delay};

/// The conditions of a link, each way.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Conditions {
    /// Delay of each frame; needs the kernel's `sch_netem`.
    pub delay: Option<Duration>,
    /// Random variation of the delay, up and down; needs a delay.
    pub jitter: Option<Duration>,
    /// Share of frames, 0 to 1, that overtake the ones before them; needs a delay.
    pub reorder: f64,
    /// Share of frames, 0 to 1, that are lost; needs `nft`. A frame between nodes may be several segments, see
    /// [`LabConfig::fill_checksums`](crate::LabConfig::fill_checksums).
    pub loss: f64,
    /// Rate in bits per second; frames beyond it wait for some 50 ms at most and are then lost.
    pub rate: Option<Rate>,
}

impl Conditions {
    pub(crate) fn check(&self) -> Result<(), LabError> {
        for (what, share) in [("reordered", self.reorder), ("lost", self.loss)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(LabError::Invalid(format!(
                    "the share of frames {what} is from 0 to 1, not {share}"
                )));
            }
        }
        check_delay(self.delay.unwrap_or_default())?;
        check_delay(self.jitter.unwrap_or_default())?;
        if self.delay.is_none() && (self.jitter.is_some() || self.reorder > 0.0) {
            return Err(LabError::Invalid("jitter and reordering need a delay".to_owned()));
        }
        Ok(())
    }

    /// The arguments of `tc qdisc replace dev … root`; `None` without a queue.
    pub(crate) fn queue(&self) -> Option<String> {
        let Some(delay) = self.delay else {
            return self.rate.map(|rate| format!("tbf rate {rate} burst {} latency 50ms", burst_bytes(rate)));
        };
        // A million frames are more than pass within any sensible delay.
        let mut words = format!("netem limit 1000000 delay {}us", delay.as_micros());
        if let Some(jitter) = self.jitter {
            words += &format!(" {}us", jitter.as_micros());
        }
        if self.reorder > 0.0 {
            words += &format!(" reorder {}%", 100.0 * self.reorder);
        }
        if let Some(rate) = self.rate {
            words += &format!(" rate {rate}");
        }
        Some(words)
    }
}

/// The size of a burst: two milliseconds' worth, but at least one large frame.
fn burst_bytes(rate: Rate) -> u64 {
    (rate.bits_per_s() / 8 / 500).max(16_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_for_tc() {
        let rate = "100mbit".parse().ok();
        assert_eq!(Conditions::default().queue(), None);
        assert_eq!(Conditions { loss: 0.5, ..Conditions::default() }.queue(), None);
        let slow = Conditions { rate, ..Conditions::default() };
        assert_eq!(slow.queue().unwrap(), "tbf rate 100mbit burst 25000 latency 50ms");
        let far = Conditions {
            delay: Some(Duration::from_millis(10)),
            jitter: Some(Duration::from_micros(500)),
            reorder: 0.25,
            ..slow
        };
        assert_eq!(far.queue().unwrap(), "netem limit 1000000 delay 10000us 500us reorder 25% rate 100mbit");
    }

    #[test]
    fn conditions_that_make_no_sense() {
        let good = Conditions::default();
        for bad in [
            Conditions { loss: 1.5, ..good },
            Conditions { loss: f64::NAN, ..good },
            Conditions { reorder: -0.1, ..good },
            Conditions { reorder: 0.1, ..good },
            Conditions { jitter: Some(Duration::from_millis(1)), ..good },
            Conditions { delay: Some(Duration::from_secs(100)), ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
