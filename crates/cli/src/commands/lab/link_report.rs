//! What a link does to frames, and what became of them, as table and JSON.

use std::time::Duration;

use plimsoll_lab::{Conditions, DirectionStatistics, LinkDelay, LinkStatistics};
use plimsoll_report::format::bytes;
use serde::{Deserialize, Serialize};

/// A link, in both directions. The names of the fields are the output of `lab link --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LinkReport {
    node: String,
    /// The frames that the node sends.
    from: DirectionReport,
    /// The frames to the node.
    to: DirectionReport,
}

/// One direction, in SI units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct DirectionReport {
    /// The mean.
    delay_s: Option<f64>,
    jitter_s: Option<f64>,
    pareto_shape: Option<f64>,
    longest_delay_s: Option<f64>,
    order: String,
    loss: f64,
    loss_burst: Option<f64>,
    reorder: f64,
    late: f64,
    late_by_s: f64,
    duplicate: f64,
    rate: Option<String>,
    rate_queue_bytes: Option<u64>,
    held_frames_most: usize,
    held_bytes_most: usize,
    /// Without an emulator in the link, nothing is counted.
    counts: Option<DirectionCounts>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct DirectionCounts {
    frames: u64,
    bytes: u64,
    delivered: u64,
    lost: u64,
    overflowed: u64,
    missed: u64,
    undeliverable: u64,
    duplicated: u64,
    reordered: u64,
    held_frames: u64,
    held_bytes: u64,
    /// From coming to leaving.
    delay_median_s: f64,
    delay_p90_s: f64,
    delay_p99_s: f64,
    delay_longest_s: f64,
    /// From when a frame was due to when it left.
    lateness_median_s: f64,
    lateness_p90_s: f64,
    lateness_p99_s: f64,
    lateness_longest_s: f64,
}

impl LinkReport {
    pub(super) fn new(node: String, ways: &[Conditions; 2], statistics: Option<&LinkStatistics>) -> Self {
        let [from, to] = ways;
        Self {
            node,
            from: DirectionReport::new(from, statistics.map(|s| &s.from_node)),
            to: DirectionReport::new(to, statistics.map(|s| &s.to_node)),
        }
    }

    /// A row for each condition that is set in one direction, and for each count.
    pub(super) fn in_words(&self) -> String {
        let header = [format!("from {}", self.node), format!("to {}", self.node)];
        let mut text = row("", &header);
        let rows = self.from.conditions().into_iter().zip(self.to.conditions());
        let mut is_perfect = true;
        for ((name, from), (_, to)) in rows.filter(|((_, from), (_, to))| from.is_some() || to.is_some()) {
            is_perfect = false;
            text += &row(name, &[from, to].map(|value| value.unwrap_or_else(|| "-".to_owned())));
        }
        if is_perfect {
            return format!(
                "The link of {} is perfect: no delay, no loss, as fast as the machine.\n",
                self.node
            );
        }
        let (Some(from), Some(to)) = (&self.from.counts, &self.to.counts) else { return text };
        text += "\n";
        for ((name, from), (_, to)) in from.rows().into_iter().zip(to.rows()) {
            text += &row(name, &[from, to]);
        }
        text
    }
}

fn row(name: &str, values: &[String; 2]) -> String {
    format!("{name:<26} {:>16} {:>16}\n", values[0], values[1])
}

impl DirectionReport {
    fn new(conditions: &Conditions, statistics: Option<&DirectionStatistics>) -> Self {
        let s = |time: Duration| time.as_secs_f64();
        let (mean, jitter, pareto) = match conditions.delay {
            None => (None, None, None),
            Some(LinkDelay::Fixed(mean)) => (Some(mean), None, None),
            Some(LinkDelay::Uniform { mean, jitter }) => (Some(mean), Some(jitter), None),
            Some(LinkDelay::Pareto { mean, shape, longest }) => (Some(mean), None, Some((shape, longest))),
        };
        Self {
            delay_s: mean.map(s),
            jitter_s: jitter.map(s),
            pareto_shape: pareto.map(|(shape, _)| shape),
            longest_delay_s: pareto.map(|(_, longest)| s(longest)),
            order: if conditions.independent { "independent" } else { "queue" }.to_owned(),
            loss: conditions.loss,
            loss_burst: conditions.loss_burst,
            reorder: conditions.reorder,
            late: conditions.late,
            late_by_s: s(conditions.late_by),
            duplicate: conditions.duplicate,
            rate: conditions.rate.map(|rate| rate.to_string()),
            rate_queue_bytes: conditions.rate_queue_bytes,
            held_frames_most: conditions.most_held_frames,
            held_bytes_most: conditions.most_held_bytes,
            counts: statistics.map(DirectionCounts::new),
        }
    }

