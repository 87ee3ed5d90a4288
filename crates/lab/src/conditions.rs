//! What happens to frames on a link, in one direction.

use std::time::Duration;

use crate::error::LabError;
use crate::rate::{Rate, check_delay};

/// Frames that a link holds at most by default.
const HELD_FRAMES: usize = 100_000;
/// Bytes that a link holds at most by default: 150 ms at 3.5 Gbit/s.
const HELD_BYTES: usize = 64 << 20;
/// Smallest queue of a rate limit: one large frame fits.
const LEAST_RATE_QUEUE_BYTES: u64 = 16_000;

/// What happens to the frames of one direction of a link. All chance follows from
/// [`LabConfig::seed`](crate::LabConfig::seed).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// Delay of each frame; none by default.
    pub delay: Option<LinkDelay>,
    /// Whether a frame with a short delay overtakes those before it that have longer ones. By default a frame also waits for
    /// those before it, as in a queue.
    pub independent: bool,
    /// Share of frames, 0 to 1, that leave at once, ahead of those that are held; needs a delay.
    pub reorder: f64,
    /// Share of frames, 0 to 1, that leave later than the others by [`Conditions::late_by`], so that later ones overtake them.
    pub late: f64,
    /// How much later.
    pub late_by: Duration,
    /// Share of frames, 0 to 1, that are lost.
    pub loss: f64,
    /// Mean number of frames lost in a row, at least 1 (the simple Gilbert model). By default each frame is lost or not
    /// whatever became of the one before.
    pub loss_burst: Option<f64>,
    /// Share of frames, 0 to 1, that arrive twice.
    pub duplicate: f64,
    /// Rate in bits per second, at which frames enter the link; as fast as the machine by default.
    pub rate: Option<Rate>,
    /// Bytes of frames that may wait for the rate before further ones are lost; by default what passes in 50 ms.
    pub rate_queue_bytes: Option<u64>,
    /// Frames that may be held for their delay before further ones are lost; 100,000 by default.
    pub most_held_frames: usize,
    /// Bytes of frames that may be held for their delay before further ones are lost; 64 MiB by default.
    pub most_held_bytes: usize,
}

/// How long a direction of a link delays frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkDelay {
    /// All alike.
    Fixed(Duration),
    /// Uniformly distributed.
    Uniform {
        /// The mean.
        mean: Duration,
        /// The largest difference from the mean, up and down.
        jitter: Duration,
    },
    /// By a Pareto distribution, truncated.
    Pareto {
        /// The mean of the truncated distribution.
        mean: Duration,
        /// The shape, above 1: the smaller, the heavier the tail.
        shape: f64,
        /// The longest delay.
        longest: Duration,
    },
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            delay: None,
            independent: false,
            reorder: 0.0,
            late: 0.0,
            late_by: Duration::ZERO,
            loss: 0.0,
            loss_burst: None,
            duplicate: 0.0,
            rate: None,
            rate_queue_bytes: None,
            most_held_frames: HELD_FRAMES,
            most_held_bytes: HELD_BYTES,
        }
    }
}

impl Conditions {
    /// A link that delays each frame by this much.
    #[must_use]
    pub fn delayed(delay: Duration) -> Self {
        Self { delay: Some(LinkDelay::Fixed(delay)), ..Self::default() }
    }

    /// Whether frames have to pass through the emulator: for all but the rate.
    pub(crate) fn need_emulator(&self) -> bool {
        self.delay.is_some() || [self.late, self.loss, self.duplicate].iter().any(|share| *share > 0.0)
    }

    pub(crate) fn check(&self) -> Result<(), LabError> {
        let shares = [
            ("loss", self.loss),
            ("reorder", self.reorder),
            ("late", self.late),
            ("duplicate", self.duplicate),
        ];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return invalid(format!("{name} is a share of frames from 0 to 1, not {share}"));
            }
        }
        check_delay(self.late_by)?;
        if let Some(delay) = self.delay {
            delay.check()?;
        }
        if self.reorder > 0.0 && self.delay.is_none() {
            return invalid(
                "reorder needs a delay: a frame can only overtake others that are held".to_owned(),
            );
        }
        if self.late > 0.0 && self.late_by.is_zero() {
            return invalid(
                "late needs late-by: say how much later these frames leave, such as 5ms".to_owned(),
            );
        }
        self.check_burst()?;
        if self.most_held_frames == 0 || self.most_held_bytes == 0 {
            return invalid(
                "a link holds at least one frame and one byte: raise held-frames or held-bytes".to_owned(),
            );
        }
        match (self.rate, self.rate_queue_bytes) {
            (None, Some(_)) => {
                invalid("rate-queue needs a rate: without one no frame waits for it".to_owned())
            }
            (Some(_), Some(bytes)) if bytes < LEAST_RATE_QUEUE_BYTES => invalid(format!(
                "rate-queue is at least {LEAST_RATE_QUEUE_BYTES} bytes, which hold one large frame, not {bytes}"
            )),
            _ => Ok(()),
        }
    }

    fn check_burst(&self) -> Result<(), LabError> {
        let Some(burst) = self.loss_burst else { return Ok(()) };
        if !(1.0..=1e6).contains(&burst) {
            return invalid(format!("loss-burst is a mean number of frames from 1 to 1000000, not {burst}"));
        }
        if self.loss <= 0.0 || self.loss >= 1.0 {
            return invalid("loss-burst needs a loss above 0 and below 1".to_owned());
        }
        let least = self.loss / (1.0 - self.loss);
        if burst < least {
            return invalid(format!(
                "with a loss of {} bursts have {least:.1} frames at least: raise loss-burst, or lower loss",
                self.loss
            ));
        }
        Ok(())
    }

    /// The arguments of `tc qdisc replace dev … root` that limit the rate; `None` without one.
    pub(crate) fn rate_queue(&self) -> Option<String> {
        let rate = self.rate?;
        let bound = self.rate_queue_bytes.map_or("latency 50ms".to_owned(), |bytes| format!("limit {bytes}"));
        Some(format!("tbf rate {rate} burst {} {bound}", burst_bytes(rate)))
    }
}

