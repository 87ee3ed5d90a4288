//! Options that set the conditions of links.

use std::time::Duration;

use plimsoll_lab::{Conditions, LinkDelay, Rate};
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::values::{share_or_percent, size};

/// The longest delay of a Pareto distribution is this many times the mean, unless it is said.
const LONGEST_FACTOR: u32 = 20;

/// Conditions of a link. What is not given stays as it is.
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Conditions")]
pub(super) struct ConditionOptions {
    /// Delay of every frame, such as 25ms; a round trip crosses a link twice, and between two nodes two links
    #[arg(long, value_name = "TIME", value_parser = duration)]
    delay: Option<Duration>,

    /// The delay varies by up to so much, up and down, uniformly
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "pareto")]
    jitter: Option<Duration>,

    /// The delay follows a Pareto distribution of this shape, above 1, such as 1.5; `--delay` is its mean
    #[arg(long, value_name = "SHAPE")]
    pareto: Option<f64>,

    /// Longest delay of the Pareto distribution; 20 times the mean by default
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "jitter")]
    longest: Option<Duration>,

    /// Whether a frame overtakes those before it when its delay ends sooner (independent), or waits for them (queue)
    #[arg(long, value_enum)]
    order: Option<FrameOrder>,

    /// Share of frames that are lost, such as 1% or 0.01
    #[arg(long, value_name = "SHARE", value_parser = share_or_percent)]
    loss: Option<f64>,

    /// Mean number of frames lost in a row; 1 for frames lost one by one, whatever became of the one before
    #[arg(long, value_name = "FRAMES")]
    loss_burst: Option<f64>,

    /// Share of frames that leave without delay, ahead of those that are held
    #[arg(long, value_name = "SHARE", value_parser = share_or_percent)]
    reorder: Option<f64>,

    /// Share of frames that leave later than the others by --late-by, so that others overtake them
    #[arg(long, value_name = "SHARE", value_parser = share_or_percent)]
    late: Option<f64>,

    /// How much later they leave
    #[arg(long, value_name = "TIME", value_parser = duration)]
    late_by: Option<Duration>,

    /// Share of frames that arrive twice
    #[arg(long, value_name = "SHARE", value_parser = share_or_percent)]
    duplicate: Option<f64>,

    /// Rate, such as 1gbit; as fast as the machine by default
    #[arg(long)]
    #[serde(with = "as_text")]
    rate: Option<Rate>,

    /// Frames that wait for the rate, such as 64KiB; more are lost. What passes in 50 ms by default
    #[arg(long, value_name = "SIZE", value_parser = size)]
    rate_queue: Option<u64>,

    /// Frames that may be held for their delay; more are lost. 100000 by default
    #[arg(long, value_name = "FRAMES")]
    held_frames: Option<usize>,

    /// Their size together; 64MiB by default
    #[arg(long, value_name = "SIZE", value_parser = size)]
    held_bytes: Option<u64>,
}

/// What a frame does when its delay ends sooner than that of one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
enum FrameOrder {
    /// It waits.
    Queue,
    /// It overtakes.
    Independent,
}

impl ConditionOptions {
    /// Whether anything is given.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Changes what is given. Whether the result makes sense, the lab says.
    pub(super) fn change(&self, conditions: &mut Conditions) -> Result<(), CliError> {
        conditions.delay = self.changed_delay(conditions.delay)?;
        let shares = [
            (&mut conditions.loss, self.loss),
            (&mut conditions.reorder, self.reorder),
            (&mut conditions.late, self.late),
            (&mut conditions.duplicate, self.duplicate),
        ];
        for (share, given) in shares {
            *share = given.unwrap_or(*share);
        }
        if let Some(order) = self.order {
            conditions.independent = order == FrameOrder::Independent;
        }
        conditions.late_by = self.late_by.unwrap_or(conditions.late_by);
        if let Some(burst) = self.loss_burst {
            conditions.loss_burst = (burst != 1.0).then_some(burst);
        } else if conditions.loss <= 0.0 {
            conditions.loss_burst = None;
        }
        conditions.rate = self.rate.or(conditions.rate);
        conditions.rate_queue_bytes = self.rate_queue.or(conditions.rate_queue_bytes);
        conditions.most_held_frames = self.held_frames.unwrap_or(conditions.most_held_frames);
        if let Some(bytes) = self.held_bytes {
            conditions.most_held_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        Ok(())
    }

    fn changed_delay(&self, delay: Option<LinkDelay>) -> Result<Option<LinkDelay>, CliError> {
        if (self.delay, self.jitter, self.longest) == (None, None, None) && self.pareto.is_none() {
            return Ok(delay);
        }
        let (mean, jitter, pareto) = match delay {
            None => (None, None, None),
            Some(LinkDelay::Fixed(mean)) => (Some(mean), None, None),
            Some(LinkDelay::Uniform { mean, jitter }) => (Some(mean), Some(jitter), None),
            Some(LinkDelay::Pareto { mean, shape, longest }) => (Some(mean), None, Some((shape, longest))),
        };
        let usage = |text: &str| CliError::Usage(text.to_owned());
        let mean = self.delay.or(mean).ok_or_else(|| {
            usage(
                "--jitter, --pareto and --longest need a mean delay: add --delay TIME, such as --delay 25ms",
            )
        })?;
        if let Some(shape) = self.pareto.or_else(|| Some(pareto?.0).filter(|_| self.jitter.is_none())) {
            // A bound that was said before stays; one that came from the mean follows it.
            let by_mean = |mean: Duration| mean.saturating_mul(LONGEST_FACTOR);
            let said =
                pareto.map(|(_, longest)| longest).filter(|l| delay_mean(delay).map(by_mean) != Some(*l));
            let longest = self.longest.or(said).unwrap_or_else(|| by_mean(mean));
            return Ok(Some(LinkDelay::Pareto { mean, shape, longest }));
        }
        if self.longest.is_some() {
            return Err(usage(
                "--longest bounds a Pareto distribution: add --pareto SHAPE, such as --pareto 1.5",
            ));
        }
        Ok(Some(match self.jitter.or(jitter) {
            Some(jitter) if !jitter.is_zero() => LinkDelay::Uniform { mean, jitter },
            _ => LinkDelay::Fixed(mean),
        }))
    }
}

fn delay_mean(delay: Option<LinkDelay>) -> Option<Duration> {
    Some(match delay? {
        LinkDelay::Fixed(mean) | LinkDelay::Uniform { mean, .. } | LinkDelay::Pareto { mean, .. } => mean,
    })
}

/// `1ms`, `250us`, `0.5s`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected a time such as 1ms, 250us or 0.5s, not `{text}`");
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit_s) =
        units.into_iter().find_map(|(unit, s)| Some((text.strip_suffix(unit)?, s))).ok_or_else(wrong)?;
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * unit_s).map_err(|_| wrong())
}