    /// Names and values; no value where the condition is not set.
    fn conditions(&self) -> [(&'static str, Option<String>); 13] {
        let share = |share: f64| (share > 0.0).then(|| percent(share));
        let default = Conditions::default();
        [
            ("delay", self.delay_s.map(millis)),
            ("jitter", self.jitter_s.map(millis)),
            ("Pareto shape", self.pareto_shape.map(|shape| shape.to_string())),
            ("longest delay", self.longest_delay_s.map(millis)),
            ("order", (self.order != "queue").then(|| self.order.clone())),
            ("loss", share(self.loss)),
            ("frames in a burst of loss", self.loss_burst.map(|burst| burst.to_string())),
            ("leave at once", share(self.reorder)),
            ("leave late", share(self.late).map(|share| format!("{share} by {}", millis(self.late_by_s)))),
            ("duplicated", share(self.duplicate)),
            ("rate", self.rate.clone()),
            ("queue for the rate", self.rate_queue_bytes.map(|queued| bytes(queued as f64))),
            ("held at most", {
                let bounds = (self.held_frames_most, self.held_bytes_most);
                (bounds != (default.most_held_frames, default.most_held_bytes))
                    .then(|| format!("{} / {}", bounds.0, bytes(bounds.1 as f64)))
            }),
        ]
    }
}

impl DirectionCounts {
    fn new(counts: &DirectionStatistics) -> Self {
        let s = |time: Duration| time.as_secs_f64();
        Self {
            frames: counts.frames,
            bytes: counts.bytes,
            delivered: counts.delivered,
            lost: counts.lost,
            overflowed: counts.overflowed,
            missed: counts.missed,
            undeliverable: counts.undeliverable,
            duplicated: counts.duplicated,
            reordered: counts.reordered,
            held_frames: counts.held_frames,
            held_bytes: counts.held_bytes,
            delay_median_s: s(counts.delay.median),
            delay_p90_s: s(counts.delay.p90),
            delay_p99_s: s(counts.delay.p99),
            delay_longest_s: s(counts.delay.longest),
            lateness_median_s: s(counts.lateness.median),
            lateness_p90_s: s(counts.lateness.p90),
            lateness_p99_s: s(counts.lateness.p99),
            lateness_longest_s: s(counts.lateness.longest),
        }
    }

    fn rows(&self) -> [(&'static str, String); 14] {
        [
            ("frames", self.frames.to_string()),
            ("bytes", bytes(self.bytes as f64)),
            ("delivered", self.delivered.to_string()),
            ("lost by chance", self.lost.to_string()),
            ("lost, too many held", self.overflowed.to_string()),
            ("lost before the emulator", self.missed.to_string()),
            ("lost behind the emulator", self.undeliverable.to_string()),
            ("copies", self.duplicated.to_string()),
            ("reordered", self.reordered.to_string()),
            ("held now", self.held_frames.to_string()),
            ("measured delay, median", millis(self.delay_median_s)),
            ("measured delay, 99 %", millis(self.delay_p99_s)),
            ("late by, median", millis(self.lateness_median_s)),
            ("late by, 99 %", millis(self.lateness_p99_s)),
        ]
    }
}

/// To the microsecond, without zeros at the end.
fn millis(time_s: f64) -> String {
    let text = format!("{:.3}", 1e3 * time_s);
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

fn percent(share: f64) -> String {
    let text = format!("{:.4}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_shown() {
        let perfect = [Conditions::default(); 2];
        let report = LinkReport::new("b0".to_owned(), &perfect, None);
        assert_eq!(
            report.in_words(),
            "The link of b0 is perfect: no delay, no loss, as fast as the machine.\n"
        );
        let lossy = Conditions { loss: 0.01, ..Conditions::delayed(Duration::from_millis(25)) };
        let counted = LinkStatistics {
            from_node: DirectionStatistics { frames: 7, lost: 1, ..DirectionStatistics::default() },
            ..LinkStatistics::default()
        };
        let report = LinkReport::new("client".to_owned(), &[lossy, Conditions::default()], Some(&counted));
        let text = report.in_words();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["from", "client", "to", "client"]);
        assert_eq!(lines[1], ["delay", "25", "ms", "-"]);
        assert_eq!(lines[2], ["loss", "1", "%", "-"]);
        assert!(lines[3].is_empty(), "{text}");
        assert_eq!(lines[4], ["frames", "7", "0"]);
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<LinkReport>(&json).unwrap(), report);
    }

    #[test]
    fn numbers() {
        assert_eq!(millis(0.025), "25 ms");
        assert_eq!(millis(0.000_041_2), "0.041 ms");
        assert_eq!(millis(0.0), "0 ms");
        assert_eq!(percent(0.015), "1.5 %");
        assert_eq!(percent(1.0), "100 %");
    }
}