impl LinkDelay {
    fn check(&self) -> Result<(), LabError> {
        match *self {
            Self::Fixed(delay) => check_delay(delay),
            Self::Uniform { mean, jitter } => {
                check_delay(mean + jitter)?;
                if jitter > mean {
                    return invalid(format!(
                        "no delay is below zero: a jitter of {jitter:?} needs a delay of as much at least, not {mean:?}"
                    ));
                }
                Ok(())
            }
            Self::Pareto { mean, shape, longest } => {
                check_delay(longest)?;
                if !(shape > 1.0 && shape <= 100.0) {
                    return invalid(format!(
                        "pareto is a shape above 1, for which there is a mean, and at most 100, not {shape}"
                    ));
                }
                if mean.is_zero() || mean >= longest {
                    return invalid(format!(
                        "a Pareto distribution has a mean above 0 and below its longest value: a delay of {mean:?} and \
                         longest of {longest:?} do not go together"
                    ));
                }
                Ok(())
            }
        }
    }
}

fn invalid(text: String) -> Result<(), LabError> {
    Err(LabError::Invalid(text))
}

/// The size of a burst: two milliseconds' worth, but at least one large frame.
fn burst_bytes(rate: Rate) -> u64 {
    (rate.bits_per_s() / 8 / 500).max(16_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_rate_for_tc() {
        let rate = "100mbit".parse().ok();
        assert_eq!(Conditions::default().rate_queue(), None);
        assert_eq!(Conditions { loss: 0.5, ..Conditions::default() }.rate_queue(), None);
        let slow = Conditions { rate, ..Conditions::default() };
        assert_eq!(slow.rate_queue().unwrap(), "tbf rate 100mbit burst 25000 latency 50ms");
        let short = Conditions { rate_queue_bytes: Some(64 << 10), ..slow };
        assert_eq!(short.rate_queue().unwrap(), "tbf rate 100mbit burst 25000 limit 65536");
        assert!(short.check().is_ok() && !short.need_emulator());
    }

    #[test]
    fn what_needs_the_emulator() {
        let perfect = Conditions::default();
        assert!(!perfect.need_emulator());
        for emulated in [
            Conditions::delayed(Duration::ZERO),
            Conditions { loss: 0.1, ..perfect },
            Conditions { duplicate: 0.1, ..perfect },
            Conditions { late: 0.1, late_by: MS, ..perfect },
        ] {
            assert!(emulated.need_emulator() && emulated.check().is_ok(), "{emulated:?}");
        }
    }

    #[test]
    fn conditions_that_make_no_sense() {
        let good = Conditions::default();
        let pareto = |mean, shape, longest| Conditions {
            delay: Some(LinkDelay::Pareto { mean, shape, longest }),
            ..Conditions::default()
        };
        assert!(pareto(MS, 1.5, 20 * MS).check().is_ok());
        let cases = [
            (Conditions { loss: 1.5, ..good }, "loss is a share"),
            (Conditions { loss: f64::NAN, ..good }, "loss is a share"),
            (Conditions { reorder: -0.1, ..good }, "reorder is a share"),
            (Conditions { reorder: 0.1, ..good }, "reorder needs a delay"),
            (Conditions { duplicate: 2.0, ..good }, "duplicate is a share"),
            (Conditions { late: 0.1, ..good }, "late needs late-by"),
            (
                Conditions { delay: Some(LinkDelay::Uniform { mean: MS, jitter: 2 * MS }), ..good },
                "a jitter of 2ms",
            ),
            (Conditions::delayed(Duration::from_secs(100)), "delays by at most"),
            (pareto(MS, 1.0, 20 * MS), "above 1"),
            (pareto(MS, f64::NAN, 20 * MS), "above 1"),
            (pareto(MS, 1.5, MS), "do not go together"),
            (pareto(Duration::ZERO, 1.5, MS), "do not go together"),
            (Conditions { loss_burst: Some(5.0), ..good }, "needs a loss"),
            (Conditions { loss: 0.1, loss_burst: Some(0.5), ..good }, "from 1 to"),
            (Conditions { loss: 0.9, loss_burst: Some(2.0), ..good }, "9.0 frames at least"),
            (Conditions { rate_queue_bytes: Some(1 << 20), ..good }, "needs a rate"),
            (
                Conditions { rate: "1mbit".parse().ok(), rate_queue_bytes: Some(100), ..good },
                "at least 16000",
            ),
            (Conditions { most_held_frames: 0, ..good }, "at least one frame"),
        ];
        for (bad, expected) in cases {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{bad:?}: {error}");
        }
    }
}
