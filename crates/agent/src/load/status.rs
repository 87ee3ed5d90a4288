//! What is shown of the loads that are told.

use std::fmt::Write as _;

use plimsoll_wire::load::LoadCounts;
use serde_json::{Map, Value, json};

use super::writers::ToldLoad;

/// The state of a [`LoadService`](super::LoadService).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadStatus {
    /// The load that is told now; that of a load index is 0.
    pub load: u32,
    /// Recent response time of accesses that began as one of about `load + 1`, as one does that begins now, in microseconds; 0 where it
    /// is not known.
    pub latency_us: u32,
    /// Whether the thread that answers has a higher priority than others.
    pub raised: bool,
    /// Datagrams, answered and dropped.
    pub counts: LoadCounts,
    /// The loads that servers of others have told.
    pub told: Vec<ToldLoad>,
}

impl LoadStatus {
    /// As one JSON object.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let refused: Map<String, Value> =
            self.counts.refused.iter().map(|(why, count)| (why.name().to_owned(), (*count).into())).collect();
        let told: Map<String, Value> = self
            .told
            .iter()
            .map(|told| (told.name.clone(), json!({ "load": told.load, "holds_ms": told.holds_ms })))
            .collect();
        json!({
            "load": self.load,
            "latency_us": self.latency_us,
            "raised_priority": self.raised,
            "answered": self.counts.taken,
            "renewed": self.counts.renewed,
            "announced": self.counts.announced,
            "refused": refused,
            "told": told,
        })
    }

    /// In Prometheus' text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let mut one = |name: &str, kind: &str, help: &str, value: u64| {
            // Writing to memory does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        one("plimsoll_load", "gauge", "Active accesses, as front-ends are told.", u64::from(self.load));
        let counts = &self.counts;
        one("plimsoll_load_answered_total", "counter", "Inquiries answered with a load.", counts.taken);
        one("plimsoll_load_renewed_total", "counter", "Inquiries answered with a renewal.", counts.renewed);
        one("plimsoll_load_announced_total", "counter", "Announcements sent, by receiver.", counts.announced);
        let name = "plimsoll_load_refused_total";
        let _ = writeln!(text, "# HELP {name} Datagrams dropped, by reason.\n# TYPE {name} counter");
        for (why, count) in &counts.refused {
            let _ = writeln!(text, "{name}{{reason=\"{}\"}} {count}", why.name());
        }
        text
    }
}
