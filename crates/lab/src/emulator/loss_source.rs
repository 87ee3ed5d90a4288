//! Which frames are lost.

use crate::emulator::chance::Chance;

/// Decides frame by frame which one is lost.
#[derive(Debug)]
pub(crate) struct LossSource {
    chance: Chance,
    loss: f64,
    /// Mean number of frames lost in a row, if the model is Gilbert's: a link that is bad loses everything, one that is good
    /// nothing.
    burst: Option<f64>,
    is_bad: bool,
}

impl LossSource {
    pub(crate) fn new(loss: f64, burst: Option<f64>, chance: Chance) -> Self {
        Self { chance, loss, burst, is_bad: false }
    }

    /// Loses this share from now on.
    pub(crate) fn set(&mut self, loss: f64, burst: Option<f64>) {
        (self.loss, self.burst, self.is_bad) = (loss, burst, false);
    }

    /// Whether the next frame is lost.
    pub(crate) fn loses_next(&mut self) -> bool {
        let Some(burst) = self.burst else { return self.chance.falls(self.loss) };
        // So the link is bad for `burst` frames on average, and for the share `loss` of all frames.
        let change = if self.is_bad { 1.0 / burst } else { self.loss / (burst * (1.0 - self.loss)) };
        self.is_bad ^= self.chance.falls(change);
        self.is_bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: usize = 1_000_000;

    /// The share that is lost, and the mean number lost in a row.
    fn measured(loss: f64, burst: Option<f64>) -> (f64, f64) {
        let mut source = LossSource::new(loss, burst, Chance::new(3, 1));
        let fates: Vec<bool> = std::iter::repeat_with(|| source.loses_next()).take(FRAMES).collect();
        let lost = fates.iter().filter(|lost| **lost).count();
        let bursts = fates.chunk_by(|one, next| one == next).filter(|run| run[0]).count();
        (lost as f64 / FRAMES as f64, lost as f64 / bursts.max(1) as f64)
    }

    #[test]
    fn shares_and_bursts() {
        for loss in [0.001, 0.01, 0.3] {
            let (share, run) = measured(loss, None);
            assert!((share / loss - 1.0).abs() < 0.1, "{loss}: {share}");
            assert!((run * (1.0 - loss) - 1.0).abs() < 0.05, "alone: {run}");
            for burst in [2.0, 8.0] {
                let (share, run) = measured(loss, Some(burst));
                assert!((share / loss - 1.0).abs() < 0.2, "{loss} in bursts of {burst}: {share}");
                assert!((run / burst - 1.0).abs() < 0.1, "{loss} in bursts of {burst}: {run}");
            }
        }
        assert_eq!(measured(0.0, None).0, 0.0);
        assert_eq!(measured(1.0, None).0, 1.0);
    }
}