/// A rate as users write it.
mod as_text {
    use plimsoll_lab::Rate;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(rate: &Option<Rate>, serializer: S) -> Result<S::Ok, S::Error> {
        rate.map(|rate| rate.to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: ConditionOptions,
    }

    fn options(line: &str) -> Result<ConditionOptions, String> {
        let words = std::iter::once("lab").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.options).map_err(|e| e.to_string())
    }

    /// The conditions after these changes, one after the other.
    fn after(lines: &[&str]) -> Conditions {
        let mut conditions = Conditions::default();
        for line in lines {
            options(line).unwrap().change(&mut conditions).unwrap();
        }
        conditions
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn times() {
        assert_eq!(duration("1ms"), Ok(MS));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("0.5s"), Ok(Duration::from_millis(500)));
        for bad in ["", "1", "ms", "-1ms", "nans", "1h", "1e400s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_delay_changes_in_parts() {
        let delay = |lines: &[&str]| after(lines).delay;
        assert_eq!(delay(&["--loss 1%"]), None);
        assert_eq!(delay(&["--delay 25ms"]), Some(LinkDelay::Fixed(25 * MS)));
        let jittery = Some(LinkDelay::Uniform { mean: 25 * MS, jitter: 5 * MS });
        assert_eq!(delay(&["--delay 25ms --jitter 5ms"]), jittery);
        assert_eq!(delay(&["--delay 9ms", "--jitter 5ms", "--loss 1%", "--delay 25ms"]), jittery);
        assert_eq!(delay(&["--delay 9ms --jitter 5ms", "--jitter 0ms"]), Some(LinkDelay::Fixed(9 * MS)));
        let pareto = |mean, shape, longest| Some(LinkDelay::Pareto { mean, shape, longest });
        assert_eq!(delay(&["--delay 10ms --pareto 1.5"]), pareto(10 * MS, 1.5, 200 * MS));
        assert_eq!(delay(&["--delay 5ms --pareto 1.5", "--delay 10ms"]), pareto(10 * MS, 1.5, 200 * MS));
        assert_eq!(
            delay(&["--delay 10ms --pareto 2 --longest 1s", "--delay 5ms"]),
            pareto(5 * MS, 2.0, 1000 * MS)
        );
        assert_eq!(delay(&["--delay 10ms --pareto 2", "--jitter 1ms --delay 25ms", "--jitter 5ms"]), jittery);
    }

    #[test]
    fn other_conditions_change_alone() {
        let conditions =
            after(&["--loss 1% --loss-burst 4 --late 0.02 --late-by 3ms", "--duplicate 3% --rate 1gbit"]);
        assert_eq!((conditions.loss, conditions.loss_burst, conditions.late), (0.01, Some(4.0), 0.02));
        assert_eq!((conditions.late_by, conditions.duplicate), (3 * MS, 0.03));
        assert_eq!(conditions.rate.unwrap().to_string(), "1gbit");
        assert_eq!(after(&["--loss 1% --loss-burst 4", "--loss-burst 1"]).loss_burst, None);
        assert_eq!(after(&["--loss 1% --loss-burst 4", "--loss 0%"]), Conditions::default());
        assert!(after(&["--order independent"]).independent);
        assert!(!after(&["--order independent", "--order queue"]).independent);
        let bounds = after(&["--held-frames 10 --held-bytes 1MiB --rate 1mbit --rate-queue 64KiB"]);
        assert_eq!((bounds.most_held_frames, bounds.most_held_bytes), (10, 1 << 20));
        assert_eq!(bounds.rate_queue_bytes, Some(64 << 10));
    }

    #[test]
    fn wrong_options_say_what_would_be_right() {
        for (line, expected) in [
            ("--delay 1", "such as 1ms"),
            ("--loss 101%", "a share of 0% to 100%"),
            ("--loss=-1", "a share"),
            ("--reorder lots", "such as 1% or 0.01"),
            ("--jitter 1ms --pareto 1.5", "cannot be used with"),
            ("--order random", "queue, independent"),
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
        for (line, expected) in
            [("--jitter 1ms", "add --delay"), ("--delay 1ms --longest 1s", "add --pareto")]
        {
            let error = options(line).unwrap().change(&mut Conditions::default()).unwrap_err();
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn options_pass_from_process_to_process() {
        let options = options("--delay 25ms --rate 2.5gbit --loss 1% --order independent").unwrap();
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<ConditionOptions>(&text).unwrap(), options);
    }
}
